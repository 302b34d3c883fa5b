"""Exchanges and bindings over HTTP."""

from __future__ import annotations

import httpx
import pytest

from .http_broker import escaped, unique

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")


def test_exchanges_come_and_go(api: httpx.Client) -> None:
    name = unique("x")
    body = {"type": "topic", "durable": True, "internal": True, "arguments": {"alternate-exchange": "amq.fanout"}}
    assert api.put(f"exchanges/%2F/{name}", json=body).status_code == 201
    assert api.put(f"exchanges/%2F/{name}", json=body).status_code == 204
    shown = api.get(f"exchanges/%2F/{name}").json()
    assert shown == {
        "name": name,
        "vhost": "/",
        "auto_delete": False,
        "policy": None,
        "incoming": [],
        "outgoing": [],
        **body,
    }
    differing = api.put(f"exchanges/%2F/{name}", json={**body, "type": "fanout"})
    assert differing.json()["reason"].startswith(f"inequivalent arg 'type' for exchange '{name}' in vhost '/'")
    assert api.delete(f"exchanges/%2F/{name}").status_code == 204
    assert api.delete(f"exchanges/%2F/{name}").status_code == 404


def test_reserved_and_unknown_exchanges_are_refused(api: httpx.Client) -> None:
    unknown = api.put("exchanges/%2F/x", json={"type": "nope"})
    assert unknown.json() == {"error": "bad_request", "reason": "unknown exchange type 'nope'"}
    for answer in (
        api.put("exchanges/%2F/amq.mine", json={"type": "direct"}),
        api.delete("exchanges/%2F/amq.direct"),
        api.delete("exchanges/%2F/amq.default"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (401, "not_authorised")


def test_the_default_exchange_has_a_name_in_paths(api: httpx.Client) -> None:
    shown = api.get("exchanges/%2F/amq.default").json()
    assert (shown["name"], shown["type"], shown["durable"]) == ("", "direct", True)
    names = [row["name"] for row in api.get("exchanges/%2F").json()]
    assert names[:3] == ["", "amq.direct", "amq.fanout"]


def test_an_exchange_in_use_is_kept_if_asked(api: httpx.Client) -> None:
    exchange, queue = unique("x"), unique()
    api.put(f"exchanges/%2F/{exchange}", json={})
    api.put(f"queues/%2F/{queue}", json={})
    api.post(f"bindings/%2F/e/{exchange}/q/{queue}", json={"routing_key": "k"})
    answer = api.delete(f"exchanges/%2F/{exchange}?if-unused=true")
    assert answer.json() == {"error": "bad_request", "reason": f"exchange '{exchange}' in vhost '/' in use"}
    api.delete(f"queues/%2F/{queue}")
    assert api.delete(f"exchanges/%2F/{exchange}?if-unused=true").status_code == 204


@pytest.mark.parametrize(
    ("routing_key", "arguments", "properties_key"),
    [
        ("", {}, "~"),
        ("plain", {}, "plain"),
        ("a.#", {}, "a.%23"),
        ("k/1 é~%", {}, "k%2F1+%C3%A9%7E%25"),
        ("with", {"a": 1, "b": "two", "c": [True, None, 1.5], "d": {"e": -1}}, None),
        ("", {"x-match": "all"}, None),
    ],
)
def test_a_binding_is_found_by_its_key(
    api: httpx.Client, routing_key: str, arguments: dict[str, object], properties_key: str | None
) -> None:
    queue = unique()
    path = f"bindings/%2F/e/amq.headers/q/{queue}"
    api.put(f"queues/%2F/{queue}", json={})
    made = api.post(path, json={"routing_key": routing_key, "arguments": arguments})
    assert made.status_code == 201
    [binding] = api.get(path).json()
    assert binding == {
        "source": "amq.headers",
        "vhost": "/",
        "destination": queue,
        "destination_type": "queue",
        "routing_key": routing_key,
        "arguments": arguments,
        "properties_key": binding["properties_key"],
    }
    key = binding["properties_key"]
    assert properties_key in (None, key)
    assert made.headers["location"] == f"{queue}/{escaped(key)}"
    # Clients escape the key once or twice.
    assert api.get(f"{path}/{escaped(key)}").json() == binding
    if not arguments and routing_key:
        assert api.get(f"{path}/{escaped(routing_key)}").json() == binding
    assert api.delete(f"{path}/{escaped(key)}").status_code == 204
    assert api.get(f"{path}/{escaped(key)}").status_code == 404
    assert api.get(path).json() == []
    api.delete(f"queues/%2F/{queue}")


def test_the_same_binding_twice_is_one(api: httpx.Client) -> None:
    queue = unique()
    api.put(f"queues/%2F/{queue}", json={})
    for _ in range(2):
        assert api.post(f"bindings/%2F/e/amq.direct/q/{queue}", json={"routing_key": "k"}).status_code == 201
    assert len(api.get(f"bindings/%2F/e/amq.direct/q/{queue}").json()) == 1
    api.delete(f"queues/%2F/{queue}")


def test_bindings_seen_from_both_ends(api: httpx.Client) -> None:
    source, destination, queue = unique("x"), unique("x"), unique()
    api.put(f"exchanges/%2F/{source}", json={"type": "topic"})
    api.put(f"exchanges/%2F/{destination}", json={"type": "fanout"})
    api.put(f"queues/%2F/{queue}", json={})
    assert api.post(f"bindings/%2F/e/{source}/e/{destination}", json={"routing_key": "z"}).status_code == 201
    assert api.post(f"bindings/%2F/e/{source}/q/{queue}", json={"routing_key": "y"}).status_code == 201
    outgoing = api.get(f"exchanges/%2F/{source}/bindings/source").json()
    assert {(row["destination_type"], row["destination"]) for row in outgoing} == {
        ("exchange", destination),
        ("queue", queue),
    }
    incoming = api.get(f"exchanges/%2F/{destination}/bindings/destination").json()
    assert incoming == api.get(f"bindings/%2F/e/{source}/e/{destination}").json()
    of_queue = api.get(f"queues/%2F/{queue}/bindings").json()
    assert [(row["source"], row["routing_key"]) for row in of_queue] == [("", queue), (source, "y")]
    everything = api.get("bindings/%2F").json()
    assert all(row in everything for row in outgoing + of_queue)
    assert api.delete(f"bindings/%2F/e/{source}/e/{destination}/z").status_code == 204
    for path in (f"exchanges/%2F/{source}", f"exchanges/%2F/{destination}", f"queues/%2F/{queue}"):
        api.delete(path)


def test_missing_objects_cannot_be_bound(api: httpx.Client) -> None:
    answer = api.post("bindings/%2F/e/nosuch/q/nosuch", json={})
    assert answer.status_code == 404
    assert answer.json()["error"] == "not_found"
    default = api.post("bindings/%2F/e/amq.default/q/q", json={"routing_key": "k"})
    assert (default.status_code, default.json()["error"]) == (401, "not_authorised")
    # RabbitMQ lists the bindings of a missing exchange.
    assert api.get("exchanges/%2F/nosuch/bindings/source").json() == []
    assert [row["source"] for row in api.get("queues/%2F/nosuch/bindings").json()] == [""]
    assert api.get("bindings/nosuch").status_code == 404

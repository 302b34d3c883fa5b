"""Queues over HTTP. The shapes, codes and words are those of RabbitMQ's management API."""

from __future__ import annotations

import httpx
import pytest

from .http_broker import HttpBroker, unique
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")

QUEUE_FIELDS = {
    "arguments",
    "auto_delete",
    "consumer_capacity",
    "consumer_utilisation",
    "consumers",
    "durable",
    "effective_policy_definition",
    "exclusive",
    "level",
    "memory",
    "message_bytes",
    "message_bytes_ready",
    "messages",
    "messages_details",
    "messages_ready",
    "messages_ready_details",
    "messages_unacknowledged",
    "messages_unacknowledged_details",
    "name",
    "node",
    "operator_policy",
    "policy",
    "state",
    "type",
    "vhost",
}

JSON = {"content-type": "application/json"}


def test_a_new_queue_is_201_and_the_same_again_204(api: httpx.Client) -> None:
    name = unique()
    body = {"durable": True, "auto_delete": False, "arguments": {"x-max-length": 5, "x-overflow": "drop-head"}}
    assert api.put(f"queues/%2F/{name}", json=body).status_code == 201
    assert api.put(f"queues/%2F/{name}", json=body).status_code == 204
    shown = api.get(f"queues/%2F/{name}").json()
    assert shown["arguments"] == body["arguments"]
    assert (shown["durable"], shown["auto_delete"], shown["exclusive"]) == (True, False, False)
    assert (shown["type"], shown["state"], shown["vhost"], shown["node"]) == ("classic", "running", "/", "t")
    assert shown.keys() >= QUEUE_FIELDS | {"consumer_details", "exclusive_consumer_tag", "single_active_consumer_tag"}
    assert api.delete(f"queues/%2F/{name}").status_code == 204
    assert api.get(f"queues/%2F/{name}").status_code == 404


@pytest.mark.parametrize("body", [b"", b"{}", b' {"durable": "false", "arguments": []} '])
def test_everything_in_the_body_may_be_left_out(api: httpx.Client, body: bytes) -> None:
    name = unique()
    assert api.put(f"queues/%2F/{name}", content=body, headers=JSON).status_code == 201
    assert api.get(f"queues/%2F/{name}?columns=durable,auto_delete,arguments").json() == {
        "durable": False,
        "auto_delete": False,
        "arguments": {},
    }
    api.delete(f"queues/%2F/{name}")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "not_json"),
        (b"[]", "not_json"),
        (b"\xff", "not_json"),
        (b'{"durable": "yes"}', ["not_boolean", "yes"]),
        (b'{"durable": 1}', ["not_boolean", 1]),
        (b'{"arguments": 5}', ["not_a_table", 5]),
        (b'{"arguments": {"x": 9223372036854775808}}', "9223372036854775808 does not fit in 64 bits"),
        (
            b'{"arguments": {"x-max-length": "5"}}',
            "invalid arg 'x-max-length' for queue 'q' in vhost '/': \"expected integer, got longstr\"",
        ),
    ],
)
def test_the_refusal_of_a_body_names_its_error(api: httpx.Client, body: bytes, reason: object) -> None:
    answer = api.put("queues/%2F/q", content=body, headers=JSON)
    assert answer.status_code == 400
    assert answer.json() == {"error": "bad_request", "reason": reason}


def test_deeply_nested_bodies_are_refused(api: httpx.Client) -> None:
    deep = b'{"arguments":{"a":' + b"[" * 200 + b"]" * 200 + b"}}"
    assert api.put("queues/%2F/deep", content=deep, headers=JSON).json()["error"] == "bad_request"
    deeper = b"[" * 100_000
    answer = api.put("queues/%2F/deep", content=deeper, headers=JSON)
    assert answer.json() == {"error": "bad_request", "reason": "not_json"}


def test_another_declaration_of_the_same_queue_is_refused(api: httpx.Client) -> None:
    name = unique()
    api.put(f"queues/%2F/{name}", json={"durable": True})
    assert api.put(f"queues/%2F/{name}", json={"durable": False}).json() == {
        "error": "bad_request",
        "reason": f"inequivalent arg 'durable' for queue '{name}' in vhost '/': received 'false' but current is 'true'",
    }
    api.delete(f"queues/%2F/{name}")


def test_reserved_names_and_unknown_vhosts_are_refused(api: httpx.Client) -> None:
    reserved = api.put("queues/%2F/amq.mine", json={})
    assert (reserved.status_code, reserved.json()["error"]) == (401, "not_authorised")
    nowhere = api.put("queues/nosuch/q", json={})
    assert (nowhere.status_code, nowhere.json()) == (404, {"error": "not_found", "reason": "vhost_not_found"})
    for path in ("queues/nosuch", "queues/nosuch/q", "queues/%2F/nosuch"):
        answer = api.get(path)
        assert (answer.status_code, answer.json()) == (404, {"error": "Object Not Found", "reason": "Not Found"})


def test_deleting_may_ask_for_unused_and_empty(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique()
    with http_broker.amqp() as connection:
        channel = connection.channel()
        channel.queue_declare(name)
        channel.basic_publish("", name, b"m")
        channel.queue_declare(name, passive=True)
        answer = api.delete(f"queues/%2F/{name}?if-empty=true")
        assert answer.json() == {"error": "bad_request", "reason": f"queue '{name}' in vhost '/' not empty"}
        channel.basic_consume(name, lambda *_: None)
        answer = api.delete(f"queues/%2F/{name}?if-unused=true")
        assert answer.json() == {"error": "bad_request", "reason": f"queue '{name}' in vhost '/' in use"}
    assert api.delete(f"queues/%2F/{name}").status_code == 204
    assert api.delete(f"queues/%2F/{name}").status_code == 404


def test_purging(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique()
    with http_broker.amqp() as connection:
        channel = connection.channel()
        channel.queue_declare(name)
        for _ in range(3):
            channel.basic_publish("", name, b"12345")
        assert channel.queue_declare(name, passive=True).method.message_count == 3
    shown = api.get(f"queues/%2F/{name}").json()
    assert (shown["messages"], shown["messages_ready"], shown["message_bytes"]) == (3, 3, 15)
    assert api.delete(f"queues/%2F/{name}/contents").status_code == 204
    assert api.get(f"queues/%2F/{name}?columns=messages").json() == {"messages": 0}
    assert api.delete("queues/%2F/nosuch/contents").status_code == 404
    api.delete(f"queues/%2F/{name}")


def test_an_exclusive_queue_of_another_connection_is_listed_but_cannot_be_changed(
    http_broker: HttpBroker, api: httpx.Client
) -> None:
    name = unique()
    with http_broker.amqp() as connection:
        connection.channel().queue_declare(name, exclusive=True)
        shown = api.get(f"queues/%2F/{name}").json()
        assert shown["exclusive"] is True
        assert shown["owner_pid_details"]["name"] in [row["name"] for row in api.get("connections").json()]
        for answer in (api.delete(f"queues/%2F/{name}"), api.delete(f"queues/%2F/{name}/contents")):
            assert answer.status_code == 400
            assert answer.json()["reason"].startswith(f"cannot obtain exclusive access to locked queue '{name}'")
    wait_until(lambda: api.get(f"queues/%2F/{name}").status_code == 404)


def test_counts_and_consumers_of_a_queue(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique()
    with http_broker.amqp() as connection:
        channel = connection.channel()
        channel.queue_declare(name)
        channel.basic_qos(prefetch_count=5)
        for _ in range(2):
            channel.basic_publish("", name, b"m")
        channel.basic_consume(name, lambda *_: None, consumer_tag="mine", arguments={"x-priority": 3})
        wait_until(lambda: api.get(f"queues/%2F/{name}").json()["messages_unacknowledged"] == 2)
        shown = api.get(f"queues/%2F/{name}").json()
        assert (shown["consumers"], shown["messages_ready"], shown["messages"]) == (1, 0, 2)
        assert shown["message_stats"]["publish"] == 2
        assert shown["message_stats"]["deliver_get"] == 2
        [consumer] = shown["consumer_details"]
        assert consumer["consumer_tag"] == "mine"
        assert (consumer["ack_required"], consumer["prefetch_count"], consumer["active"]) == (True, 5, True)
        assert consumer["arguments"] == {"x-priority": 3}
        assert consumer["queue"] == {"name": name, "vhost": "/"}
        assert consumer["channel_details"]["number"] == 1
        channel.queue_delete(name)


def test_methods_that_a_path_does_not_have(api: httpx.Client) -> None:
    answer = api.patch("queues/%2F/q")
    assert (answer.status_code, answer.headers["allow"]) == (405, "HEAD, GET, PUT, DELETE, OPTIONS")
    answer = api.get("queues/%2F/q/contents")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, OPTIONS")
    answer = api.options("queues")
    assert (answer.status_code, answer.headers["allow"]) == (200, "HEAD, GET, OPTIONS")
    answer = api.head("queues")
    assert (answer.status_code, answer.content) == (200, b"")

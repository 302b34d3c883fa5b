"""Publishing and getting messages over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pika
import pytest

from .http_broker import HttpBroker, unique
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")

ALL_PROPERTIES = {
    "content_type": "text/plain",
    "content_encoding": "none",
    "headers": {"n": 1, "t": "text", "list": [1, "a", True, None], "table": {"deep": 1.5}},
    "delivery_mode": 2,
    "priority": 3,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "100000",
    "message_id": "m",
    "timestamp": 123,
    "type": "t",
    "user_id": "guest",
    "app_id": "a",
    "cluster_id": "k",
}


@pytest.fixture
def queue(api: httpx.Client) -> Iterator[str]:
    name = unique()
    api.put(f"queues/%2F/{name}", json={})
    yield name
    api.delete(f"queues/%2F/{name}")


def publish(api: httpx.Client, key: str, payload: str = "m", exchange: str = "amq.default", **more: Any) -> Any:
    body = {"properties": {}, "routing_key": key, "payload": payload, "payload_encoding": "string", **more}
    return api.post(f"exchanges/%2F/{exchange}/publish", json=body)


def get(api: httpx.Client, queue: str, mode: str = "ack_requeue_false", count: int = 10, **more: Any) -> Any:
    body = {"count": count, "ackmode": mode, "encoding": "auto", **more}
    return api.post(f"queues/%2F/{queue}/get", json=body)


def test_a_message_goes_through_with_all_its_properties(api: httpx.Client, queue: str) -> None:
    assert publish(api, queue, "häl\0lo", properties=ALL_PROPERTIES).json() == {"routed": True}
    [message] = get(api, queue).json()
    assert message == {
        "payload": "häl\0lo",
        "payload_bytes": 7,
        "payload_encoding": "string",
        "properties": ALL_PROPERTIES,
        "exchange": "",
        "routing_key": queue,
        "redelivered": False,
        "message_count": 0,
        "level": "transient",
    }


@pytest.mark.proves("R22")
def test_levels_of_queue_and_messages_are_shown(api: httpx.Client) -> None:
    name = unique()
    api.put(f"queues/%2F/{name}", json={"durable": True})
    for mode in (1, 2):
        publish(api, name, properties={"delivery_mode": mode})
    shown = api.get(f"queues/%2F/{name}").json()
    assert (shown["level"], shown["transient_level"]) == ("persistent", "transient")
    assert [message["level"] for message in get(api, name, count=2).json()] == ["transient", "persistent"]
    api.delete(f"queues/%2F/{name}")


def test_a_message_without_a_queue_is_not_routed(api: httpx.Client) -> None:
    assert publish(api, "nosuch").json() == {"routed": False}


def test_bytes_travel_as_base64(api: httpx.Client, queue: str) -> None:
    octets = bytes(range(256))
    encoded = base64.b64encode(octets).decode()
    assert publish(api, queue, encoded, payload_encoding="base64").json() == {"routed": True}
    [message] = get(api, queue, "ack_requeue_true").json()
    assert (message["payload"], message["payload_encoding"], message["payload_bytes"]) == (encoded, "base64", 256)
    [message] = get(api, queue, truncate=3).json()
    assert base64.b64decode(message["payload"]) == octets[:3] or message["payload"] == "\0\1\2"
    assert message["payload_bytes"] == 256


@pytest.mark.parametrize(
    ("mode", "stays", "dies"),
    [
        ("ack_requeue_true", True, False),
        ("reject_requeue_true", True, False),
        ("ack_requeue_false", False, False),
        ("reject_requeue_false", False, True),
    ],
)
def test_the_ack_mode_decides_the_fate_of_fetched_messages(
    api: httpx.Client, mode: str, stays: bool, dies: bool
) -> None:
    name, grave = unique(), unique()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave}
    api.put(f"queues/%2F/{name}", json={"arguments": arguments})
    api.put(f"queues/%2F/{grave}", json={})
    for text in "abc":
        publish(api, name, text)
    assert [message["payload"] for message in get(api, name, mode, 2).json()] == ["a", "b"]
    left = get(api, name).json()
    assert [message["payload"] for message in left] == (["a", "b", "c"] if stays else ["c"])
    assert [message["redelivered"] for message in left] == ([True, True, False] if stays else [False])
    assert [message["payload"] for message in get(api, grave).json()] == (["a", "b"] if dies else [])
    for queue in (name, grave):
        api.delete(f"queues/%2F/{queue}")


def test_message_counts_go_down_as_messages_are_got(api: httpx.Client, queue: str) -> None:
    for text in "abc":
        publish(api, queue, text)
    assert [message["message_count"] for message in get(api, queue).json()] == [2, 1, 0]
    assert get(api, queue).json() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"properties": 5}, "properties_not_object"),
        ({"properties": {"priority": "a"}}, ["not_int", "priority"]),
        ({"properties": {"priority": 256}}, ["not_int", "priority"]),
        ({"properties": {"timestamp": -1}}, ["not_int", "timestamp"]),
        ({"properties": {"type": 5}}, ["not_string", "type"]),
        ({"properties": {"headers": 5}}, ["not_a_table", 5]),
        ({"payload": 5}, "payload_not_string"),
        ({"payload": "***", "payload_encoding": "base64"}, ["not_base64", "***"]),
        ({"payload_encoding": "zip"}, ["unsupported_encoding", "zip"]),
        ({"routing_key": "k" * 256}, "routing_key should be less than 255 bytes, actually was 256\n"),
        (
            {"properties": {"user_id": "other"}},
            "406 PRECONDITION_FAILED - user_id property set to 'other' but authenticated user was 'guest'",
        ),
    ],
)
def test_messages_that_cannot_be_published(
    api: httpx.Client, queue: str, change: dict[str, Any], reason: object
) -> None:
    answer = publish(api, queue, **change)
    assert answer.status_code == 400
    assert answer.json() == {"error": "bad_request", "reason": reason}


def test_exchanges_that_cannot_be_published_to(api: httpx.Client) -> None:
    assert publish(api, "k", exchange="nosuch").json() == {
        "error": "bad_request",
        "reason": "404 NOT_FOUND - no exchange 'nosuch' in vhost '/'",
    }
    assert publish(api, "k", exchange="amq.rabbitmq.trace").json()["reason"].startswith("403 ACCESS_REFUSED")


@pytest.mark.parametrize("missing", ["properties", "routing_key", "payload", "payload_encoding"])
def test_an_incomplete_publish_is_refused_with_the_missing_key(api: httpx.Client, missing: str) -> None:
    body = {"properties": {}, "routing_key": "k", "payload": "m", "payload_encoding": "string"}
    del body[missing]
    answer = api.post("exchanges/%2F/amq.default/publish", json=body)
    assert answer.json() == {"error": "bad_request", "reason": f"[{{key_missing,{missing}}}]"}


@pytest.mark.parametrize(
    ("change", "status"),
    [({"count": "x"}, 400), ({"count": -1}, 400), ({"ackmode": "nosuch"}, 400), ({"encoding": "zip"}, 400)],
)
def test_gets_that_cannot_be_understood(api: httpx.Client, queue: str, change: dict[str, Any], status: int) -> None:
    body = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto", **change}
    assert api.post(f"queues/%2F/{queue}/get", json=body).status_code == status


def test_queues_that_cannot_be_got_from(http_broker: HttpBroker, api: httpx.Client) -> None:
    assert get(api, "nosuch").json() == {"error": "not_found", "reason": "NOT_FOUND - no queue 'nosuch' in vhost '/'"}
    name = unique()
    with http_broker.amqp() as connection:
        connection.channel().queue_declare(name, exclusive=True)
        answer = get(api, name)
        assert answer.status_code == 400
        assert answer.json()["reason"].startswith("405 RESOURCE_LOCKED - cannot obtain exclusive access")


def test_messages_meet_those_of_amqp(http_broker: HttpBroker, api: httpx.Client, queue: str) -> None:
    with http_broker.amqp() as connection:
        channel = connection.channel()
        publish(api, queue, "from http")
        _, _, body = channel.basic_get(queue, auto_ack=True)
        assert body == b"from http"
        headers = {"bytes": b"\xff", "n": 5}
        channel.basic_publish("", queue, b"\xff", pika.BasicProperties(headers=headers))
    wait_until(lambda: api.get(f"queues/%2F/{queue}").json()["messages"] == 1)
    [message] = get(api, queue).json()
    assert message["payload"] == "/w=="
    assert message["properties"]["headers"] == {"bytes": "\N{REPLACEMENT CHARACTER}", "n": 5}

"""Streams over HTTP: their properties, the requests that they refuse, and their place among the definitions."""

from __future__ import annotations

import time

import httpx
import pytest

from .http_broker import HttpBroker, unique
from .stream_reader import StreamReader, declare, fill_confirmed
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")


def test_a_stream_is_shown_with_its_offsets(http_broker: HttpBroker, api: httpx.Client) -> None:
    name = unique()
    with http_broker.amqp() as connection:
        channel = connection.channel()
        declare(channel, name)
        empty = api.get(f"queues/%2F/{name}").json()
        assert (empty["type"], empty["messages"], empty["committed_offset"], empty["first_offset"]) == (
            "stream",
            0,
            -1,
            0,
        )
        assert "first_timestamp" not in empty
        fill_confirmed(channel, name, 0, 20)
        reader = StreamReader(connection.channel(), name)
        reader.wait_for(20)
        wait_until(lambda: api.get(f"queues/%2F/{name}").json()["messages"] == 20, "its messages to be shown")
        shown = api.get(f"queues/%2F/{name}").json()
        assert (shown["messages_ready"], shown["segments"], shown["readers"]) == (20, 1, {"t": 1})
        assert (shown["first_offset"], shown["committed_offset"], shown["stored_offsets"]) == (0, 19, {})
        assert abs(shown["first_timestamp"] - time.time() * 1000) < 60_000
        assert shown["first_timestamp"] <= shown["last_timestamp"]
        assert shown["level"] == shown["transient_level"] == "persistent"
        assert shown["message_bytes"] > 20
    api.delete(f"queues/%2F/{name}")


def test_requests_that_do_not_fit_a_stream_are_refused(api: httpx.Client) -> None:
    name = unique()
    body = {"durable": True, "arguments": {"x-queue-type": "stream"}}
    assert api.put(f"queues/%2F/{name}", json=body).status_code == 201
    asked = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    for answer in (api.post(f"queues/%2F/{name}/get", json=asked), api.delete(f"queues/%2F/{name}/contents")):
        assert answer.status_code == 400
        assert "not supported by stream queues" in answer.json()["reason"]
    assert api.put(f"queues/%2F/{unique()}", json={**body, "durable": False}).status_code == 400
    api.delete(f"queues/%2F/{name}")


def test_streams_are_among_the_definitions(api: httpx.Client) -> None:
    name = unique()
    arguments = {"x-queue-type": "stream", "x-max-age": "7D"}
    api.put(f"queues/%2F/{name}", json={"durable": True, "arguments": arguments})
    definitions = api.get("definitions").json()
    (found,) = [queue for queue in definitions["queues"] if queue["name"] == name]
    assert found["arguments"] == arguments
    api.delete(f"queues/%2F/{name}")
    assert api.post("definitions", json={"queues": [found]}).status_code in (200, 201, 204)
    assert api.get(f"queues/%2F/{name}").json()["type"] == "stream"
    api.delete(f"queues/%2F/{name}")

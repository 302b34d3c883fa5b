"""Traces of a real broker: the stream has the actions of pika's clients, step by step, and nothing after the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from pandomq.trace_form import TRACE_STREAM, Event, Kind, Reason, decode_events

from .http_broker import HttpBroker, escaped, unique
from .stream_reader import StreamReader
from .waiting import pump

pytestmark = pytest.mark.only_ours("its HTTP API is at another port")


@pytest.fixture
def vhost(api: httpx.Client) -> Iterator[str]:
    name = unique("v")
    assert api.put(f"vhosts/{name}", json={"description": "traced", "tracing": True}).status_code == 201
    yield name
    api.delete(f"vhosts/{name}")


class Traced:
    """The stream's events so far."""

    def __init__(self, channel: BlockingChannel) -> None:
        self._reader = StreamReader(channel, TRACE_STREAM)
        self._connection = channel.connection

    @property
    def rows(self) -> list[Event]:
        return [row for body in self._reader.bodies for row in decode_events(body).rows()]

    def wait_for(self, queue: str, *kinds: Kind) -> list[Event]:
        """The events of a queue, once there is one of each kind."""
        pump(self._connection, lambda: {*kinds} <= {row.kind for row in self.rows if row.queue == queue}, f"{kinds}")
        return [row for row in self.rows if row.queue == queue]


def one(rows: list[Event], kind: Kind) -> Event:
    (found,) = (row for row in rows if row.kind == kind)
    return found


def take_one(channel: BlockingChannel, queue: str) -> Any:
    method, _, _ = next(iter(channel.consume(queue, inactivity_timeout=10)))
    return method


def test_every_step_is_in_the_stream(http_broker: HttpBroker, api: httpx.Client, vhost: str) -> None:
    with http_broker.amqp(vhost=vhost) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"body", pika.BasicProperties(delivery_mode=2))
        channel.basic_publish("amq.topic", "no.where", b"nobody")
        consumer = connection.channel()
        method = take_one(consumer, "q")
        consumer.basic_nack(method.delivery_tag, requeue=True)
        method = take_one(consumer, "q")
        assert method.redelivered
        consumer.basic_ack(method.delivery_tag)
        consumer.cancel()
        traced = Traced(connection.channel())
        rows = traced.wait_for("q", Kind.ACKED)
        assert [row.kind for row in rows] == [
            Kind.PUBLISHED,
            Kind.CONFIRMED,
            Kind.DELIVERED,
            Kind.REQUEUED,
            Kind.REDELIVERED,
            Kind.ACKED,
        ]
        assert {(row.queue, row.sequence, row.routing_key, row.exchange, row.size) for row in rows} == {
            ("q", 1, "q", "", 4)
        }
        assert all(0 <= row.since_us < 60_000_000 for row in rows)
        assert [row.since_us for row in rows] == sorted(row.since_us for row in rows)
        names = {name["name"] for name in api.get(f"vhosts/{vhost}/connections").json()}
        assert one(rows, Kind.ACKED).consumer_tag == method.consumer_tag
        assert any(name.startswith(one(rows, Kind.ACKED).connection) for name in names)
        unroutable = one(traced.rows, Kind.UNROUTABLE)
        assert (unroutable.exchange, unroutable.routing_key, unroutable.size) == ("amq.topic", "no.where", 6)


def test_dead_lettered_expired_and_refused_messages_are_traced(http_broker: HttpBroker, vhost: str) -> None:
    with http_broker.amqp(vhost=vhost) as connection:
        channel = connection.channel()
        channel.queue_declare("graves")
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"}
        channel.queue_declare("mortal", arguments={**letters, "x-message-ttl": 1})
        channel.queue_declare("fleeting", arguments={"x-message-ttl": 1})
        channel.queue_declare("short", arguments={"x-max-length": 1})
        channel.queue_declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        for name in ("mortal", "fleeting", "short", "short"):
            channel.basic_publish("", name, b"m")
        channel.confirm_delivery()
        channel.basic_publish("", "full", b"m")
        with pytest.raises(NackError):
            channel.basic_publish("", "full", b"m")
        traced = Traced(connection.channel())
        dead = one(traced.wait_for("mortal", Kind.DEAD_LETTERED), Kind.DEAD_LETTERED)
        assert (dead.reason, dead.sequence) == (Reason.EXPIRED, 1)
        assert one(traced.wait_for("graves", Kind.PUBLISHED), Kind.PUBLISHED).sequence == 1
        assert one(traced.wait_for("fleeting", Kind.EXPIRED), Kind.EXPIRED).sequence == 1
        dropped = one(traced.wait_for("short", Kind.DROPPED), Kind.DROPPED)
        assert (dropped.reason, dropped.sequence) == (Reason.MAXLEN, 1)
        full = traced.wait_for("full", Kind.REFUSED)
        assert [row.kind for row in full] == [
            Kind.PUBLISHED,
            Kind.CONFIRMED,
            Kind.REFUSED,
        ]


def test_a_part_is_traced_and_then_nothing(http_broker: HttpBroker, api: httpx.Client, vhost: str) -> None:
    path = f"vhosts/{escaped(vhost)}"
    assert api.put(path, json={"trace_sample": 0.1}).status_code == 204
    shown = api.get(path).json()
    assert (shown["tracing"], shown["trace_sample"], shown["description"]) == (True, 0.1, "traced")
    with http_broker.amqp(vhost=vhost) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        for _ in range(1000):
            channel.basic_publish("", "q", b"m", pika.BasicProperties(delivery_mode=1))
        channel.queue_declare("last")
        for _ in range(50):
            channel.basic_publish("", "last", b"m")
        traced = Traced(connection.channel())
        traced.wait_for("last", Kind.PUBLISHED)
        assert 90 <= sum(row.queue == "q" for row in traced.rows) <= 110
        assert api.put(path, json={"tracing": False}).status_code == 204
        assert api.get(path).json()["tracing"] is False
        channel.queue_declare("silent")
        channel.basic_publish("", "silent", b"m")
        # All traced events come after this.
        assert api.put(path, json={"tracing": True}).status_code == 204
        channel.queue_declare("loud")
        channel.basic_publish("", "loud", b"m")
        traced.wait_for("loud", Kind.PUBLISHED)
        assert not [row for row in traced.rows if row.queue == "silent"]


def test_a_malformed_sample_is_refused(api: httpx.Client, vhost: str) -> None:
    for wrong in ({"trace_sample": 2}, {"trace_sample": -1}, {"trace_sample": "1%"}, {"tracing": "perhaps"}):
        assert api.put(f"vhosts/{vhost}", json=wrong).status_code == 400
    assert api.get(f"vhosts/{vhost}").json()["trace_sample"] == 1.0

"""Traces through the death of a root: the next root continues them, and traces its election."""

from __future__ import annotations

import json
from typing import Any

import pika
import pytest

from pandomq.trace_form import TRACE_STREAM, Events, Kind, decode_events
from tests.integration.stream_reader import StreamReader
from tests.integration.waiting import pump

from .cluster import Cluster
from .process import ClusterBroker

VHOST = "traced"


def publish(broker: ClusterBroker, count: int) -> None:
    connection = pika.BlockingConnection(broker.parameters(virtual_host=VHOST))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    for _ in range(count):
        channel.basic_publish("", "q", b"body", pika.BasicProperties(delivery_mode=2))
    connection.close()


@pytest.mark.timeout(180)
def test_traces_go_on_at_the_next_root(proxies: Cluster) -> None:
    root = proxies.root
    one, other = proxies.backups
    answer = root.ask(f"vhosts/{VHOST}", "PUT", {"tracing": True})
    assert answer is not None
    assert answer.status_code == 201
    connection = pika.BlockingConnection(other.parameters(virtual_host=VHOST))
    reader = StreamReader(connection.channel(), TRACE_STREAM)

    def batches() -> list[Events]:
        return [decode_events(body) for body in reader.bodies]

    def count(kind: Kind, broker: str) -> int:
        return sum(row.kind == kind for batch in batches() if batch.broker == broker for row in batch.rows())

    def told(event: str) -> list[dict[str, Any]]:
        rows = (row for batch in batches() for row in batch.rows() if row.kind == Kind.CLUSTER)
        return [facts for facts in (json.loads(row.text) for row in rows) if facts["event"] == event]

    # The publishes go through a broker that is not the root: the root traces that broker's clients, too.
    publish(one, 5)
    pump(connection, lambda: count(Kind.CONFIRMED, root.name) == 5, "confirms by the first root")
    root.kill()
    after = proxies.wait_for_root(other_than=root)
    publish(one, 3)
    pump(connection, lambda: count(Kind.CONFIRMED, after.name) == 3, "confirms by the next root")
    root.start()
    proxies.wait_until_whole()
    pump(connection, lambda: root.name in {facts["broker"] for facts in told("in-sync")}, "who was root is in sync")
    (elected,) = told("elected")
    assert (elected["broker"], elected["before"], elected["handed_over"]) == (after.name, root.name, False)
    assert elected["members"] == sorted(broker.name for broker in proxies)
    # Each broker writes in its own terms, numbers its batches from 0 on, and loses only its last ones.
    terms = {(batch.broker, batch.term) for batch in batches()}
    assert len({term for _, term in terms}) == len(terms) == 2
    for broker, term in terms:
        numbers = [batch.number for batch in batches() if (batch.broker, batch.term) == (broker, term)]
        assert numbers == list(range(len(numbers)))
    assert elected["term"] in {term for _, term in terms}
    connection.close()
    answer = after.ask(f"vhosts/{VHOST}", "DELETE")
    assert answer is not None
    assert answer.status_code == 204

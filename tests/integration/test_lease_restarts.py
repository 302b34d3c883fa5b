"""Leases of a broker that is killed and starts again: the same offsets, the same bytes; and of many messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pika
import pytest

from pandomq.data_client.client import DataClient
from pandomq.data_client.records import LeasedRange

from .data_rows import numbers, rows_of
from .numbered_queue import fill_queue, take_all
from .restarts import RestartingBroker, ended
from .waiting import wait_until

WISH: Final = {"messages_max": 1_000_000, "bytes_max": 2**30, "timeout_ms": 600_000}


@pytest.fixture
def restarting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestartingBroker]:
    """With a snapshot for each megabyte of the log."""
    for name in ("SEGMENT", "SNAPSHOT"):
        monkeypatch.setenv(f"PANDOMQ_LOG_{name}_BYTES", "1MiB")
    with ended(RestartingBroker(tmp_path)) as broker:
        broker.start()
        yield broker


def read(client: DataClient, lease: LeasedRange) -> list[int]:
    return numbers(rows_of(client.chunks(lease.stream, lease.first_offset, lease.end_offset)))


def url(broker: RestartingBroker) -> str:
    return f"amqp://127.0.0.1:{broker.port}"


def parameters(broker: RestartingBroker) -> pika.URLParameters:
    return pika.URLParameters(broker.url)


@pytest.mark.proves("S1")
@pytest.mark.timeout(180)
def test_leased_messages_are_read_again_after_crashes(restarting: RestartingBroker) -> None:
    random, released, end = Random(7), 0, 0
    for _ in range(3):
        fill_queue(parameters(restarting), "q", end, end + 120, 12_000)
        end += 120
        with DataClient(url(restarting)) as client:
            lease = client.lease("q", "job", **WISH)
            while lease.more:
                lease = client.lease("q", "job", **WISH)
            assert read(client, lease) == list(range(released, end))
            step = random.randrange(end - released)
            client.release("q", "job", lease.first_offset + step)
            released += step
        restarting.restart(cleanly=random.random() < 0.5)
        with DataClient(url(restarting)) as client:
            again = client.lease("q", "job", **WISH)
            assert again.first_offset == lease.first_offset + step and again.end_offset == lease.end_offset
            assert read(client, again) == list(range(released, end))
    assert list(restarting.data.rglob("pages-*")), "chunks of it were on the disk"
    with DataClient(url(restarting)) as client:
        client.end_lease("q", "job")
    found = take_all(parameters(restarting), "q", end - released)
    assert found == [(number, True) for number in range(released, end)]


@pytest.mark.timeout(120)
def test_paged_out_messages_are_leased_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the queue is not in memory: requests return the messages that are, and the next one finds more."""
    monkeypatch.setenv("PANDOMQ_LIMITS_PAGING_BYTES", "256KiB")
    count = 3_000
    with ended(RestartingBroker(tmp_path)) as broker:
        broker.start()
        channel = broker.connect().channel()
        channel.queue_declare("q", durable=True)
        for number in range(count):
            channel.basic_publish("", "q", (b"%d" % number).ljust(1_000), pika.BasicProperties(delivery_mode=2))
        assert channel.queue_declare("q", passive=True).method.message_count == count
        with DataClient(url(broker)) as client:
            lease = client.lease("q", "job", **WISH)
            wait_until(lambda: not client.lease("q", "job", **WISH).more, "all to be leased")
            lease = client.lease("q", "job", **WISH)
            assert read(client, lease) == list(range(count))
            client.release("q", "job", lease.first_offset + 1_000)
            client.end_lease("q", "job")
        found = take_all(parameters(broker), "q", count - 1_000)
        assert found == [(number, True) for number in range(1_000, count)]


@pytest.mark.timeout(120)
def test_consumers_and_leases_share_a_queue(restarting: RestartingBroker) -> None:
    """They alternate while more messages arrive: one of them receives each message, both in order."""
    random, published = Random(3), 0
    leased: list[int] = []
    consumed: list[int] = []
    consumer = restarting.connect().channel()
    consumer.queue_declare("q", durable=True)
    consumer.basic_qos(prefetch_count=7)
    with DataClient(url(restarting)) as client:
        while published < 400 or len(leased) + len(consumed) < published:
            if published < 400:
                fill_queue(parameters(restarting), "q", published, published + 40)
                published += 40
            lease = client.lease("q", "job", messages_max=random.randint(1, 30), bytes_max=10**6, timeout_ms=60_000)
            leased += read(client, lease)
            client.release("q", "job", lease.end_offset)
            for method, _, body in consumer.consume("q", inactivity_timeout=0.2):
                if method is None:
                    break
                consumed.append(int(body))
                consumer.basic_ack(method.delivery_tag)
                if random.random() < 0.1:
                    break
            # Its unacked messages are requeued.
            consumer.cancel()
    assert sorted(leased + consumed) == list(range(published))
    assert leased == sorted(leased) and leased and consumed


@pytest.mark.timeout(120)
def test_a_lease_runs_out_after_a_restart(restarting: RestartingBroker) -> None:
    fill_queue(parameters(restarting), "q", 0, 20)
    with DataClient(url(restarting)) as client:
        client.lease("q", "job", messages_max=10, bytes_max=10**6, timeout_ms=2_000)
    restarting.restart(cleanly=False)
    with restarting.connect() as connection:
        channel = connection.channel()
        wait_until(lambda: channel.queue_declare("q", passive=True).method.message_count == 20, "all to come back")
    assert [number for number, _ in take_all(parameters(restarting), "q", 20)] == list(range(20))

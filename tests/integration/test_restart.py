"""A broker that stops and starts again: the objects that it restores, and those that it does not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from .restarts import PERSISTENT, RestartingBroker, ended


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[RestartingBroker]:
    with ended(RestartingBroker(tmp_path)) as broker:
        broker.start()
        yield broker


@pytest.mark.parametrize("cleanly", [True, False])
def test_durable_objects_come_back(restarting: RestartingBroker, cleanly: bool) -> None:
    channel = restarting.channel()
    channel.exchange_declare("lasting", "topic", durable=True)
    channel.exchange_declare("passing", "topic")
    channel.queue_declare("lasting", durable=True, arguments={"x-max-priority": 5})
    channel.queue_declare("passing")
    channel.queue_bind("lasting", "lasting", "a.#")
    channel.queue_bind("lasting", "passing", "a.#")
    channel.basic_publish("lasting", "a.b", b"low", PERSISTENT)
    channel.basic_publish("lasting", "a.b", b"high", pika.BasicProperties(delivery_mode=2, priority=5))
    channel.basic_publish("lasting", "a.b", b"transient", pika.BasicProperties())
    channel = restarting.restart(cleanly=cleanly)
    assert channel.queue_declare("lasting", passive=True).method.message_count == 2
    got = [channel.basic_get("lasting", auto_ack=True) for _ in range(2)]
    assert [body for _, _, body in got] == [b"high", b"low"]
    # Only after a crash the broker does not know whether they had been delivered.
    assert [method.redelivered for method, _, _ in got if method is not None] == [not cleanly] * 2
    channel.basic_publish("lasting", "a.c", b"still bound", PERSISTENT)
    assert channel.basic_get("lasting", auto_ack=True)[2] == b"still bound"
    for missing in ("exchange_declare", "queue_declare"):
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="404"):
            getattr(channel.connection.channel(), missing)("passing", passive=True)


def test_acked_messages_do_not_come_back_and_unacked_ones_do(restarting: RestartingBroker) -> None:
    channel = restarting.channel()
    channel.queue_declare("q", durable=True)
    for number in range(4):
        channel.basic_publish("", "q", b"%d" % number, PERSISTENT)
    tags = [channel.basic_get("q")[0].delivery_tag for _ in range(3)]
    channel.basic_ack(tags[1])
    channel.basic_publish("", "q", b"proof", PERSISTENT)
    channel = restarting.restart(cleanly=True)
    got = [channel.basic_get("q", auto_ack=True) for _ in range(4)]
    assert [(body, method.redelivered) for method, _, body in got if method is not None] == [
        (b"0", True),
        (b"2", True),
        (b"3", False),
        (b"proof", False),
    ]


def test_publishers_wait_while_the_disk_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_LOG_FREE_BYTES_MIN", "1000TiB")
    with ended(RestartingBroker(tmp_path)) as broker:
        broker.start()
        connection = broker.connect()
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        reasons: list[str] = []
        connection.add_on_connection_blocked_callback(lambda _, frame: reasons.append(frame.method.reason))
        time.sleep(0.3)
        channel.basic_publish("", "q", b"", PERSISTENT)
        deadline = time.monotonic() + 10
        while not reasons and time.monotonic() < deadline:
            connection.process_data_events(0.1)
        assert reasons == ["low on disk"]
        # A consumer continues.
        other = broker.channel()
        assert other.basic_get("q", auto_ack=True)[0] is not None


def test_a_broker_in_memory_loses_its_queues_at_a_restart(tmp_path: Path) -> None:
    with ended(RestartingBroker(tmp_path, "--memory")) as broker:
        broker.start()
        broker.channel().queue_declare("q", durable=True)
        channel = broker.restart(cleanly=True)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="404"):
            channel.queue_declare("q", passive=True)
        assert broker.stop() == 0
    assert not list((tmp_path / "data").glob("segment-*"))

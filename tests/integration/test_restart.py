"""A broker that stops and starts again: what comes back, what does not, and what keeps it from starting."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

from .watched_broker import WatchedBroker

CONNECTIONS: list[pika.BlockingConnection] = []
PERSISTENT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[WatchedBroker]:
    broker = WatchedBroker(tmp_path)
    broker.start()
    yield broker
    if broker.alive:
        broker.kill()


@pytest.fixture(autouse=True)
def _connections_end() -> Iterator[None]:
    """Also those that a killed broker left."""
    CONNECTIONS.clear()
    yield
    for connection in CONNECTIONS:
        with contextlib.suppress(AMQPError):
            connection.close()
    gc.collect()


def connect(broker: WatchedBroker) -> pika.BlockingConnection:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    CONNECTIONS.append(connection)
    return connection


def channel_of(broker: WatchedBroker) -> BlockingChannel:
    channel = connect(broker).channel()
    channel.confirm_delivery()
    return channel


def restart(broker: WatchedBroker, *, cleanly: bool) -> BlockingChannel:
    if cleanly:
        assert broker.stop() == 0
    else:
        broker.kill()
    broker.start()
    return channel_of(broker)


@pytest.mark.parametrize("cleanly", [True, False])
def test_what_is_durable_comes_back(restarting: WatchedBroker, cleanly: bool) -> None:
    channel = channel_of(restarting)
    channel.exchange_declare("lasting", "topic", durable=True)
    channel.exchange_declare("passing", "topic")
    channel.queue_declare("lasting", durable=True, arguments={"x-max-priority": 5})
    channel.queue_declare("passing")
    channel.queue_bind("lasting", "lasting", "a.#")
    channel.queue_bind("lasting", "passing", "a.#")
    channel.basic_publish("lasting", "a.b", b"low", PERSISTENT)
    channel.basic_publish("lasting", "a.b", b"high", pika.BasicProperties(delivery_mode=2, priority=5))
    channel.basic_publish("lasting", "a.b", b"transient", pika.BasicProperties())
    channel = restart(restarting, cleanly=cleanly)
    assert channel.queue_declare("lasting", passive=True).method.message_count == 2
    got = [channel.basic_get("lasting", auto_ack=True) for _ in range(2)]
    assert [body for _, _, body in got] == [b"high", b"low"]
    # Only after a crash nobody knows whether they had been delivered.
    assert [method.redelivered for method, _, _ in got if method is not None] == [not cleanly] * 2
    channel.basic_publish("lasting", "a.c", b"still bound", PERSISTENT)
    assert channel.basic_get("lasting", auto_ack=True)[2] == b"still bound"
    for missing in ("exchange_declare", "queue_declare"):
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="404"):
            getattr(channel.connection.channel(), missing)("passing", passive=True)


def test_acked_messages_do_not_come_back_and_unacked_ones_do(restarting: WatchedBroker) -> None:
    channel = channel_of(restarting)
    channel.queue_declare("q", durable=True)
    for number in range(4):
        channel.basic_publish("", "q", b"%d" % number, PERSISTENT)
    tags = [channel.basic_get("q")[0].delivery_tag for _ in range(3)]
    channel.basic_ack(tags[1])
    channel.basic_publish("", "q", b"proof", PERSISTENT)
    channel = restart(restarting, cleanly=True)
    got = [channel.basic_get("q", auto_ack=True) for _ in range(4)]
    assert [(body, method.redelivered) for method, _, body in got if method is not None] == [
        (b"0", True),
        (b"2", True),
        (b"3", False),
        (b"proof", False),
    ]


def start_again(broker: WatchedBroker) -> str:
    """What a broker says that does not start with that store."""
    result = subprocess.run(broker._command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    return last


def test_a_directory_has_one_broker(restarting: WatchedBroker) -> None:
    restarting._command += ["--listen", "127.0.0.1:0"]
    assert f"is in use by process {restarting.pid}" in start_again(restarting)


def test_a_store_stays_with_its_broker(restarting: WatchedBroker) -> None:
    assert restarting.stop() == 0
    restarting._command += ["--name", "other"]
    assert "the store belongs to broker 't', and this is 'other'" in start_again(restarting)


def test_corruption_is_named_and_nothing_is_started(restarting: WatchedBroker) -> None:
    channel = channel_of(restarting)
    channel.queue_declare("q", durable=True)
    for _ in range(3):
        channel.basic_publish("", "q", b"find me here", PERSISTENT)
    restarting.kill()
    (segment,) = (restarting.directory / "data").glob("segment-*.log")
    data = bytearray(segment.read_bytes())
    data[data.index(b"find me here")] ^= 1
    segment.write_bytes(data)
    said = start_again(restarting)
    assert f"{segment.name} is corrupt at offset" in said
    assert "pandomq store repair" in said


def test_publishers_wait_while_the_disk_is_nearly_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_LOG_FREE_BYTES_MIN", "1000TiB")
    broker = WatchedBroker(tmp_path)
    broker.start()
    try:
        connection = connect(broker)
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
        # A consumer goes on.
        other = channel_of(broker)
        assert other.basic_get("q", auto_ack=True)[0] is not None
    finally:
        broker.kill()


def test_a_broker_in_memory_forgets(tmp_path: Path) -> None:
    broker = WatchedBroker(tmp_path, "--memory")
    broker.start()
    channel_of(broker).queue_declare("q", durable=True)
    channel = restart(broker, cleanly=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="404"):
        channel.queue_declare("q", passive=True)
    assert broker.stop() == 0
    assert not list((tmp_path / "data").glob("segment-*"))


def test_a_write_that_fails_ends_the_broker_unconfirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDOMQ_LOG_SEGMENT_BYTES", "256KiB")
    monkeypatch.setenv("PANDOMQ_LOG_RESERVE_BYTES", "0")
    broker = WatchedBroker(tmp_path)
    # No file may be larger: the system refuses the write, as a broken disk would.
    broker._command = ["prlimit", f"--fsize={2**20}", *broker._command]
    broker.start()
    channel = channel_of(broker)
    channel.queue_declare("q", durable=True)
    with pytest.raises(AMQPError):
        channel.basic_publish("", "q", bytes(2**21), PERSISTENT)
    assert broker._process is not None
    assert broker._process.wait(10) == 1
    last = broker.log_text().splitlines()[-1]
    assert last.startswith("pandomq: broker t with the store in ")
    assert "cannot write to segment-" in last
    assert "Traceback" not in broker.log_text()

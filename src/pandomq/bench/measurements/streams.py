"""A stream, filled once and read from its beginning: the cost of a published message, and of one that is read.

It is published with confirms, and read by one consumer that acknowledges by count, as RabbitMQ requires. Each delivery
has another offset in its headers, so the kernel's scanner counts them.
"""

import time
from collections.abc import Callable

import msgspec

from pandomq import kernel
from pandomq.bench import limits, process
from pandomq.bench.backlog import BacklogLimit
from pandomq.bench.client import wire
from pandomq.bench.client.batch import encode_batch
from pandomq.bench.client.closing import close_connections
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.url import BrokerUrl, parse_url
from pandomq.bench.load import Load
from pandomq.bench.loop import Loop
from pandomq.bench.publishing import FloodPublisher
from pandomq.bench.run import Show, show_nothing

STREAM = "bench.stream"
_CONFIRM_WINDOW = 2000
_RECEIVE_BYTES = 1 << 20
_ACKS_PER_PREFETCH = 4


class StreamPhase(msgspec.Struct, frozen=True, kw_only=True):
    messages: int
    seconds: float
    rate: float
    broker_cpu_us: float | None
    """For one message; None if the broker is not on this machine."""


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    size_bytes: int
    prefetch: int
    fill: StreamPhase
    read: StreamPhase
    """The median of the rounds, by rate."""


def measure_stream(
    url: str, messages: int, size_bytes: int, prefetch: int, rounds: int, pid: int | None, show: Show = show_nothing
) -> StreamResult:
    place = parse_url(url)
    load = Load(url=url, size_bytes=size_bytes, persistent=True, confirm_window=_CONFIRM_WINDOW)
    with LoadSession(place) as session:
        server = session.server_version
        session.call(
            wire.queue_declare(CHANNEL, STREAM, {"x-queue-type": "stream"}, durable=True), wire.QUEUE_DECLARE_OK
        )
        try:
            fill = _measured(messages, pid, lambda: _fill(place, load, messages, show))
            reads = []
            for number in range(rounds):
                show("read", number / rounds, fill.rate)
                reads.append(_measured(messages, pid, lambda: _read(place, messages, prefetch)))
        finally:
            session.call(wire.queue_delete(CHANNEL, STREAM), wire.QUEUE_DELETE_OK)
    reads.sort(key=lambda read: read.rate)
    return StreamResult(server=server, size_bytes=size_bytes, prefetch=prefetch, fill=fill, read=reads[rounds // 2])


def _measured(messages: int, pid: int | None, work: Callable[[], None]) -> StreamPhase:
    begun_s, used_s = time.monotonic(), process.cpu_seconds(pid) if pid else 0.0
    work()
    seconds = time.monotonic() - begun_s
    cpu_us = (process.cpu_seconds(pid) - used_s) * 1e6 / messages if pid else None
    return StreamPhase(messages=messages, seconds=seconds, rate=messages / seconds, broker_cpu_us=cpu_us)


def _fill(place: BrokerUrl, load: Load, messages: int, show: Show) -> None:
    session = LoadSession(place)
    batch = encode_batch(load, "", [STREAM], CHANNEL, session.frame_bytes_max)
    session.call(wire.confirm_select(CHANNEL), wire.CONFIRM_SELECT_OK)
    publisher = FloodPublisher(session.release()[0], batch, load.confirm_window, BacklogLimit(messages, 1))
    loop = Loop()
    loop.add(publisher)
    begun_s = moved_s = time.monotonic()
    before = 0
    try:
        while (count := publisher.confirms.acked) < messages:
            loop.turn(1.0)
            now_s = time.monotonic()
            if count != before:
                before, moved_s = count, now_s
                show("fill", count / messages, count / (now_s - begun_s))
            elif now_s - moved_s > limits.SETUP_TIMEOUT_S:
                raise wire.BrokerRefused(f"fill: no progress for {limits.SETUP_TIMEOUT_S:.0f} s")
    finally:
        loop.close()
        close_connections([publisher.connection])


def _read(place: BrokerUrl, messages: int, prefetch: int) -> None:
    session = LoadSession(place)
    session.call(wire.basic_qos(CHANNEL, prefetch), wire.BASIC_QOS_OK)
    arguments = {"x-stream-offset": "first"}
    session.call(wire.basic_consume(CHANNEL, STREAM, "c", arguments, auto_ack=False), wire.BASIC_CONSUME_OK)
    connection, data = session.release()
    connection.settimeout(limits.SETUP_TIMEOUT_S)
    scanner = kernel.Scanner(session.frame_bytes_max, limits.RECEIVE_BYTES_MAX, True)
    every = max(1, prefetch // _ACKS_PER_PREFETCH)
    delivered = acked = 0
    with connection:
        while delivered < messages:
            for output in scanner.feed(data):
                if not isinstance(output, kernel.DeliveryRun):
                    raise wire.BrokerRefused(f"expected a delivery, got {output}")
                delivered += len(output)
            if delivered - acked >= every:
                acked = delivered
                connection.sendall(wire.basic_ack(CHANNEL, acked, multiple=True))
            data = connection.recv(_RECEIVE_BYTES) if delivered < messages else b""
            if not data and delivered < messages:
                raise wire.BrokerRefused("the broker closed the reader's connection")

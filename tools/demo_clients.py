"""The demo's publishers and consumers: ordinary pika programs, each in a process of its own, that know some addresses.

A message carries who published it, its number, the attempt and when. A publisher numbers its messages from 0 without
gaps, keeps a bounded number of them unconfirmed, and publishes those again, as the next attempt, when it had to
connect anew. A consumer remembers how often each came, and how often without the mark `redelivered`. Both report to
the parent through a queue: `Progress` several times a second, at last what the account is made of.
"""

from __future__ import annotations

import contextlib
import signal
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import AMQPError
from pika.spec import Basic

EXCHANGE = "demo.orders"
QUEUES = ("demo.eu", "demo.us", "demo.asia")
BODY = struct.Struct(">HHQd")
BODY_BYTES = 256
PADDING = bytes(BODY_BYTES - BODY.size)
UNCONFIRMED_MAX = 1000
PREFETCH = 200
ACK_EVERY = 50
REPORT_EVERY_S = 0.1
TURN_S = 0.002
CONNECT_AGAIN_S = 0.02
QUIET_S = 1.0
"""A consumer that is told to stop goes on until nothing has come for this long."""


@dataclass(frozen=True)
class Progress:
    """What happened in one process since its last report."""

    published: int = 0
    confirmed: int = 0
    delivered: int = 0
    acked: int = 0
    heard: int = 0
    latencies_ms: tuple[float, ...] = ()
    pause_s: float = 0.0
    """The longest time without a confirm, of a publisher, that ended or still lasts."""


@dataclass(frozen=True)
class Published:
    """A publisher's last word: all its numbers below `count` were published, all but `unconfirmed` confirmed."""

    publisher: int
    count: int
    unconfirmed: tuple[int, ...]
    again: int
    """How many publishes were repetitions."""


Copy = tuple[int, int]
"""A publisher and an attempt."""


@dataclass(frozen=True)
class Seen:
    """A consumer's last word: for each publisher and attempt a byte per number, how often it came."""

    times: dict[Copy, bytes]
    unmarked: dict[Copy, bytes]
    """And how often without `redelivered`."""


@dataclass(frozen=True)
class Subscribed:
    """A subscriber has a private queue, and waits for what comes."""


@dataclass(frozen=True)
class Heard:
    """The last word of a subscriber about one private queue: for each publisher and attempt how often each came."""

    whole: bool
    """It lasted until nothing more came; otherwise its broker was lost, and the queue with it."""
    first: dict[int, int]
    """For each publisher the number that came first; what was published before that was before the subscription."""
    times: dict[Copy, bytes]


@dataclass(frozen=True)
class Listened:
    """All subscribers of one process have had their last word."""


@dataclass(frozen=True)
class Failed:
    who: str
    error: str


Report = Progress | Published | Seen | Subscribed | Heard | Listened | Failed


def connect(urls: Sequence[str], end: Event) -> BlockingConnection:
    """To the first of them that lets us in."""
    while True:
        with contextlib.suppress(AMQPError, OSError):
            return pika.BlockingConnection([pika.URLParameters(url) for url in urls])
        if end.is_set():
            raise RuntimeError("no broker lets us in")
        time.sleep(CONNECT_AGAIN_S)


def publish(urls: Sequence[str], publisher: int, rate: int, stop: Event, end: Event, reports: Queue[Report]) -> None:
    """Publishes at the given rate until told to stop, then waits for the confirms that are missing, until the end."""
    # ^C reaches the whole group of processes, and is for the parent to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _Publisher(urls, publisher, end, reports).run(rate, stop)
    except Exception as error:
        reports.put(Failed(f"publisher {publisher}", repr(error)))


class _Publisher:
    def __init__(self, urls: Sequence[str], publisher: int, end: Event, reports: Queue[Report]) -> None:
        self.urls = urls
        self.publisher = publisher
        self.end = end
        self.reports = reports
        self.attempt = 0
        self.count = self.confirmed = self.again = 0
        self.tag = 0
        self.unconfirmed: dict[int, int] = {}
        """Numbers by delivery tag, in order."""
        self.confirm_at = time.monotonic()
        self.pause_s = 0.0
        self.connection: BlockingConnection | None = None

    def open(self) -> BlockingConnection:
        """Connects, and publishes once more what is unconfirmed."""
        self.connection = connect(self.urls, self.end)
        # The blocking channel waits for each confirm by itself; the channel under it lets many be under way.
        self.channel = self.connection.channel()._impl
        self.channel.confirm_delivery(ack_nack_callback=self.on_confirm)
        # All of them are remembered before the first is sent: this connection may not last either.
        self.unconfirmed = dict(enumerate(self.unconfirmed.values(), start=1))
        self.tag = len(self.unconfirmed)
        self.attempt += 1
        self.again += self.tag
        for number in list(self.unconfirmed.values()):
            self.send(number)
        return self.connection

    def publish_next(self) -> None:
        self.tag += 1
        self.unconfirmed[self.tag] = self.count
        self.count += 1
        self.send(self.count - 1)

    def send(self, number: int) -> None:
        properties = pika.BasicProperties(delivery_mode=2, content_type="application/octet-stream")
        body = BODY.pack(self.publisher, self.attempt, number, time.time()) + PADDING
        self.channel.basic_publish(EXCHANGE, QUEUES[number % len(QUEUES)], body, properties)

    def on_confirm(self, frame: Any) -> None:
        if not isinstance(frame.method, Basic.Ack):
            raise RuntimeError(f"the broker refused message {frame.method.delivery_tag}")
        tag = frame.method.delivery_tag
        tags = [other for other in self.unconfirmed if other <= tag] if frame.method.multiple else [tag]
        for settled in tags:
            del self.unconfirmed[settled]
        self.confirmed += len(tags)
        self.note_pause()
        self.confirm_at = time.monotonic()

    def note_pause(self) -> None:
        self.pause_s = max(self.pause_s, time.monotonic() - self.confirm_at)

    def run(self, rate: int, stop: Event) -> None:
        self.open()
        due_at = reported = self.confirm_at = time.monotonic()
        before = (0, 0)
        while not (stop.is_set() and not self.unconfirmed) and not self.end.is_set():
            try:
                connection = self.connection or self.open()
                if not stop.is_set():
                    due_at = self.publish_due(due_at, rate)
                connection.process_data_events(time_limit=TURN_S)
            except (AMQPError, OSError):
                self.connection = None
            if self.unconfirmed:
                self.note_pause()
            if time.monotonic() - reported >= REPORT_EVERY_S:
                reported = time.monotonic()
                before = self.report(before)
        self.report(before)
        self.reports.put(Published(self.publisher, self.count, tuple(self.unconfirmed.values()), self.again))
        if self.connection is not None:
            close(self.connection)

    def publish_due(self, due_at: float, rate: int) -> float:
        """Sends what is due, and says when the next will be; what could not be sent in time is not made up for."""
        now = time.monotonic()
        while due_at <= now:
            if len(self.unconfirmed) >= UNCONFIRMED_MAX:
                return now
            self.publish_next()
            due_at += 1 / rate
        return max(due_at, now - 1.0)

    def report(self, before: tuple[int, int]) -> tuple[int, int]:
        self.reports.put(
            Progress(published=self.count - before[0], confirmed=self.confirmed - before[1], pause_s=self.pause_s)
        )
        self.pause_s = 0.0
        return self.count, self.confirmed


def consume(urls: Sequence[str], consumer: int, stop: Event, end: Event, reports: Queue[Report]) -> None:
    """Consumes and acks until told to stop and nothing more comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _Consumer(urls, end, reports).run(stop)
    except Exception as error:
        reports.put(Failed(f"consumer {consumer}", repr(error)))


class _Consumer:
    def __init__(self, urls: Sequence[str], end: Event, reports: Queue[Report]) -> None:
        self.urls = urls
        self.end = end
        self.reports = reports
        self.times: dict[Copy, bytearray] = {}
        self.unmarked: dict[Copy, bytearray] = {}
        self.delivered = self.acked = 0
        self.latencies_ms: list[float] = []
        self.moved_at = time.monotonic()
        self.connection: BlockingConnection | None = None
        self.unacked = 0
        self.last_tag = 0

    def open(self) -> BlockingConnection:
        self.connection = connect(self.urls, self.end)
        self.channel: BlockingChannel = self.connection.channel()
        # What was not acked comes again.
        self.unacked = 0
        self.channel.basic_qos(prefetch_count=PREFETCH)
        for name in QUEUES:
            self.channel.basic_consume(name, self.on_message)
        return self.connection

    def on_message(self, _: BlockingChannel, method: Basic.Deliver, __: pika.BasicProperties, body: bytes) -> None:
        publisher, attempt, number, sent = BODY.unpack_from(body)
        count(self.times, (publisher, attempt), number)
        if not method.redelivered:
            count(self.unmarked, (publisher, attempt), number)
        self.latencies_ms.append((time.time() - sent) * 1000)
        self.delivered += 1
        self.unacked += 1
        self.last_tag = method.delivery_tag
        self.moved_at = time.monotonic()
        if self.unacked >= ACK_EVERY:
            self.ack()

    def ack(self) -> None:
        if self.unacked:
            self.channel.basic_ack(self.last_tag, multiple=True)
            self.acked += self.unacked
            self.unacked = 0

    def run(self, stop: Event) -> None:
        reported = time.monotonic()
        while not self.end.is_set():
            try:
                connection = self.connection or self.open()
                connection.process_data_events(time_limit=TURN_S)
                self.ack()
            except (AMQPError, OSError):
                self.connection = None
                self.moved_at = time.monotonic()
            if stop.is_set() and time.monotonic() - self.moved_at > QUIET_S:
                break
            if time.monotonic() - reported >= REPORT_EVERY_S:
                reported = time.monotonic()
                self.report()
        self.report()
        self.reports.put(Seen(frozen(self.times), frozen(self.unmarked)))
        if self.connection is not None:
            close(self.connection)

    def report(self) -> None:
        latencies = tuple(self.latencies_ms)
        self.reports.put(Progress(delivered=self.delivered, acked=self.acked, latencies_ms=latencies))
        self.delivered = self.acked = 0
        self.latencies_ms.clear()


def close(connection: BlockingConnection) -> None:
    with contextlib.suppress(AMQPError, OSError):
        connection.close()


def count(counts: dict[Copy, bytearray], copy: Copy, number: int) -> None:
    times = counts.setdefault(copy, bytearray())
    if number >= len(times):
        times.extend(bytes(max(4096, number + 1 - len(times))))
    times[number] = min(255, times[number] + 1)


def frozen(counts: dict[Copy, bytearray]) -> dict[Copy, bytes]:
    return {copy: bytes(times) for copy, times in counts.items()}

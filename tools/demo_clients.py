"""The demo's publishers and consumers: ordinary pika programs, each in a process of its own.

Every message carries who published it, its number and when. A publisher numbers its messages from 0 without gaps and
keeps a bounded number of them unconfirmed; a consumer keeps one bit per number that it saw. Both report to the parent
through a queue: `Progress` several times a second, at last what the account is made of.
"""

from __future__ import annotations

import signal
import struct
import time
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

EXCHANGE = "demo.orders"
QUEUE = "demo.warehouse"
BODY = struct.Struct(">HQd")
BODY_BYTES = 256
PADDING = bytes(BODY_BYTES - BODY.size)
UNCONFIRMED_MAX = 1000
PREFETCH = 400
ACK_EVERY = 50
REPORT_EVERY_S = 0.1
TURN_S = 0.002


@dataclass(frozen=True)
class Progress:
    """What happened in one process since its last report."""

    published: int = 0
    confirmed: int = 0
    delivered: int = 0
    acked: int = 0
    latencies_ms: tuple[float, ...] = ()


@dataclass(frozen=True)
class Published:
    """A publisher's last word: all its numbers below `count` were published, `confirmed` of them confirmed."""

    publisher: int
    count: int
    confirmed: int


@dataclass(frozen=True)
class Seen:
    """A consumer's last word: for each publisher a byte per number, how often it came."""

    times: dict[int, bytes]


@dataclass(frozen=True)
class Failed:
    who: str
    error: str


Report = Progress | Published | Seen | Failed


def publish(url: str, publisher: int, rate: int, stop: Event, reports: Queue[Report]) -> None:
    """Publishes at the given rate until told to stop, then waits for the confirms that are missing."""
    # ^C reaches the whole group of processes, and is for the parent to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _Publisher(url, publisher, reports).run(rate, stop)
    except Exception as error:
        reports.put(Failed(f"publisher {publisher}", repr(error)))


class _Publisher:
    def __init__(self, url: str, publisher: int, reports: Queue[Report]) -> None:
        self.publisher = publisher
        self.reports = reports
        self.connection = pika.BlockingConnection(pika.URLParameters(url))
        # The blocking channel waits for each confirm by itself; the channel under it lets many be under way.
        self.channel = self.connection.channel()._impl
        self.count = 0
        self.confirmed = 0
        self.channel.confirm_delivery(ack_nack_callback=self.on_confirm)

    def on_confirm(self, frame: Any) -> None:
        if not isinstance(frame.method, Basic.Ack):
            raise RuntimeError(f"the broker refused message {frame.method.delivery_tag}")
        # Confirms come in the order of the publishes here, so that a tag counts.
        self.confirmed = frame.method.delivery_tag

    def run(self, rate: int, stop: Event) -> None:
        began = reported = time.monotonic()
        before = (0, 0)
        while not (stop.is_set() and self.confirmed == self.count):
            if not stop.is_set():
                self.publish_until(int((time.monotonic() - began) * rate))
            self.connection.process_data_events(time_limit=TURN_S)
            if time.monotonic() - reported >= REPORT_EVERY_S:
                reported = time.monotonic()
                self.reports.put(Progress(published=self.count - before[0], confirmed=self.confirmed - before[1]))
                before = (self.count, self.confirmed)
        self.reports.put(Progress(published=self.count - before[0], confirmed=self.confirmed - before[1]))
        self.reports.put(Published(self.publisher, self.count, self.confirmed))
        self.connection.close()

    def publish_until(self, due: int) -> None:
        properties = pika.BasicProperties(delivery_mode=2, content_type="application/octet-stream")
        while self.count < due and self.count - self.confirmed < UNCONFIRMED_MAX:
            body = BODY.pack(self.publisher, self.count, time.time()) + PADDING
            self.channel.basic_publish(EXCHANGE, f"order.{self.count % 10}", body, properties)
            self.count += 1


def consume(url: str, consumer: int, stop: Event, reports: Queue[Report]) -> None:
    """Consumes and acks until told to stop and the queue gives nothing more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _Consumer(url, reports).run(stop)
    except Exception as error:
        reports.put(Failed(f"consumer {consumer}", repr(error)))


class _Consumer:
    def __init__(self, url: str, reports: Queue[Report]) -> None:
        self.reports = reports
        self.connection = pika.BlockingConnection(pika.URLParameters(url))
        self.channel: BlockingChannel = self.connection.channel()
        self.times: dict[int, bytearray] = {}
        self.unacked = 0
        self.last_tag = 0
        self.delivered = self.acked = 0
        self.latencies_ms: list[float] = []
        self.channel.basic_qos(prefetch_count=PREFETCH)
        self.channel.basic_consume(QUEUE, self.on_message)

    def on_message(self, _: BlockingChannel, method: Basic.Deliver, __: pika.BasicProperties, body: bytes) -> None:
        publisher, number, sent = BODY.unpack_from(body)
        times = self.times.setdefault(publisher, bytearray())
        if number >= len(times):
            times.extend(bytes(max(4096, number + 1 - len(times))))
        times[number] = min(255, times[number] + 1)
        self.latencies_ms.append((time.time() - sent) * 1000)
        self.delivered += 1
        self.unacked += 1
        self.last_tag = method.delivery_tag
        if self.unacked >= ACK_EVERY:
            self.ack()

    def ack(self) -> None:
        if self.unacked:
            self.channel.basic_ack(self.last_tag, multiple=True)
            self.acked += self.unacked
            self.unacked = 0

    def run(self, stop: Event) -> None:
        reported = time.monotonic()
        while True:
            before = self.delivered
            self.connection.process_data_events(time_limit=TURN_S)
            self.ack()
            if stop.is_set() and self.is_drained() and self.delivered == before:
                break
            if time.monotonic() - reported >= REPORT_EVERY_S:
                reported = time.monotonic()
                self.report()
        self.report()
        self.reports.put(Seen({publisher: bytes(times) for publisher, times in self.times.items()}))
        self.connection.close()

    def is_drained(self) -> bool:
        empty = self.channel.queue_declare(QUEUE, passive=True).method.message_count == 0
        # What came before that answer is handled first.
        self.connection.process_data_events(time_limit=0)
        return bool(empty)

    def report(self) -> None:
        latencies = tuple(self.latencies_ms)
        self.reports.put(Progress(delivered=self.delivered, acked=self.acked, latencies_ms=latencies))
        self.delivered = self.acked = 0
        self.latencies_ms.clear()

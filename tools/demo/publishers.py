"""The demo's publishers: ordinary pika programs, each in a process of its own.

A publisher keeps a bounded number of messages unconfirmed, and publishes those again, as the next attempt, after it had
to reconnect. Its ledger has the published and the confirmed messages.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPError
from pika.spec import Basic

from pandomq.ledger import Ledger
from tools.demo.connecting import TURN_S, Broker, close, connect
from tools.demo.words import (
    BODY,
    EXCHANGE,
    PADDING,
    QUEUES,
    REPORT_EVERY_S,
    Failed,
    Progress,
    Published,
    Report,
    message_id,
)

UNCONFIRMED_MAX = 1000


def publish(
    brokers: Sequence[Broker],
    publisher: int,
    rate: int,
    ledgers: Path,
    stop: Event,
    end: Event,
    reports: Queue[Report],
) -> None:
    """Publishes at the given rate until it is told to stop, then waits for the missing confirms, at most until the
    end."""
    # ^C reaches the whole group of processes; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Ledger(ledgers / f"publisher-{publisher}.jsonl") as ledger:
            _Publisher(brokers, publisher, ledger, end, reports).run(rate, stop)
    except Exception as error:
        reports.put(Failed(f"publisher {publisher}", repr(error)))


class _Publisher:
    def __init__(
        self, brokers: Sequence[Broker], publisher: int, ledger: Ledger, end: Event, reports: Queue[Report]
    ) -> None:
        self.brokers = brokers
        self.publisher = publisher
        self.ledger = ledger
        self.end = end
        self.reports = reports
        self.attempt = 0
        self.times: list[float] = []
        self.confirmed = self.again = 0
        self.tag = 0
        self.unconfirmed: dict[int, int] = {}
        """Numbers by delivery tag, in order."""
        self.confirm_at = time.monotonic()
        self.pause_s = 0.0
        self.connection: BlockingConnection | None = None

    def open(self) -> BlockingConnection:
        """Connects, and publishes the unconfirmed messages once more."""
        self.connection = connect(self.brokers, self.end)
        # The blocking channel waits for each confirm; the channel under it allows many publishes without a confirm.
        self.channel = self.connection.channel()._impl
        self.channel.confirm_delivery(ack_nack_callback=self.on_confirm)
        # All of them are recorded before the first is sent, because this connection may be lost, too.
        self.unconfirmed = dict(enumerate(self.unconfirmed.values(), start=1))
        self.tag = len(self.unconfirmed)
        self.attempt += 1
        self.again += self.tag
        for number in list(self.unconfirmed.values()):
            self.send(number)
        return self.connection

    def publish_next(self) -> None:
        number = len(self.times)
        self.tag += 1
        self.unconfirmed[self.tag] = number
        self.times.append(time.time())
        self.send(number)

    def send(self, number: int) -> None:
        name, queue = message_id(self.publisher, self.attempt, number), QUEUES[number % len(QUEUES)]
        properties = pika.BasicProperties(delivery_mode=2, content_type="application/octet-stream", message_id=name)
        body = BODY.pack(self.publisher, self.attempt, number, time.time()) + PADDING
        self.ledger.published(name, exchange=EXCHANGE, routing_key=queue, channel=self.attempt)
        self.channel.basic_publish(EXCHANGE, queue, body, properties)

    def on_confirm(self, frame: Any) -> None:
        if not isinstance(frame.method, Basic.Ack):
            raise RuntimeError(f"the broker refused message {frame.method.delivery_tag}")
        tag = frame.method.delivery_tag
        tags = [other for other in self.unconfirmed if other <= tag] if frame.method.multiple else [tag]
        for settled in tags:
            number = self.unconfirmed.pop(settled)
            name, queue = message_id(self.publisher, self.attempt, number), QUEUES[number % len(QUEUES)]
            self.ledger.confirmed(name, exchange=EXCHANGE, routing_key=queue, channel=self.attempt)
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
        self.reports.put(
            Published(self.publisher, len(self.times), tuple(self.unconfirmed.values()), self.again, tuple(self.times))
        )
        if self.connection is not None:
            close(self.connection)

    def publish_due(self, due_at: float, rate: int) -> float:
        """Publishes the messages that are due, and returns when the next one will be due; the publisher does not catch
        up on messages that could not be sent in time."""
        now = time.monotonic()
        while due_at <= now:
            if len(self.unconfirmed) >= UNCONFIRMED_MAX:
                return now
            self.publish_next()
            due_at += 1 / rate
        return max(due_at, now - 1.0)

    def report(self, before: tuple[int, int]) -> tuple[int, int]:
        count = len(self.times)
        self.reports.put(
            Progress(published=count - before[0], confirmed=self.confirmed - before[1], pause_s=self.pause_s)
        )
        self.pause_s = 0.0
        return count, self.confirmed

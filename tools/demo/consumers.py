"""The demo's consumers: pika programs, each in a process of its own, that share the three queues.

A consumer counts how often each message arrived, and how often without the mark `redelivered`. Its ledger has the
messages that it received and acked.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import AMQPError
from pika.spec import Basic

from pandomq.ledger import Ledger
from tools.demo.connecting import TURN_S, Broker, close, connect
from tools.demo.words import (
    BODY,
    QUEUES,
    QUIET_S,
    REPORT_EVERY_S,
    Copy,
    Failed,
    Progress,
    Report,
    Seen,
    count,
    frozen,
    message_id,
)

PREFETCH = 200
ACK_EVERY = 50


def consume(
    brokers: Sequence[Broker], consumer: int, ledgers: Path, stop: Event, end: Event, reports: Queue[Report]
) -> None:
    """Consumes and acks until it is told to stop and no more messages arrive."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Ledger(ledgers / f"consumer-{consumer}.jsonl") as ledger:
            _Consumer(brokers, f"consumer-{consumer}", ledger, end, reports).run(stop)
    except Exception as error:
        reports.put(Failed(f"consumer {consumer}", repr(error)))


class _Consumer:
    def __init__(
        self, brokers: Sequence[Broker], name: str, ledger: Ledger, end: Event, reports: Queue[Report]
    ) -> None:
        self.brokers = brokers
        self.name = name
        self.ledger = ledger
        self.end = end
        self.reports = reports
        self.times: dict[Copy, bytearray] = {}
        self.unmarked: dict[Copy, bytearray] = {}
        self.delivered = self.acked = 0
        self.latencies_ms: list[float] = []
        self.moved_at = time.monotonic()
        self.connection: BlockingConnection | None = None
        self.unacked: list[tuple[str, str]] = []
        """Queues and messages of the next ack."""
        self.last_tag = 0

    def open(self) -> BlockingConnection:
        self.connection = connect(self.brokers, self.end)
        self.channel: BlockingChannel = self.connection.channel()
        # Unacked messages are delivered again.
        self.unacked.clear()
        self.channel.basic_qos(prefetch_count=PREFETCH)
        for name in QUEUES:
            self.channel.basic_consume(name, self.on_message, consumer_tag=f"{self.name} of {name}")
        return self.connection

    def on_message(self, _: BlockingChannel, method: Basic.Deliver, __: pika.BasicProperties, body: bytes) -> None:
        publisher, attempt, number, sent = BODY.unpack_from(body)
        # Each queue is bound with its name.
        queue, name = method.routing_key, message_id(publisher, attempt, number)
        self.ledger.delivered(queue, name, redelivered=method.redelivered)
        count(self.times, (publisher, attempt), number)
        if not method.redelivered:
            count(self.unmarked, (publisher, attempt), number)
        self.latencies_ms.append((time.time() - sent) * 1000)
        self.delivered += 1
        self.unacked.append((queue, name))
        self.last_tag = method.delivery_tag
        self.moved_at = time.monotonic()
        if len(self.unacked) >= ACK_EVERY:
            self.ack()

    def ack(self) -> None:
        if self.unacked:
            for queue, name in self.unacked:
                self.ledger.acked(queue, name)
            self.channel.basic_ack(self.last_tag, multiple=True)
            self.acked += len(self.unacked)
            self.unacked.clear()

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

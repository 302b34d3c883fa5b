"""The demo's readers of the stream: each reads it from the first message on, on any broker.

One starts at the beginning; the other starts at the secondary when much has been published, and reads all of it. A
reader whose broker is lost continues on another one, with the offset after the last one that it received.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import AMQPError
from pika.spec import Basic

from tools.demo.connecting import Broker, close, connect, name_of
from tools.demo.words import (
    BODY,
    QUIET_S,
    REPORT_EVERY_S,
    STREAM,
    Copy,
    Failed,
    Progress,
    Read,
    Report,
    count,
    frozen,
)

PREFETCH = 500
ACK_EVERY = 100
TURN_S = 0.02


def read(brokers: Sequence[Broker], stop: Event, end: Event, reports: Queue[Report]) -> None:
    """Reads until it is told to stop and no more messages arrive."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _Reader(brokers, end, reports).run(stop)
    except Exception as error:
        reports.put(Failed("a reader of the stream", repr(error)))


class _Reader:
    def __init__(self, brokers: Sequence[Broker], end: Event, reports: Queue[Report]) -> None:
        self.brokers = list(brokers)
        self.end = end
        self.reports = reports
        self.times: dict[Copy, bytearray] = {}
        self.broker = ""
        self.next_offset = 0
        self.out_of_order = 0
        self.read = 0
        self.moved_at = time.monotonic()
        self.connection: BlockingConnection | None = None

    def open(self) -> BlockingConnection:
        self.connection = connect(self.brokers, self.end)
        self.broker = name_of(self.connection, self.brokers)
        channel = self.connection.channel()
        channel.basic_qos(prefetch_count=PREFETCH)
        channel.basic_consume(
            STREAM,
            self.on_message,
            arguments={"x-stream-offset": self.next_offset},
            consumer_tag=f"reader at {self.broker}",
        )
        return self.connection

    def on_message(
        self, channel: BlockingChannel, method: Basic.Deliver, properties: pika.BasicProperties, body: bytes
    ) -> None:
        offset = (properties.headers or {})["x-stream-offset"]
        self.out_of_order += offset != self.next_offset
        self.next_offset = offset + 1
        publisher, attempt, number, _sent = BODY.unpack_from(body)
        count(self.times, (publisher, attempt), number)
        self.read += 1
        self.moved_at = time.monotonic()
        if self.next_offset % ACK_EVERY == 0:
            channel.basic_ack(method.delivery_tag, multiple=True)

    def run(self, stop: Event) -> None:
        reported = time.monotonic()
        while not self.end.is_set():
            try:
                connection = self.connection or self.open()
                connection.process_data_events(time_limit=TURN_S)
            except (AMQPError, OSError):
                self.connection = None
                self.moved_at = time.monotonic()
                self.brokers = [*self.brokers[1:], self.brokers[0]]
            if stop.is_set() and time.monotonic() - self.moved_at > QUIET_S:
                break
            if time.monotonic() - reported >= REPORT_EVERY_S:
                reported = time.monotonic()
                self.report()
        self.report()
        self.reports.put(Read(self.broker, self.next_offset, self.out_of_order, frozen(self.times)))
        if self.connection is not None:
            close(self.connection)

    def report(self) -> None:
        self.reports.put(Progress(read=self.read))
        self.read = 0

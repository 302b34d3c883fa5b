"""The demo's subscribers, one for each broker: each has a private queue there, and hears a third of what is published.

They are threads of one process. A subscriber whose broker is lost subscribes at another one: what its queue there is
to hear begins with the first message that comes. So each queue has an account of its own.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError
from pika.spec import Basic

from tools.demo_clients import (
    BODY,
    EXCHANGE,
    QUEUES,
    QUIET_S,
    REPORT_EVERY_S,
    Copy,
    Failed,
    Heard,
    Listened,
    Progress,
    Report,
    Subscribed,
    close,
    connect,
    count,
    frozen,
)

HEARD_KEY = QUEUES[0]
TURN_S = 0.02


def subscribe(places: Sequence[Sequence[str]], stop: Event, end: Event, reports: Queue[Report]) -> None:
    """A subscriber for each list of addresses; all of them listen until told to stop and nothing more comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    subscribers = [threading.Thread(target=_listen, args=(urls, stop, end, reports)) for urls in places]
    for subscriber in subscribers:
        subscriber.start()
    for subscriber in subscribers:
        subscriber.join()
    reports.put(Listened())


def _listen(urls: Sequence[str], stop: Event, end: Event, reports: Queue[Report]) -> None:
    try:
        while not _Subscription(urls, end, reports).lasts(stop):
            # Somewhere else, then, if there is anywhere else.
            urls = [*urls[1:], urls[0]]
    except Exception as error:
        reports.put(Failed("a subscriber", repr(error)))


class _Subscription:
    """A private queue, from its beginning to its end."""

    def __init__(self, urls: Sequence[str], end: Event, reports: Queue[Report]) -> None:
        self.end = end
        self.reports = reports
        self.first: dict[int, int] = {}
        self.times: dict[Copy, bytearray] = {}
        self.heard = 0
        self.moved_at = time.monotonic()
        self.connection = connect(urls, end)

    def lasts(self, stop: Event) -> bool:
        """Whether it lasted until the end."""
        whole = True
        try:
            self.open()
            self.listen(stop)
        except (AMQPError, OSError):
            whole = False
        self.report()
        self.reports.put(Heard(whole, self.first, frozen(self.times)))
        if whole:
            close(self.connection)
        return whole

    def open(self) -> None:
        channel = self.connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, EXCHANGE, HEARD_KEY)
        channel.basic_consume(queue, self.on_message, auto_ack=True)
        self.reports.put(Subscribed())

    def listen(self, stop: Event) -> None:
        reported = time.monotonic()
        while not self.end.is_set():
            self.connection.process_data_events(time_limit=TURN_S)
            if stop.is_set() and time.monotonic() - self.moved_at > QUIET_S:
                return
            if time.monotonic() - reported >= REPORT_EVERY_S:
                reported = time.monotonic()
                self.report()

    def on_message(self, _: BlockingChannel, __: Basic.Deliver, ___: pika.BasicProperties, body: bytes) -> None:
        publisher, attempt, number, _sent = BODY.unpack_from(body)
        self.first.setdefault(publisher, number)
        count(self.times, (publisher, attempt), number)
        self.heard += 1
        self.moved_at = time.monotonic()

    def report(self) -> None:
        self.reports.put(Progress(heard=self.heard))
        self.heard = 0

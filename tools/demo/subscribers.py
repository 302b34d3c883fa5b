"""The demo's subscribers, one for each broker: each has a private queue there, and receives a third of the messages.

They are threads of one process. A subscriber whose broker is lost subscribes at another one. Each private queue has its
own account: it must receive everything that was published after its declaration, so a queue that received nothing is
counted, too.
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

from tools.demo.connecting import Broker, close, connect, name_of
from tools.demo.words import (
    BODY,
    EXCHANGE,
    QUIET_S,
    REPORT_EVERY_S,
    Copy,
    Failed,
    Heard,
    Listened,
    Progress,
    Report,
    Subscribed,
    count,
    frozen,
)

TURN_S = 0.02


Place = tuple[Sequence[Broker], str]
"""The brokers, preferred one first, and the key to bind with."""


def subscribe(places: Sequence[Place], stop: Event, end: Event, reports: Queue[Report]) -> None:
    """Runs a subscriber for each place until they are told to stop and no more messages arrive."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    subscribers = [threading.Thread(target=_listen, args=(*place, stop, end, reports)) for place in places]
    for subscriber in subscribers:
        subscriber.start()
    for subscriber in subscribers:
        subscriber.join()
    reports.put(Listened())


def _listen(brokers: Sequence[Broker], key: str, stop: Event, end: Event, reports: Queue[Report]) -> None:
    try:
        while not _Subscription(brokers, key, end, reports).lasts(stop):
            # The next attempt uses another broker, if there is one.
            brokers = [*brokers[1:], brokers[0]]
    except Exception as error:
        reports.put(Failed("a subscriber", repr(error)))


class _Subscription:
    """A private queue, from its declaration to its end."""

    def __init__(self, brokers: Sequence[Broker], key: str, end: Event, reports: Queue[Report]) -> None:
        self.key = key
        self.end = end
        self.reports = reports
        self.times: dict[Copy, bytearray] = {}
        self.heard = 0
        self.moved_at = time.monotonic()
        self.connection = connect(brokers, end)
        self.broker = name_of(self.connection, brokers)
        self.since = time.time()

    def lasts(self, stop: Event) -> bool:
        """Returns whether it lasted until the end."""
        whole = True
        try:
            self.open()
            self.listen(stop)
        except (AMQPError, OSError):
            whole = False
        self.report()
        self.reports.put(Heard(self.broker, whole, self.since, frozen(self.times)))
        if whole:
            close(self.connection)
        return whole

    def open(self) -> None:
        channel = self.connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, EXCHANGE, self.key)
        channel.basic_consume(queue, self.on_message, auto_ack=True, consumer_tag=f"subscriber at {self.broker}")
        self.since = time.time()
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
        count(self.times, (publisher, attempt), number)
        self.heard += 1
        self.moved_at = time.monotonic()

    def report(self) -> None:
        self.reports.put(Progress(heard=self.heard))
        self.heard = 0

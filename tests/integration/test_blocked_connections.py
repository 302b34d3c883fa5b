"""A broker that runs out of memory: it blocks publishers and tells them, consumers continue, and it recovers by
itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from pika.exceptions import AMQPError

from .pika_mailbox import Mailbox
from .waiting import wait_until
from .watched_broker import WatchedBroker

pytestmark = pytest.mark.only_ours("a foreign broker's memory watermark is not ours to set")

MEMORY_MIB = 8
BODY = b"x" * 65536
ENOUGH_MESSAGES = 1000


@pytest.fixture
def small_broker(tmp_path: Path) -> Iterator[WatchedBroker]:
    process = WatchedBroker(tmp_path, "--memory-mb", str(MEMORY_MIB))
    process.start()
    yield process
    process.check()
    process.stop()


def test_publishers_are_blocked_until_consumers_have_made_room(small_broker: WatchedBroker) -> None:
    parameters = pika.URLParameters(small_broker.url)
    reader = pika.BlockingConnection(parameters)
    reading = reader.channel()
    reading.queue_declare("work")
    events: list[str] = []
    published = 0
    stop = threading.Event()

    def publish() -> None:
        nonlocal published
        connection = pika.BlockingConnection(parameters)
        connection.add_on_connection_blocked_callback(lambda *_: events.append("blocked"))
        connection.add_on_connection_unblocked_callback(lambda *_: events.append("unblocked"))
        channel = connection.channel()
        while not stop.is_set():
            if published < ENOUGH_MESSAGES and (not events or events[-1] == "unblocked"):
                channel.basic_publish("", "work", BODY)
                published += 1
            connection.process_data_events(time_limit=0.001)
        connection.close()

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        wait_until(lambda: "blocked" in events, "connection.blocked")
        held = reading.queue_declare("work", passive=True).method.message_count
        assert held * len(BODY) < 4 * MEMORY_MIB * 1024 * 1024, "memory is bounded"
        mailbox = Mailbox(reading, "work", auto_ack=True)
        mailbox.wait_for(ENOUGH_MESSAGES)
        wait_until(lambda: events[-1] == "unblocked", "connection.unblocked")
    finally:
        stop.set()
        publisher.join()
    assert published == ENOUGH_MESSAGES
    assert len(mailbox.bodies) == ENOUGH_MESSAGES
    reader.close()


def test_a_publisher_that_ignores_connection_blocked_is_held_back_by_tcp(small_broker: WatchedBroker) -> None:
    """It has not announced connection.blocked, or ignores it: its socket fills, and nothing that it sent is lost."""
    parameters = pika.URLParameters(small_broker.url)
    reader = pika.BlockingConnection(parameters)
    reading = reader.channel()
    reading.queue_declare("work")
    sent = 0
    failures: list[Exception] = []

    def publish() -> None:
        nonlocal sent
        try:
            connection = pika.BlockingConnection(parameters)
            channel = connection.channel()
            for _ in range(ENOUGH_MESSAGES):
                channel.basic_publish("", "work", BODY)
                sent += 1
            connection.close()
        except AMQPError as error:
            failures.append(error)

    publisher = threading.Thread(target=publish)
    publisher.start()
    wait_until(lambda: stands_still(lambda: sent), "the publisher's standstill")
    assert 0 < sent < ENOUGH_MESSAGES
    mailbox = Mailbox(reading, "work", auto_ack=True)
    mailbox.wait_for(ENOUGH_MESSAGES)
    publisher.join()
    assert (sent, failures) == (ENOUGH_MESSAGES, [])
    reader.close()


def stands_still(count: Callable[[], int]) -> bool:
    """Whether a counter that ran has stopped for half a second."""
    before = count()
    time.sleep(0.5)
    return bool(before and before == count())

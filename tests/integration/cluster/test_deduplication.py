"""Publishers that number their messages, and repeat all unconfirmed ones, while the root dies: none is lost, and none
is there twice."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable

import pika
import pika.exceptions
import pytest

from tests.integration.waiting import wait_until
from tests.support.client import Address, Connection

from .cluster import Cluster
from .process import PASSWORD, USER, ClusterBroker

QUEUE = "numbered"
BEFORE, AFTER, WINDOW = 75, 75, 25
PATIENCE_S = 60.0

Attempt = Callable[[ClusterBroker, "Resender"], None]


class Resender:
    """Sends numbers, a window at a time; after any error it repeats the whole window at another broker."""

    def __init__(self, name: str, cluster: Cluster, attempt: Attempt, first: int) -> None:
        self.name = name
        self.confirmed = 0
        self.attempts = 0
        self.ending = False
        self.failure: BaseException | None = None
        self._attempt = attempt
        self._brokers = itertools.islice(itertools.cycle(cluster), first, None)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def window(self) -> range:
        return range(self.confirmed, self.confirmed + WINDOW)

    def headers(self, number: int) -> dict[str, object]:
        return {"x-producer": self.name, "x-sequence": number}

    def body(self, number: int) -> bytes:
        return f"{self.name} {number}".encode()

    def _run(self) -> None:
        for broker in self._brokers:
            self.attempts += 1
            try:
                self._attempt(broker, self)
            except (OSError, AssertionError, pika.exceptions.AMQPError):
                time.sleep(0.1)
            except BaseException as failure:
                self.failure = failure
                raise
            if self.ending:
                return

    def end(self) -> None:
        self.ending = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        assert self.failure is None


def transactions(broker: ClusterBroker, sender: Resender) -> None:
    with pika.BlockingConnection(broker.parameters()) as connection:
        channel = connection.channel()
        channel.tx_select()
        while not sender.ending:
            for number in sender.window:
                properties = pika.BasicProperties(headers=sender.headers(number), delivery_mode=2)
                channel.basic_publish("", QUEUE, sender.body(number), properties)
            channel.tx_commit()
            sender.confirmed += WINDOW


def one_by_one(broker: ClusterBroker, sender: Resender) -> None:
    with pika.BlockingConnection(broker.parameters()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        while not sender.ending:
            properties = pika.BasicProperties(headers=sender.headers(sender.confirmed), delivery_mode=2)
            channel.basic_publish("", QUEUE, sender.body(sender.confirmed), properties)
            sender.confirmed += 1


def many_at_once(broker: ClusterBroker, sender: Resender) -> None:
    connection = Connection(Address(broker.host, broker.port, USER, PASSWORD))
    try:
        connection.log_in()
        connection.tune_and_open()
        channel = connection.channel()
        channel.rpc("confirm.select")
        published = 0
        while not sender.ending:
            for number in sender.window:
                channel.publish(sender.body(number), QUEUE, headers=sender.headers(number), delivery_mode=2)
            published += WINDOW
            answers: set[int] = set()
            while len(answers) < WINDOW:
                ack = channel.confirmed()
                first = published - WINDOW + 1 if ack.multiple else ack.delivery_tag
                answers.update(range(first, ack.delivery_tag + 1))
            sender.confirmed += WINDOW
    finally:
        connection.close()


@pytest.mark.proves("R25", "R28")
@pytest.mark.timeout(180)
def test_the_root_dies_and_nothing_is_lost_or_there_twice(proxies: Cluster) -> None:
    root = proxies.root
    setup = pika.BlockingConnection(root.parameters())
    setup.channel().queue_declare(QUEUE, durable=True)
    setup.close()
    senders = [
        Resender(attempt.__name__, proxies, attempt, first)
        for first, attempt in enumerate((transactions, one_by_one, many_at_once))
    ]
    try:
        wait_until(lambda: all(sender.confirmed >= BEFORE for sender in senders), "messages before", PATIENCE_S)
        root.kill()
        proxies.wait_for_root(other_than=root)
        counts = [sender.confirmed for sender in senders]
        wait_until(
            lambda: all(
                sender.confirmed >= count + AFTER or sender.failure
                for sender, count in zip(senders, counts, strict=True)
            ),
            "messages after",
            PATIENCE_S,
        )
    finally:
        for sender in senders:
            sender.ending = True
        for sender in senders:
            sender.end()
        root.launch()
        proxies.wait_until_whole()
    connection = pika.BlockingConnection(proxies.root.parameters())
    channel = connection.channel()
    bodies: Counter[bytes] = Counter()
    for _ in range(channel.queue_declare(QUEUE, passive=True).method.message_count):
        _, _, body = next(channel.consume(QUEUE, auto_ack=True))
        bodies[body] += 1
    channel.queue_delete(QUEUE)
    connection.close()
    assert [body for body, count in bodies.items() if count > 1] == []
    wanted = {sender.body(number) for sender in senders for number in range(sender.confirmed)}
    assert wanted - bodies.keys() == set()
    answer = proxies.root.ask("producers/%2F")
    assert answer is not None
    rows = {row["name"]: row for row in answer.json()}
    for sender in senders:
        assert rows[sender.name]["last_sequence"] >= sender.confirmed - 1
        assert rows[sender.name]["gaps"] == 0

"""Clients at full load around a broker that is killed, the promises that they received, and the check of these
promises.

Promises: a confirmed message is not lost; a message whose ack was proven by a later confirm on its channel does not
come back; first deliveries of one publisher's messages are in its order; a message that may have been delivered before
has `redelivered` set; a transaction is applied as a whole or not at all, and as a whole once it was committed. This
includes transactions that take a message from one queue, reject it to a second, and publish to a third.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import aio_pika
import pika
from aio_pika.abc import AbstractIncomingMessage

from tests.integration.waiting import wait_until_async
from tests.support.process import BrokerProcess

WORK, PROOFS, WHOLE = "work", "proofs", "whole"
SOURCE, REJECTED, MOVED = "source", "rejected", "moved"
TO_REJECTED: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": REJECTED}
WINDOW = 100
PUBLISHERS = 2
TRANSACTION_MESSAGES = 4
ACKS_PER_PROOF = 10
PROGRESS_MIN = 3
"""What each client must have done before the broker is ended."""
END_PATIENCE_S = 1.0
CLEAN_END_EVERY = 4
"""Every so many rounds the broker is asked to end, under load, instead of being killed."""


class Promises:
    """The clients' knowledge, over all lives of the broker."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.confirmed: set[str] = set()
        self.acked: set[str] = set()
        """Messages whose ack was sent, whatever its effect."""
        self.proven: set[str] = set()
        self.delivered: set[str] = set()
        self.committed: set[str] = set()
        self.given: set[str] = set()
        """Messages to be moved, confirmed."""
        self.moved: set[str] = set()
        """Messages whose move was committed."""
        self.broken: list[str] = []
        self._last: dict[str, int] = defaultdict(lambda: -1)
        """The number of each publisher's message that was first delivered last."""

    @property
    def progress(self) -> tuple[set[str], ...]:
        """Grow while all clients are served."""
        return self.confirmed, self.proven, self.committed, self.moved

    def deliver(self, body: str, redelivered: bool) -> None:
        publisher, number = body.split(":")
        if body in self.proven:
            self.broken.append(f"{body} came back after its ack was proven")
        if body in self.delivered and not redelivered:
            self.broken.append(f"{body} was delivered again and does not say so")
        if body not in self.delivered:
            if int(number) < self._last[publisher]:
                self.broken.append(f"{body} was first delivered after {self._last[publisher]}")
            self._last[publisher] = int(number)
        self.delivered.add(body)

    def check_left(self, left: list[tuple[str, bool]], whole: list[str]) -> None:
        """Checks the final content of the queues."""
        for body, redelivered in left:
            self.deliver(body, redelivered)
        lost = self.confirmed - self.acked - {body for body, _ in left}
        self.broken += [f"{body} was confirmed and is lost" for body in sorted(lost)]
        counts: dict[str, int] = defaultdict(int)
        for name in whole:
            counts[name] += 1
        self.broken += [
            f"{count} of {name}'s messages" for name, count in counts.items() if count != TRANSACTION_MESSAGES
        ]
        self.broken += [f"{name} was committed and is lost" for name in sorted(self.committed - counts.keys())]

    def check_moved(self, source: list[str], rejected: list[str], moved: list[str]) -> None:
        """Checks that each message is in its first queue, or in both of the other queues; once, in either case."""
        self.broken += [f"{name} is in {SOURCE} and was moved" for name in source if name in self.moved]
        for name in sorted(self.given | {*source, *rejected, *moved}):
            places = source.count(name), rejected.count(name), moved.count(name)
            if places not in ((1, 0, 0), (0, 1, 1)):
                self.broken.append(f"{name} is in {SOURCE}, {REJECTED} and {MOVED} {places} times")


class Load:
    """The clients of one life of the broker."""

    def __init__(self, broker: BrokerProcess, promises: Promises) -> None:
        self._url = f"amqp://guest:guest@127.0.0.1:{broker.port}/?heartbeat=0"
        self._promises = promises

    async def run(
        self, broker: BrokerProcess, seconds: float, *, cleanly: bool = False, until: Callable[[], bool] | None = None
    ) -> None:
        """Runs until the broker is killed, or asked to end: after that time, and not before each client has made some
        progress and `until` holds."""
        least = [len(what) + PROGRESS_MIN for what in self._promises.progress]

        def enough() -> bool:
            grown = all(len(what) >= count for what, count in zip(self._promises.progress, least, strict=True))
            return grown and (until is None or until())

        clients: list[Awaitable[None]] = [self._publish(f"p{number}") for number in range(PUBLISHERS)]
        clients += [self._consume(), self._transact(), self._move()]
        tasks = [asyncio.ensure_future(client) for client in clients]
        await asyncio.sleep(seconds)
        await wait_until_async(enough, "enough load")
        if cleanly:
            code = await asyncio.to_thread(broker.stop)
            if code != 0:
                self._promises.broken.append(f"it ended with code {code}")
        else:
            broker.kill()
        # Each task ends with the exception of its lost connection.
        _, hanging = await asyncio.wait(tasks, timeout=END_PATIENCE_S)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _publish(self, name: str) -> None:
        connection = await aio_pika.connect(self._url)
        channel = await connection.channel(publisher_confirms=True)
        await channel.declare_queue(WORK, durable=True)
        room = asyncio.Semaphore(WINDOW)

        async def publish(body: str) -> None:
            message = aio_pika.Message(body.encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            try:
                await channel.default_exchange.publish(message, WORK)
                self._promises.confirmed.add(body)
            finally:
                room.release()

        publishing: set[asyncio.Task[None]] = set()
        while not connection.is_closed:
            await room.acquire()
            # Tasks begin in the order in which they are made, and write as they begin.
            task = asyncio.create_task(publish(f"{name}:{next(self._promises.numbers)}"))
            publishing.add(task)
            task.add_done_callback(publishing.discard)
            # The effects of a lost connection on publishes under way are expected.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _consume(self) -> None:
        connection = await aio_pika.connect(self._url)
        channel = await connection.channel(publisher_confirms=True)
        await channel.set_qos(prefetch_count=WINDOW)
        queue = await channel.declare_queue(WORK, durable=True)
        await channel.declare_queue(PROOFS, durable=True, arguments={"x-max-length": 10})
        inbox: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        await queue.consume(inbox.put)
        unproven: set[str] = set()
        while not connection.is_closed:
            message = await asyncio.wait_for(inbox.get(), END_PATIENCE_S)
            body = message.body.decode()
            self._promises.deliver(body, bool(message.redelivered))
            self._promises.acked.add(body)
            await message.ack()
            unproven.add(body)
            if len(unproven) >= ACKS_PER_PROOF:
                proof = aio_pika.Message(b"", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                await channel.default_exchange.publish(proof, PROOFS)
                self._promises.proven |= unproven
                unproven.clear()

    async def _transact(self) -> None:
        connection = await aio_pika.connect(self._url)
        channel = await connection.channel(publisher_confirms=False)
        await channel.declare_queue(WHOLE, durable=True)
        while not connection.is_closed:
            name = f"t{next(self._promises.numbers)}"
            async with channel.transaction():
                for _ in range(TRANSACTION_MESSAGES):
                    message = aio_pika.Message(name.encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                    await channel.default_exchange.publish(message, WHOLE)
            self._promises.committed.add(name)

    async def _move(self) -> None:
        connection = await aio_pika.connect(self._url)
        giving = await connection.channel(publisher_confirms=True)
        moving = await connection.channel(publisher_confirms=False)
        source = await moving.declare_queue(SOURCE, durable=True, arguments=TO_REJECTED)
        for queue in (REJECTED, MOVED):
            await moving.declare_queue(queue, durable=True)
        while not connection.is_closed:
            given = f"m{next(self._promises.numbers)}"
            message = aio_pika.Message(given.encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await giving.default_exchange.publish(message, SOURCE)
            self._promises.given.add(given)
            async with moving.transaction():
                taken = await source.get()
                moved = aio_pika.Message(taken.body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
                await moving.default_exchange.publish(moved, MOVED)
                await taken.reject(requeue=False)
            self._promises.moved.add(taken.body.decode())


def kill_rounds(broker: BrokerProcess, rounds: int, seed: int) -> Promises:
    """Ends and restarts the broker that often, and returns the checked promises."""
    moments = random.Random(seed)
    promises = Promises()
    for number in range(rounds):
        broker.start()
        load = Load(broker, promises)
        asyncio.run(load.run(broker, moments.uniform(0.2, 1.5), cleanly=number % CLEAN_END_EVERY == 1))
        # The sockets of the client are collected now, and not during another test.
        gc.collect()
    broker.start()
    promises.check_left(drain(broker, WORK), bodies(broker, WHOLE))
    promises.check_moved(bodies(broker, SOURCE, TO_REJECTED), bodies(broker, REJECTED), bodies(broker, MOVED))
    return promises


def bodies(broker: BrokerProcess, queue: str, arguments: dict[str, Any] | None = None) -> list[str]:
    return [body for body, _ in drain(broker, queue, arguments)]


def drain(broker: BrokerProcess, queue: str, arguments: dict[str, Any] | None = None) -> list[tuple[str, bool]]:
    """Returns the bodies, each with whether `redelivered` is set."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
    channel = connection.channel()
    channel.queue_declare(queue, durable=True, arguments=arguments)
    left: list[tuple[str, bool]] = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None or body is None:
            connection.close()
            return left
        left.append((body.decode(), bool(method.redelivered)))

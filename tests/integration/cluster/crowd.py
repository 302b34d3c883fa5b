"""Thousands of subscribers, each on a connection with a private queue of its own, spread over all brokers.

They implement just enough AMQP to subscribe, and keep the received numbers. A subscriber that loses its connection does
not reconnect: only subscribers whose broker survives count. The publisher is a client like any other, on any broker.
"""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pika
import uvloop

from pandomq.methods import (
    BasicConsume,
    ChannelOpen,
    ConnectionOpen,
    ConnectionStartOk,
    ConnectionTuneOk,
    QueueBind,
    QueueDeclare,
)
from pandomq.wire.codec import BODY_FRAME, FRAME_START, encode_frame

from .process import PASSWORD, USER, ClusterBroker

EXCHANGE = "crowd"
NUMBER = struct.Struct(">Q")
CONSUME_OK = b"\x00\x3c\x00\x15"
"""The first bytes of consume-ok; from now on the subscriber receives everything."""
CHANNEL = 1
COMING_MAX = 200
"""The number of subscribers that connect at a time."""
PUBLISH_EVERY_S = 0.05

GREETING = (
    b"AMQP\x00\x00\x09\x01"
    + encode_frame(0, ConnectionStartOk({}, "PLAIN", f"\0{USER}\0{PASSWORD}".encode(), "en_US"))
    + encode_frame(0, ConnectionTuneOk(CHANNEL, 131072, 0))
    + encode_frame(0, ConnectionOpen("/"))
    + encode_frame(CHANNEL, ChannelOpen())
    + encode_frame(CHANNEL, QueueDeclare("", exclusive=True))
    + encode_frame(CHANNEL, QueueBind("", EXCHANGE, ""))
    + encode_frame(CHANNEL, BasicConsume("", "", no_ack=True))
)


class Subscriber(asyncio.Protocol):
    def __init__(self, broker: str) -> None:
        self.broker = broker
        self.heard: list[int] = []
        self.inside: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost = False
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(GREETING)

    def data_received(self, data: bytes) -> None:
        data = self._unread + data
        offset, size = 0, len(data)
        while size - offset >= FRAME_START.size:
            kind, _, length = FRAME_START.unpack_from(data, offset)
            start = offset + FRAME_START.size
            if start + length >= size:
                break
            offset = start + length + 1
            if kind == BODY_FRAME:
                self.heard.append(NUMBER.unpack_from(data, start)[0])
            elif data.startswith(CONSUME_OK, start) and not self.inside.done():
                self.inside.set_result(None)
        self._unread = data[offset:]

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if not self.inside.done():
            self.inside.set_exception(ConnectionError(f"refused by {self.broker}: {self._unread!r}"))


class Crowd:
    """`subscribe` returns when all are subscribed; their numbers arrive meanwhile, on a thread of its own."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="crowd")
        self._thread.start()

    def subscribe(self, brokers: Sequence[ClusterBroker], count: int, patience_s: float) -> None:
        """Connects so many in total, spread evenly."""
        asyncio.run_coroutine_threadsafe(self._subscribe(brokers, count), self._loop).result(patience_s)

    async def _subscribe(self, brokers: Sequence[ClusterBroker], count: int) -> None:
        room = asyncio.Semaphore(COMING_MAX)

        async def one(broker: ClusterBroker) -> None:
            async with room:
                _, subscriber = await self._loop.create_connection(
                    lambda: Subscriber(broker.name), broker.host, broker.port
                )
                self._subscribers.append(subscriber)
                await subscriber.inside

        await asyncio.gather(*(one(brokers[number % len(brokers)]) for number in range(count)))

    def close(self) -> None:
        async def end() -> None:
            for subscriber in self._subscribers:
                subscriber.transport.abort()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # Received numbers.

    def of(self, broker: str) -> list[Subscriber]:
        return [subscriber for subscriber in self._subscribers if subscriber.broker == broker]

    def lacking(self, brokers: Sequence[ClusterBroker], numbers: set[int]) -> int:
        """Returns how many deliveries are missing at the subscribers of these brokers."""
        names = {broker.name for broker in brokers}
        return sum(
            len(numbers.difference(subscriber.heard)) for subscriber in self._subscribers if subscriber.broker in names
        )

    def wait_for(self, brokers: Sequence[ClusterBroker], numbers: set[int], patience_s: float) -> None:
        end = time.monotonic() + patience_s
        while missing := self.lacking(brokers, numbers):
            assert time.monotonic() < end, f"{missing} deliveries are missing: {self.story(brokers, numbers)}"
            time.sleep(0.2)

    def check(self, brokers: Sequence[ClusterBroker], numbers: set[int]) -> None:
        """Checks that each received each of these once, none twice, all in order, and kept its connection."""
        names = {broker.name for broker in brokers}
        for subscriber in self._subscribers:
            if subscriber.broker not in names:
                continue
            assert not subscriber.lost, f"a subscriber at {subscriber.broker} lost its connection"
            twice = [number for number, count in Counter(subscriber.heard).items() if count > 1]
            assert not twice, f"heard twice at {subscriber.broker}: {twice}"
            assert subscriber.heard == sorted(subscriber.heard), f"out of order at {subscriber.broker}"
            missing = numbers.difference(subscriber.heard)
            assert not missing, f"confirmed, and not heard at {subscriber.broker}: {sorted(missing)[:10]}"

    def story(self, brokers: Sequence[ClusterBroker], numbers: set[int]) -> str:
        parts = []
        for broker in brokers:
            there = self.of(broker.name)
            lacks = sorted({number for one in there for number in numbers.difference(one.heard)})
            parts.append(f"{broker.name}: {len(there)} subscribers, lacking {lacks[:5]}")
        return "; ".join(parts)


class Publisher:
    """Publishes numbers on one broker until it is closed, and knows the confirmed ones. It connects once."""

    def __init__(self, broker: ClusterBroker) -> None:
        self._connection = pika.BlockingConnection(broker.parameters(heartbeat=0))
        self._channel = self._connection.channel()
        self._channel.exchange_declare(EXCHANGE, "fanout")
        self._channel.confirm_delivery()
        self._ending = False
        self.confirmed_count = 0
        """Confirms arrive one by one: these are the numbers below it."""
        self._thread = threading.Thread(target=self._run, name="publisher")

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._ending:
            self._channel.basic_publish(EXCHANGE, "", NUMBER.pack(self.confirmed_count))
            self.confirmed_count += 1
            time.sleep(PUBLISH_EVERY_S)

    def wait_for(self, count: int, patience_s: float) -> None:
        """Waits until so many more are confirmed."""
        wanted, end = self.confirmed_count + count, time.monotonic() + patience_s
        while self.confirmed_count < wanted:
            assert self._thread.is_alive(), "the publisher lost its connection"
            assert time.monotonic() < end, f"{wanted - self.confirmed_count} publishes are not confirmed"
            time.sleep(0.02)

    def stop(self, patience_s: float) -> None:
        self._ending = True
        self._thread.join(patience_s)
        assert not self._thread.is_alive(), "the last publish is not confirmed"
        self._connection.close()

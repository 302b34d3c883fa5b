"""Transactions on aio-pika: one client publishes several messages at once, one moves a message by reject and publish.

An error, or the end of a connection, in the middle leaves a transaction in doubt: whole or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import aio_pika

from .account import TransactionLedger
from .balancer import Balancer
from .process import PASSWORD, USER
from .robust_clients import CLOSE_PATIENCE_S, LOST, PUBLISH_PATIENCE_S, RECONNECT_S

TRANSACTION_MESSAGES = 4
PACE_S = 0.01


class Places:
    """The names of the queues."""

    def __init__(self, prefix: str) -> None:
        self.whole, self.source = f"{prefix}.whole", f"{prefix}.source"
        self.rejected, self.moved = f"{prefix}.rejected", f"{prefix}.moved"
        self.source_arguments: dict[str, Any] = {
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.rejected,
        }


class TransactionClient:
    def __init__(self, balancer: Balancer, ledger: TransactionLedger, places: Places) -> None:
        self._balancer = balancer
        self.ledger = ledger
        self._places = places
        self.ending = False

    async def run(self) -> None:
        while not self.ending:
            try:
                connection = await aio_pika.connect(
                    host="127.0.0.1",
                    port=self._balancer.port,
                    login=USER,
                    password=PASSWORD,
                    timeout=PUBLISH_PATIENCE_S,
                )
            except LOST:
                await asyncio.sleep(RECONNECT_S)
                continue
            try:
                await self._work(connection)
            except LOST:
                self.ledger.errors += 1
            finally:
                with contextlib.suppress(*LOST):
                    await asyncio.wait_for(connection.close(), CLOSE_PATIENCE_S)

    async def _work(self, connection: Any) -> None:
        raise NotImplementedError


class WholePublisher(TransactionClient):
    async def _work(self, connection: Any) -> None:
        channel = await connection.channel(publisher_confirms=False)
        await channel.declare_queue(self._places.whole, durable=True)
        while not self.ending:
            name = self.ledger.name("t")
            async with asyncio.timeout(PUBLISH_PATIENCE_S), channel.transaction():
                for place in range(TRANSACTION_MESSAGES):
                    # One persistent message determines the level of all: a transaction has its highest level.
                    message = _persistent(name) if place % 2 else aio_pika.Message(name.encode())
                    await channel.default_exchange.publish(message, self._places.whole)
            self.ledger.committed.add(name)
            await asyncio.sleep(PACE_S)


class Mover(TransactionClient):
    async def _work(self, connection: Any) -> None:
        giving = await connection.channel(publisher_confirms=True)
        moving = await connection.channel(publisher_confirms=False)
        source = await moving.declare_queue(self._places.source, durable=True, arguments=self._places.source_arguments)
        for queue in (self._places.rejected, self._places.moved):
            await moving.declare_queue(queue, durable=True)
        while not self.ending:
            async with asyncio.timeout(PUBLISH_PATIENCE_S):
                given = self.ledger.name("m")
                await giving.default_exchange.publish(_persistent(given), self._places.source)
                self.ledger.given.add(given)
                async with moving.transaction():
                    taken = await source.get()
                    await moving.default_exchange.publish(_persistent(taken.body.decode()), self._places.moved)
                    await taken.reject(requeue=False)
                self.ledger.moved.add(taken.body.decode())
            await asyncio.sleep(PACE_S)


def _persistent(body: str) -> aio_pika.Message:
    return aio_pika.Message(body.encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)

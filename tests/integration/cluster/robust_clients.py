"""A publisher and a consumer on aio-pika's robust connection, which know one address: that of a load balancer.

The connection is restored by itself, with its queues and consumers; requests under way at its loss are in doubt.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractRobustConnection
from aiormq.exceptions import AMQPError

from .account import Ledger
from .balancer import Balancer
from .process import PASSWORD, USER

RECONNECT_S = 0.1
PUBLISH_PATIENCE_S = 15.0
CLOSE_PATIENCE_S = 5.0
PACE_S = 0.005
ACKS_PER_PROOF = 10
PREFETCH = 100
LOST = (AMQPError, OSError, TimeoutError, RuntimeError, asyncio.CancelledError)
"""The exceptions with which a publish may end when its connection is lost: aio-pika also cancels, and reports a channel
as invalid."""


class RobustClient:
    def __init__(self, balancer: Balancer, ledger: Ledger, arguments: dict[str, Any]) -> None:
        self._balancer = balancer
        self.ledger = ledger
        self._arguments = arguments
        self.ending = False
        self.connections = 0

    async def run(self) -> None:
        connection = await self._connect()
        connection.reconnect_callbacks.add(self._count)
        self.connections += 1
        try:
            await self._work(connection)
        finally:
            with contextlib.suppress(*LOST):
                await asyncio.wait_for(connection.close(), CLOSE_PATIENCE_S)

    async def _connect(self) -> AbstractRobustConnection:
        """The connection is robust only after the first connect; until then it is retried here."""
        while True:
            try:
                return await aio_pika.connect_robust(
                    host="127.0.0.1",
                    port=self._balancer.port,
                    login=USER,
                    password=PASSWORD,
                    reconnect_interval=RECONNECT_S,
                    timeout=PUBLISH_PATIENCE_S,
                )
            except LOST:
                if self.ending:
                    raise
                await asyncio.sleep(RECONNECT_S)

    def _count(self, *_: object) -> None:
        self.connections += 1

    async def _work(self, connection: AbstractRobustConnection) -> None:
        raise NotImplementedError


class RobustPublisher(RobustClient):
    """Publishes one message at a time, so that its order is certain."""

    def __init__(self, balancer: Balancer, ledger: Ledger, arguments: dict[str, Any], name: str) -> None:
        super().__init__(balancer, ledger, arguments)
        self._name = name

    async def _work(self, connection: AbstractRobustConnection) -> None:
        channel = await connection.channel(publisher_confirms=True)
        await channel.declare_queue(self.ledger.queue, durable=True, arguments=self._arguments)
        while not self.ending:
            await self._publish(channel)
            await asyncio.sleep(PACE_S)

    async def _publish(self, channel: AbstractChannel) -> None:
        body = self.ledger.send(self._name)
        message = aio_pika.Message(body.encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        try:
            async with asyncio.timeout(PUBLISH_PATIENCE_S):
                await channel.default_exchange.publish(message, self.ledger.queue)
        except aio_pika.exceptions.DeliveryError:
            self.ledger.refused.add(body)
        except LOST:
            await asyncio.sleep(RECONNECT_S)
        else:
            self.ledger.confirm(body)


class RobustConsumer(RobustClient):
    """Acks, and now and then publishes on the same channel: the confirm proves the acks before it."""

    async def _work(self, connection: AbstractRobustConnection) -> None:
        channel = await connection.channel(publisher_confirms=True)
        await channel.set_qos(prefetch_count=PREFETCH)
        proofs = f"{self.ledger.queue}.proofs"
        queue = await channel.declare_queue(self.ledger.queue, durable=True, arguments=self._arguments)
        await channel.declare_queue(proofs, durable=True, arguments={"x-max-length": 10} | self._arguments)
        unproven: dict[Any, set[str]] = defaultdict(set)
        inbox: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        await queue.consume(inbox.put)
        while not self.ending:
            with contextlib.suppress(TimeoutError):
                message = await asyncio.wait_for(inbox.get(), 0.2)
                with contextlib.suppress(*LOST):
                    await self._take(message, unproven, proofs)

    async def _take(self, message: AbstractIncomingMessage, unproven: dict[Any, set[str]], proofs: str) -> None:
        body = message.body.decode()
        self.ledger.receive(body, bool(message.redelivered))
        self.ledger.acked.add(body)
        # Not the robust channel but its current inner channel: a confirm on another one would prove nothing.
        channel = message.channel
        await message.ack()
        unproven[channel].add(body)
        if len(unproven[channel]) >= ACKS_PER_PROOF:
            proof, unproven[channel] = unproven[channel], set()
            properties = aio_pika.Message(b"", delivery_mode=aio_pika.DeliveryMode.PERSISTENT).properties
            async with asyncio.timeout(PUBLISH_PATIENCE_S):
                await channel.basic_publish(b"", routing_key=proofs, properties=properties)
            self.ledger.proven |= proof

"""Frequent actions of aio-pika tests: open a channel, receive messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractQueue

from .broker_under_test import BrokerUnderTest
from .waiting import PATIENCE_S


@asynccontextmanager
async def opened(broker: BrokerUnderTest, **options: Any) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(broker.url)
    async with connection:
        yield await connection.channel(**options)


async def collect(queue: AbstractQueue, count: int) -> list[bytes]:
    bodies: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S), queue.iterator() as messages:
        async for message in messages:
            async with message.process():
                bodies.append(message.body)
            if len(bodies) == count:
                break
    return bodies

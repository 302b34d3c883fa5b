"""aio-pika: confirms, returns, nacks, transactions, errors, many connections at once."""

from __future__ import annotations

import asyncio
from typing import Any

import aio_pika
import pytest
from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import (
    AMQPConnectionError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    ProbableAuthenticationError,
    QueueEmpty,
)
from aiormq.exceptions import ChannelAccessRefused, ChannelLockedResource

from .aio_pika_mailbox import collect, opened
from .broker_under_test import BrokerUnderTest, Names
from .waiting import PATIENCE_S, wait_until_async


async def test_a_thousand_confirms_at_once(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as channel:
        queue = await channel.declare_queue(names.queue())
        publishes = (channel.default_exchange.publish(Message(str(n).encode()), queue.name) for n in range(1000))
        confirms = await asyncio.wait_for(asyncio.gather(*publishes), PATIENCE_S)
        assert all(confirms)
        assert await collect(queue, 1000) == [str(n).encode() for n in range(1000)]


async def test_an_unroutable_message_raises(broker: BrokerUnderTest) -> None:
    async with opened(broker, publisher_confirms=True, on_return_raises=True) as channel:
        with pytest.raises(DeliveryError):
            await channel.default_exchange.publish(Message(b"m"), "it.nowhere", mandatory=True)
        # A publish that is not mandatory is confirmed all the same.
        await channel.default_exchange.publish(Message(b"m"), "it.nowhere", mandatory=False)


async def test_a_nack_raises(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as channel:
        arguments: dict[str, Any] = {"x-max-length": 1, "x-overflow": "reject-publish"}
        queue = await channel.declare_queue(names.queue(), arguments=arguments)
        await channel.default_exchange.publish(Message(b"fits"), queue.name)
        with pytest.raises(DeliveryError):
            await channel.default_exchange.publish(Message(b"does not"), queue.name)
        assert await collect(queue, 1) == [b"fits"]


async def test_transactions(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker, publisher_confirms=False) as channel, opened(broker) as reader:
        queue = await reader.declare_queue(names.queue())
        async with channel.transaction():
            await channel.default_exchange.publish(Message(b"committed"), queue.name)
            assert await queue.get(fail=False) is None
        undone = channel.transaction()
        await undone.select()
        await channel.default_exchange.publish(Message(b"rolled back"), queue.name)
        await undone.rollback()
        assert await collect(queue, 1) == [b"committed"]
        assert await queue.get(fail=False) is None


async def test_errors_have_their_own_exceptions(broker: BrokerUnderTest, names: Names) -> None:
    connection = await aio_pika.connect(broker.url)
    other = await aio_pika.connect(broker.url)
    async with connection, other:
        private = names.queue("private")
        channel = await connection.channel()
        await channel.declare_queue(private, exclusive=True)
        plain = await channel.declare_queue(names.queue())
        with pytest.raises(ChannelNotFoundEntity):
            await (await connection.channel()).declare_queue("it.missing", passive=True)
        with pytest.raises(ChannelPreconditionFailed):
            await (await connection.channel()).declare_queue(plain.name, durable=True)
        with pytest.raises(ChannelAccessRefused):
            await (await connection.channel()).declare_queue("amq.mine")
        with pytest.raises(ChannelLockedResource):
            await (await other.channel()).declare_queue(private, exclusive=True)
        with pytest.raises(QueueEmpty):
            await plain.get()
        assert not connection.is_closed


async def test_a_wrong_password(broker: BrokerUnderTest) -> None:
    with pytest.raises((ProbableAuthenticationError, AMQPConnectionError)):
        await aio_pika.connect(broker.url.replace(":guest@", ":wrong@"))


async def test_nack_and_reject(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as channel:
        queue = await channel.declare_queue(names.queue())
        for number in range(3):
            await channel.default_exchange.publish(Message(str(number).encode()), queue.name)
        first, second, third = [await queue.get() for _ in range(3)]
        await first.nack(requeue=True)
        await second.reject(requeue=False)
        await third.reject(requeue=True)
        assert await collect(queue, 2) == [b"0", b"2"]


async def test_a_channel_that_failed_does_not_hurt_its_neighbour(broker: BrokerUnderTest, names: Names) -> None:
    connection = await aio_pika.connect(broker.url)
    async with connection:
        good, bad = await connection.channel(), await connection.channel()
        queue = await good.declare_queue(names.queue())
        with pytest.raises(ChannelNotFoundEntity):
            await bad.get_exchange("it.missing")
        await good.default_exchange.publish(Message(b"m"), queue.name)
        assert await collect(queue, 1) == [b"m"]


async def test_300_connections_at_once(broker: BrokerUnderTest, names: Names) -> None:
    """Each with a channel, a private queue and a consumer; a broadcast reaches all."""
    received: list[AbstractIncomingMessage] = []

    async def on_message(message: AbstractIncomingMessage) -> None:
        received.append(message)

    exchange_name = names.exchange("broadcast")
    async with opened(broker) as channel:
        exchange = await channel.declare_exchange(exchange_name, ExchangeType.FANOUT)
        connections = await asyncio.gather(*(aio_pika.connect(broker.url) for _ in range(300)))

        async def subscribe(connection: aio_pika.abc.AbstractConnection) -> None:
            queue = await (await connection.channel()).declare_queue(exclusive=True)
            await queue.bind(exchange_name)
            await queue.consume(on_message, no_ack=True)

        await asyncio.gather(*map(subscribe, connections))
        await exchange.publish(Message(b"to all"), "")
        await wait_until_async(lambda: len(received) == 300, "300 deliveries")
        await asyncio.gather(*(connection.close() for connection in connections))

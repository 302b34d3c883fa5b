"""aio-pika's robust connections: they reconnect by themselves, with their queues, bindings and consumers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aio_pika
import pytest
from aio_pika import ExchangeType, Message
from aio_pika.abc import AbstractIncomingMessage, AbstractRobustConnection
from aio_pika.exceptions import AMQPConnectionError

from .aio_pika_mailbox import opened
from .broker_under_test import BrokerUnderTest, Names
from .cable import Cable
from .waiting import PATIENCE_S, wait_until_async
from .watched_broker import WatchedBroker

AT_ONCE = 0.05
"""How long a robust connection waits before it tries again, in seconds."""


async def test_a_robust_connection_recovers_from_a_cut(broker: BrokerUnderTest, names: Names) -> None:
    received: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
    with Cable(broker.host, broker.port) as cable:
        connection = await aio_pika.connect_robust(broker.url_at(cable.port), reconnect_interval=AT_ONCE)
        async with connection, opened(broker) as outside:
            again = restored(connection)
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=5)
            exchange = await channel.declare_exchange(names.exchange(), ExchangeType.TOPIC)
            queue = await channel.declare_queue(names.queue(), auto_delete=False)
            private = await channel.declare_queue(exclusive=True)
            for bound in (queue, private):
                await bound.bind(exchange, "news.#")
                await bound.consume(received.put)
            for _ in range(3):
                again.clear()
                cable.cut()
                await asyncio.wait_for(again.wait(), PATIENCE_S)
                there = await outside.get_exchange(exchange.name)
                await there.publish(Message(b"after the cut"), "news.today")
                both = [await asyncio.wait_for(received.get(), PATIENCE_S) for _ in range(2)]
                assert [message.body for message in both] == [b"after the cut"] * 2
                for message in both:
                    await message.ack()
                # The answer proves that the acks arrived, so that the next cut causes no redelivery.
                await queue.declare()


def restored(connection: AbstractRobustConnection) -> asyncio.Event:
    """Set when the connection is restored with all its channels, queues, bindings and consumers."""
    again = asyncio.Event()
    connection.reconnect_callbacks.add(lambda _: again.set())
    return again


async def test_a_robust_connection_waits_while_the_broker_cannot_be_reached(
    broker: BrokerUnderTest, names: Names
) -> None:
    with Cable(broker.host, broker.port) as cable:
        connection = await aio_pika.connect_robust(broker.url_at(cable.port), reconnect_interval=AT_ONCE)
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue(names.queue())
            cable.unplug()
            await wait_until_async(lambda: not connection.connected.is_set(), "the loss")
            again = restored(connection)
            cable.plug()
            await asyncio.wait_for(again.wait(), PATIENCE_S)
            await channel.default_exchange.publish(Message(b"m"), queue.name)
            message = await queue.get()
            assert message.body == b"m"
            await message.ack()


async def test_a_robust_connection_recovers_after_the_broker_closed_it(broker: BrokerUnderTest, names: Names) -> None:
    connection = await aio_pika.connect_robust(broker.url, reconnect_interval=AT_ONCE)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(names.queue())
        again = restored(connection)
        culprit = await (await connection.channel()).get_underlay_channel()
        with pytest.raises(AMQPConnectionError):
            # Not implemented by any broker of this kind, hence an error of the whole connection.
            await culprit.basic_recover(requeue=False)
        await asyncio.wait_for(again.wait(), PATIENCE_S)
        await channel.default_exchange.publish(Message(b"m"), queue.name)
        message = await queue.get()
        assert message.body == b"m"
        await message.ack()


async def test_unacked_messages_come_back_redelivered(broker: BrokerUnderTest, names: Names) -> None:
    received: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
    with Cable(broker.host, broker.port) as cable:
        connection = await aio_pika.connect_robust(broker.url_at(cable.port), reconnect_interval=AT_ONCE)
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue(names.queue())
            await queue.consume(received.put)
            await channel.default_exchange.publish(Message(b"m"), queue.name)
            first = await asyncio.wait_for(received.get(), PATIENCE_S)
            assert not first.redelivered
            cable.cut()
            again = await asyncio.wait_for(received.get(), PATIENCE_S)
            assert (again.body, again.redelivered) == (b"m", True)
            await again.ack()


@pytest.mark.only_ours("a foreign broker is not ours to kill")
async def test_a_robust_connection_recovers_when_the_broker_is_killed_and_started_again(
    tmp_path: Path, names: Names
) -> None:
    received: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
    process = WatchedBroker(tmp_path)
    process.start()
    try:
        connection = await aio_pika.connect_robust(process.url, reconnect_interval=AT_ONCE)
        async with connection:
            channel = await connection.channel()
            exchange = await channel.declare_exchange("news", ExchangeType.FANOUT)
            queue = await channel.declare_queue("readers", auto_delete=True)
            await queue.bind(exchange)
            await queue.consume(received.put)
            process.kill()
            await wait_until_async(lambda: not connection.connected.is_set(), "the loss")
            again = restored(connection)
            process.start()
            await asyncio.wait_for(again.wait(), PATIENCE_S)
            await exchange.publish(Message(b"after the restart"), "")
            message = await asyncio.wait_for(received.get(), PATIENCE_S)
            assert message.body == b"after the restart"
            await message.ack()
    finally:
        process.stop()


@pytest.mark.only_ours("a foreign broker is not ours to stop")
async def test_a_broker_that_stops_closes_its_connections_with_a_reason(tmp_path: Path) -> None:
    process = WatchedBroker(tmp_path)
    process.start()
    connection = await aio_pika.connect(process.url)
    closed: asyncio.Queue[object] = asyncio.Queue()
    connection.close_callbacks.add(lambda _, reason: closed.put_nowait(reason))
    await connection.channel()
    await asyncio.to_thread(process.stop)
    reason = await asyncio.wait_for(closed.get(), PATIENCE_S)
    assert "320" in repr(reason) or "CONNECTION_FORCED" in repr(reason)

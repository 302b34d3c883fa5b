"""Streams, as clients of pika and aio-pika use them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pika
import pytest
from aio_pika import Message
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from .aio_pika_mailbox import opened
from .broker_under_test import BrokerUnderTest, Names
from .conftest import Connect
from .stream_reader import StreamReader, declare, fill_confirmed
from .waiting import PATIENCE_S


def test_readers_begin_where_they_want_to(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    stream = names.queue()
    declare(channel, stream)
    fill_confirmed(channel, stream, 0, 100)
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    wishes: list[tuple[Any, int]] = [("first", 0), (50, 50), ("last", 99), (an_hour_ago, 0), ("10m", 0)]
    for offset, first in wishes:
        reader = StreamReader(connect().channel(), stream, offset)
        assert reader.read_to(100) == list(range(first, 100))
        assert reader.numbers == reader.offsets


def test_a_reader_follows(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    stream = names.queue()
    declare(channel, stream)
    reader = StreamReader(connect().channel(), stream, "next", prefetch=3)
    for first in range(0, 100, 20):
        fill_confirmed(channel, stream, first, first + 20)
        reader.wait_for(first + 20)
    assert reader.numbers == list(range(100))


def test_methods_that_do_not_fit_a_stream_are_refused(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    stream = names.queue()
    declare(channel, stream)
    with pytest.raises(ChannelClosedByBroker, match="prefetch count is not set"):
        channel.basic_consume(stream, lambda *_: None)
    other = connect().channel()
    with pytest.raises(ConnectionClosedByBroker, match=r"basic\.get not supported by stream queues"):
        other.basic_get(stream)


async def test_aio_pika_reads_a_stream(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as channel:
        await channel.set_qos(prefetch_count=100)
        stream = await channel.declare_queue(names.queue(), durable=True, arguments={"x-queue-type": "stream"})
        for number in range(200):
            await channel.default_exchange.publish(Message(b"%d" % number, headers={"n": number}), stream.name)
        for first in (0, 150):
            found: list[int] = []
            arguments = {"x-stream-offset": first}
            async with asyncio.timeout(PATIENCE_S), stream.iterator(arguments=arguments) as messages:
                async for message in messages:
                    async with message.process():
                        assert int(message.body) == message.headers["x-stream-offset"] == message.headers["n"]
                        found.append(int(message.body))
                    if found[-1] == 199:
                        break
            assert found == list(range(first, 200))


@pytest.mark.only_ours("filters are exact here, and of whole chunks elsewhere")
def test_filters(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    stream = names.queue()
    declare(channel, stream)
    channel.confirm_delivery()
    for number in range(30):
        properties = pika.BasicProperties(headers={"x-stream-filter-value": ("red", "green", "blue")[number % 3]})
        channel.basic_publish("", stream, b"%d" % number, properties)
    reader = connect().channel()
    reader.basic_qos(prefetch_count=10)
    arguments: dict[str, Any] = {"x-stream-offset": "first", "x-stream-filter": ["red", "blue"]}
    found: list[int] = []
    for method, _, body in reader.consume(stream, arguments=arguments):
        found.append(int(body))
        reader.basic_ack(method.delivery_tag)
        if found[-1] == 29:
            break
    assert found == [number for number in range(30) if number % 3 != 1]

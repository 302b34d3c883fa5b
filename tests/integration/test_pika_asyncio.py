"""pika's AsyncioConnection: the tutorials' patterns, confirms, transactions, errors, reconnects."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pika import BasicProperties
from pika.channel import Channel
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    ProbableAuthenticationError,
)
from pika.spec import Basic

from .broker_under_test import BrokerUnderTest, Names
from .cable import Cable
from .pika_asyncio import asyncio_channel, called, open_channel, open_connection
from .waiting import wait_until_async


async def declare(channel: Channel, queue: str, **options: Any) -> str:
    frame = await called(lambda callback: channel.queue_declare(queue, callback=callback, **options))
    return str(frame.method.queue)


async def consume(channel: Channel, queue: str, **options: Any) -> list[tuple[Basic.Deliver, BasicProperties, bytes]]:
    """Returns a list to which the consumer's deliveries are appended."""
    got: list[tuple[Basic.Deliver, BasicProperties, bytes]] = []
    await called(
        lambda callback: channel.basic_consume(
            queue,
            lambda _, method, properties, body: got.append((method, properties, body)),
            callback=callback,
            **options,
        )
    )
    return got


def bodies(got: list[tuple[Basic.Deliver, BasicProperties, bytes]]) -> list[bytes]:
    return [body for _, _, body in got]


async def test_hello_world(broker: BrokerUnderTest, names: Names) -> None:
    async with asyncio_channel(broker.parameters()) as channel:
        queue = await declare(channel, names.queue("hello"))
        got = await consume(channel, queue, auto_ack=True)
        channel.basic_publish("", queue, b"Hello World!")
        await wait_until_async(lambda: got, "the message")
        assert bodies(got) == [b"Hello World!"]


async def test_work_queue_with_prefetch(broker: BrokerUnderTest, names: Names) -> None:
    async with asyncio_channel(broker.parameters()) as first, asyncio_channel(broker.parameters()) as second:
        queue = await declare(first, names.queue("tasks"), durable=True)
        await called(lambda callback: first.basic_qos(prefetch_count=1, callback=callback))
        await called(lambda callback: second.basic_qos(prefetch_count=1, callback=callback))
        ours, theirs = await consume(first, queue), await consume(second, queue)
        for number in range(4):
            first.basic_publish("", queue, str(number).encode(), BasicProperties(delivery_mode=2))
        await wait_until_async(lambda: len(ours) == len(theirs) == 1, "one task each")
        first.basic_ack(ours[0][0].delivery_tag)
        await wait_until_async(lambda: len(ours) == 2, "the next task")
        first.basic_ack(ours[1][0].delivery_tag)
        await wait_until_async(lambda: len(ours) == 3, "the last task")
        assert len(theirs) == 1
        assert sorted(bodies(ours + theirs)) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("kind", "binding", "key", "arrives"),
    [
        ("fanout", "", "anything", True),
        ("direct", "error", "error", True),
        ("direct", "error", "info", False),
        ("topic", "kern.*", "kern.critical", True),
        ("topic", "*.critical", "kern.info", False),
    ],
)
async def test_publish_subscribe_routing_and_topics(
    broker: BrokerUnderTest, names: Names, kind: str, binding: str, key: str, arrives: bool
) -> None:
    exchange = names.exchange(kind)
    async with asyncio_channel(broker.parameters()) as channel:
        await called(lambda callback: channel.exchange_declare(exchange, kind, callback=callback))
        queue = await declare(channel, "", exclusive=True)
        await called(lambda callback: channel.queue_bind(queue, exchange, binding, callback=callback))
        got = await consume(channel, queue, auto_ack=True)
        channel.basic_publish(exchange, key, b"m")
        channel.basic_publish("", queue, b"end")
        await wait_until_async(lambda: b"end" in bodies(got), "the end mark")
        assert bodies(got) == ([b"m", b"end"] if arrives else [b"end"])


@pytest.mark.parametrize("reply_to", ["a queue", "amq.rabbitmq.reply-to"])
async def test_rpc(broker: BrokerUnderTest, names: Names, reply_to: str) -> None:
    async with asyncio_channel(broker.parameters()) as server, asyncio_channel(broker.parameters()) as client:
        queue = await declare(server, names.queue("rpc"))

        def answer(channel: Channel, method: Basic.Deliver, properties: BasicProperties, body: bytes) -> None:
            assert properties.reply_to is not None
            reply = BasicProperties(correlation_id=properties.correlation_id)
            channel.basic_publish("", properties.reply_to, body[::-1], reply)
            channel.basic_ack(method.delivery_tag)

        server.basic_consume(queue, answer)
        address = await declare(client, "", exclusive=True) if reply_to == "a queue" else reply_to
        got = await consume(client, address, auto_ack=True)
        for text in (b"abc", b"xyz"):
            client.basic_publish("", queue, text, BasicProperties(reply_to=address, correlation_id=text.decode()))
        await wait_until_async(lambda: len(got) == 2, "two answers")
        assert {p.correlation_id: body for _, p, body in got} == {"abc": b"cba", "xyz": b"zyx"}


async def test_confirms_returns_and_nacks(broker: BrokerUnderTest, names: Names) -> None:
    full = names.queue("full")
    async with asyncio_channel(broker.parameters()) as channel:
        await declare(channel, full, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        events: list[tuple[str, int]] = []

        def on_confirm(frame: Any) -> None:
            kind = "ack" if isinstance(frame.method, Basic.Ack) else "nack"
            events.append((kind, frame.method.delivery_tag))

        channel.add_on_return_callback(lambda _c, method, _p, _b: events.append(("return", method.reply_code)))
        await called(lambda callback: channel.confirm_delivery(on_confirm, callback=callback))
        channel.basic_publish("", full, b"fits")
        await wait_until_async(lambda: events == [("ack", 1)], "the ack")
        channel.basic_publish("", full, b"does not fit")
        await wait_until_async(lambda: events[1:] == [("nack", 2)], "the nack")
        channel.basic_publish("", "nowhere", b"comes back", mandatory=True)
        await wait_until_async(lambda: len(events) == 4, "the return and its ack")
        assert events[2:] == [("return", 312), ("ack", 3)]


async def test_transactions(broker: BrokerUnderTest, names: Names) -> None:
    async with asyncio_channel(broker.parameters()) as channel, asyncio_channel(broker.parameters()) as reader:
        queue = await declare(channel, names.queue())
        got = await consume(reader, queue, auto_ack=True)
        await called(lambda callback: channel.tx_select(callback))
        channel.basic_publish("", queue, b"rolled back")
        await called(lambda callback: channel.tx_rollback(callback))
        channel.basic_publish("", queue, b"committed")
        await called(lambda callback: channel.tx_commit(callback))
        await wait_until_async(lambda: got, "the committed message")
        assert bodies(got) == [b"committed"]


async def test_a_large_body(broker: BrokerUnderTest, names: Names) -> None:
    body = bytes(range(256)) * 4096 * 5
    async with asyncio_channel(broker.parameters()) as channel:
        queue = await declare(channel, names.queue())
        got = await consume(channel, queue, auto_ack=True)
        channel.basic_publish("", queue, body)
        channel.basic_publish("", queue, b"")
        await wait_until_async(lambda: len(got) == 2, "both messages")
        whole = got[0][2] == body
        assert whole and got[1][2] == b""


async def test_errors_reach_the_close_callbacks(broker: BrokerUnderTest) -> None:
    connection = await open_connection(broker.parameters())
    channel = await open_channel(connection)
    closing = asyncio.ensure_future(called(channel.add_on_close_callback))
    await asyncio.sleep(0)
    channel.queue_declare("it.missing", passive=True)
    reason = await closing
    assert isinstance(reason, ChannelClosedByBroker)
    assert reason.reply_code == 404
    channel = await open_channel(connection)
    closing = asyncio.ensure_future(called(connection.add_on_close_callback))
    await asyncio.sleep(0)
    channel.basic_recover(requeue=False)
    reason = await closing
    assert isinstance(reason, ConnectionClosedByBroker)
    assert reason.reply_code == 540


async def test_a_cancelled_consumer_receives_a_cancel(broker: BrokerUnderTest, names: Names) -> None:
    async with asyncio_channel(broker.parameters()) as channel:
        queue = await declare(channel, names.queue())
        await consume(channel, queue)
        cancelled: list[object] = []
        channel.add_on_cancel_callback(cancelled.append)
        await called(lambda callback: channel.queue_delete(queue, callback=callback))
        await wait_until_async(lambda: cancelled, "basic.cancel")


async def test_reconnect_after_a_cut(broker: BrokerUnderTest, names: Names) -> None:
    queue = names.queue()
    with Cable(broker.host, broker.port) as cable:
        connection = await open_connection(broker.parameters(port=cable.port, host="127.0.0.1"))
        channel = await open_channel(connection)
        await declare(channel, queue)
        await called(lambda callback: channel.confirm_delivery(lambda _: None, callback=callback))
        got = await consume(channel, queue)
        channel.basic_publish("", queue, b"unacked")
        await wait_until_async(lambda: got, "the message")
        closing = asyncio.ensure_future(called(connection.add_on_close_callback))
        await asyncio.sleep(0)
        cable.cut()
        assert isinstance(await closing, AMQPConnectionError)
        async with asyncio_channel(broker.parameters(port=cable.port, host="127.0.0.1")) as again:
            got = await consume(again, queue)
            await wait_until_async(lambda: got, "the message")
            assert got[0][2] == b"unacked" and got[0][0].redelivered


async def test_a_wrong_password(broker: BrokerUnderTest) -> None:
    parameters = broker.parameters()
    parameters.credentials.password = "wrong"
    with pytest.raises(ProbableAuthenticationError):
        await open_connection(parameters)

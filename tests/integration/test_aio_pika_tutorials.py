"""aio-pika: the six patterns of the tutorials, direct reply-to, contents, its own RPC and master patterns."""

from __future__ import annotations

import asyncio
import datetime
import functools
import os
from typing import Any

import pytest
from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.patterns import RPC, Master

from .aio_pika_mailbox import collect, opened
from .broker_under_test import BrokerUnderTest, Names
from .waiting import PATIENCE_S


async def test_hello_world(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as channel:
        queue = await channel.declare_queue(names.queue("hello"))
        await channel.default_exchange.publish(Message(b"Hello World!"), routing_key=queue.name)
        assert await collect(queue, 1) == [b"Hello World!"]


async def test_work_queue(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as boss, opened(broker) as first, opened(broker) as second:
        queue = await boss.declare_queue(names.queue("tasks"), durable=True)
        done: dict[str, list[bytes]] = {"first": [], "second": []}
        finished = asyncio.Event()
        first_may_go_on = asyncio.Event()

        async def work(worker: str, message: AbstractIncomingMessage) -> None:
            async with message.process():
                if worker == "first":
                    await first_may_go_on.wait()
                done[worker].append(message.body)
                if sum(map(len, done.values())) >= 5:
                    first_may_go_on.set()
                if sum(map(len, done.values())) == 6:
                    finished.set()

        for name, channel in (("first", first), ("second", second)):
            await channel.set_qos(prefetch_count=1)
            worker_queue = await channel.get_queue(queue.name)
            await worker_queue.consume(functools.partial(work, name))
        for number in range(6):
            task = Message(str(number).encode(), delivery_mode=DeliveryMode.PERSISTENT)
            await boss.default_exchange.publish(task, queue.name)
        await asyncio.wait_for(finished.wait(), PATIENCE_S)
        # One worker was stuck with its task, so the other did all the rest.
        assert (len(done["first"]), len(done["second"])) == (1, 5)


async def test_publish_subscribe(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as channel, opened(broker) as other:
        logs = await channel.declare_exchange(names.exchange("logs"), ExchangeType.FANOUT)
        queues = [await c.declare_queue(exclusive=True) for c in (channel, other)]
        for queue in queues:
            await queue.bind(logs.name)
        await logs.publish(Message(b"info"), routing_key="whatever")
        assert [await collect(queue, 1) for queue in queues] == [[b"info"], [b"info"]]


async def test_routing_and_topics(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as channel:
        for kind, patterns, wanted in (
            (ExchangeType.DIRECT, ["a.x", "b.y"], [b"a.x", b"b.y"]),
            (ExchangeType.TOPIC, ["a.*", "#.y"], [b"a.x", b"b.y", b"a.y"]),
        ):
            exchange = await channel.declare_exchange(names.exchange(kind.value), kind)
            queue = await channel.declare_queue(exclusive=True)
            for pattern in patterns:
                await queue.bind(exchange, pattern)
            for key in ("a.x", "b.x", "b.y", "a.y"):
                await exchange.publish(Message(key.encode()), key)
            assert await collect(queue, len(wanted)) == wanted
            assert await queue.get(fail=False) is None


@pytest.mark.parametrize("direct", [False, True])
async def test_rpc_by_hand(broker: BrokerUnderTest, names: Names, direct: bool) -> None:
    async with opened(broker) as server, opened(broker) as client:
        requests = await server.declare_queue(names.queue("rpc"))

        async def answer(message: AbstractIncomingMessage) -> None:
            async with message.process():
                assert message.reply_to is not None
                reply = Message(str(int(message.body) ** 2).encode(), correlation_id=message.correlation_id)
                await server.default_exchange.publish(reply, message.reply_to)

        await requests.consume(answer)
        if direct:
            replies = await client.get_queue("amq.rabbitmq.reply-to", ensure=False)
        else:
            replies = await client.declare_queue(exclusive=True)
        answered: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        await replies.consume(answered.put, no_ack=True)
        request = Message(b"12", correlation_id="c1", reply_to=replies.name)
        await client.default_exchange.publish(request, requests.name)
        reply = await asyncio.wait_for(answered.get(), PATIENCE_S)
        assert (reply.body, reply.correlation_id) == (b"144", "c1")


async def test_the_rpc_pattern_of_aio_pika(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as server, opened(broker) as client:

        async def multiply(*, x: int, y: int) -> int:
            return x * y

        async def fail() -> None:
            raise ValueError("on purpose")

        server_rpc, client_rpc = await RPC.create(server), await RPC.create(client)
        method, failing = names.queue("multiply"), names.queue("fail")
        await server_rpc.register(method, multiply, auto_delete=True)
        await server_rpc.register(failing, fail, auto_delete=True)
        assert await client_rpc.call(method, {"x": 6, "y": 7}) == 42
        with pytest.raises(ValueError, match="on purpose"):
            await client_rpc.call(failing)
        await client_rpc.close()
        await server_rpc.close()


async def test_the_master_and_worker_pattern_of_aio_pika(broker: BrokerUnderTest, names: Names) -> None:
    async with opened(broker) as channel:
        done: list[int] = []
        finished = asyncio.Event()

        async def work(*, number: int) -> None:
            done.append(number)
            if len(done) == 20:
                finished.set()

        task = names.queue("task")
        worker = await Master(channel).create_worker(task, work, auto_delete=True)
        master = Master(channel)
        await asyncio.gather(*(master.create_task(task, {"number": number}) for number in range(20)))
        await asyncio.wait_for(finished.wait(), PATIENCE_S)
        assert sorted(done) == list(range(20))
        await worker.close()


@pytest.mark.parametrize("size", [0, 1, 131064, 131065, 5 * 1024 * 1024])
async def test_a_body_of_any_size(broker: BrokerUnderTest, names: Names, size: int) -> None:
    body = os.urandom(size)
    async with opened(broker) as channel:
        queue = await channel.declare_queue(names.queue())
        await channel.default_exchange.publish(Message(body), queue.name)
        [received] = await collect(queue, 1)
        same = received == body
        assert same


PROPERTIES = (
    *("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to"),
    *("expiration", "message_id", "timestamp", "type", "user_id", "app_id"),
)


async def test_every_property_and_type_of_header(broker: BrokerUnderTest, names: Names) -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    headers: dict[str, Any] = {
        "bool": True,
        "int": 1,
        "negative": -5,
        "big": 2**62,
        "float": 0.15625,
        "text": "größe 🌳",
        "bytes": bytearray(b"\x00\xff"),
        "time": when,
        "none": None,
        "list": [1, "a", 2.5, {"b": [False]}],
        "table": {"nested": {"deep": [1, 2, 3]}},
    }
    message = Message(
        b"m",
        headers=headers,
        content_type="text/plain",
        content_encoding="utf-8",
        delivery_mode=DeliveryMode.PERSISTENT,
        priority=7,
        correlation_id="correlation",
        reply_to="reply",
        expiration=60.0,
        message_id="id",
        timestamp=when,
        type="type",
        user_id="guest",
        app_id="app",
    )
    async with opened(broker) as channel:
        queue = await channel.declare_queue(names.queue("properties"))
        await channel.default_exchange.publish(message, queue.name)
        received = await queue.get()
        assert received is not None
        await received.ack()
        assert received.headers == headers
        for attribute in PROPERTIES:
            assert getattr(received, attribute) == getattr(message, attribute), attribute

"""Real conversations of the tests' client, kept as the pieces that it sent.

Each piece is a frame, except for the protocol header at the beginning: mutations separate and combine these pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.client import Channel, Connection

Conversation = list[bytes]
GRAVE = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "c1"}


def _topology(channel: Channel) -> None:
    channel.rpc("exchange.declare", exchange="y0", type="topic", durable=True, arguments={"alternate-exchange": "y1"})
    channel.rpc("exchange.declare", exchange="y1", type="headers")
    channel.rpc("queue.declare", queue="c0", durable=True, arguments={"x-max-priority": 4, **GRAVE})
    channel.rpc("queue.declare", queue="c1", arguments={"x-message-ttl": 50, "x-max-length": 20})
    channel.rpc("queue.bind", queue="c0", exchange="y0", routing_key="a.#")
    channel.rpc("queue.bind", queue="c1", exchange="y1", arguments={"x-match": "any", "k": 1, "s": "t"})
    channel.rpc("exchange.bind", source="y0", destination="y1", routing_key="#")
    channel.rpc("queue.declare", queue="c0", passive=True)
    channel.rpc("queue.unbind", queue="c0", exchange="y0", routing_key="a.#")
    channel.rpc("queue.purge", queue="c0")
    channel.rpc("queue.delete", queue="c1", if_unused=True)
    channel.rpc("exchange.unbind", source="y0", destination="y1", routing_key="#")
    channel.rpc("exchange.delete", exchange="y1")


def _publishes(channel: Channel) -> None:
    queue = channel.declare_queue("c2")
    properties: dict[str, Any] = {
        "content_type": "text/plain",
        "headers": {"n": 1, "list": [1, "two", None], "CC": ["c0"], "table": {"t": True}},
        "delivery_mode": 2,
        "priority": 3,
        "expiration": "1000",
        "message_id": "id",
        "timestamp": 1_700_000_000,
    }
    for size in (0, 1, 300, 5000):
        channel.publish(b"b" * size, queue, mandatory=True, **properties)
    channel.publish("m", "nowhere", mandatory=True)
    channel.expect("basic.return")
    channel.drain(queue)


def _consumes(channel: Channel) -> None:
    queue = channel.declare_queue("c3")
    channel.rpc("basic.qos", prefetch_count=5)
    channel.consume(queue, "tag", arguments={"x-priority": 2})
    for number in range(8):
        channel.publish(str(number), queue)
    for _ in range(5):
        channel.delivery()
    channel.send("basic.ack", delivery_tag=2, multiple=True)
    channel.send("basic.nack", delivery_tag=3, requeue=True)
    channel.send("basic.reject", delivery_tag=4, requeue=False)
    channel.send("basic.recover-async", requeue=True)
    channel.send("basic.cancel", consumer_tag="tag")


def _confirms(channel: Channel) -> None:
    with channel.settling("whole"):
        for number in range(10):
            channel.publish(str(number), "c0")


def _transactions(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.rpc("tx.select")
    channel.publish("1", queue)
    channel.rpc("tx.commit")
    found = channel.get(queue, no_ack=False)
    assert found is not None
    channel.send("basic.ack", delivery_tag=found.delivery_tag)
    channel.publish("2", queue)
    channel.rpc("tx.rollback")


def _asks(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.consume("amq.rabbitmq.reply-to", no_ack=True)
    channel.publish("request", queue, reply_to="amq.rabbitmq.reply-to", correlation_id="1")
    found = channel.get(queue)
    assert found is not None
    channel.publish("answer", found.properties["reply_to"])
    channel.delivery()


SCRIPTS: tuple[Callable[[Channel], None], ...] = (_topology, _publishes, _consumes, _confirms, _transactions, _asks)


def record(connect: Callable[[], Connection]) -> list[Conversation]:
    """Records each script on a connection of its own, which `connect` opens without sending anything."""
    found = []
    for script in SCRIPTS:
        connection = connect()
        connection.recording = True
        connection.log_in()
        connection.tune_and_open()
        script(connection.channel())
        connection.send("connection.close", reply_code=200)
        connection.drop()
        found.append(connection.sent)
    return found

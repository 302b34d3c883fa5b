"""pika: the six patterns of the RabbitMQ tutorials, and direct reply-to."""

from __future__ import annotations

import pika
import pytest
from pika import BasicProperties, DeliveryMode
from pika.adapters.blocking_connection import BlockingChannel
from pika.exchange_type import ExchangeType
from pika.spec import Basic

from .broker_under_test import Names
from .conftest import Connect
from .pika_mailbox import Mailbox, put, take_all
from .waiting import barrier, pump


def test_hello_world(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    queue = names.queue("hello")
    channel.queue_declare(queue)
    channel.basic_publish(exchange="", routing_key=queue, body=b"Hello World!")

    receiver = connect().channel()
    receiver.queue_declare(queue)
    mailbox = Mailbox(receiver, queue, auto_ack=True)
    [delivery] = mailbox.wait_for(1)
    assert delivery.body == b"Hello World!"
    assert (delivery.method.exchange, delivery.method.routing_key) == ("", queue)
    assert not delivery.method.redelivered
    assert delivery.method.consumer_tag == mailbox.tag


def test_work_queue_spreads_tasks_fairly(connect: Connect, names: Names) -> None:
    """With prefetch 1 a busy worker receives no more messages, and an idle one receives the rest."""
    queue = names.queue("tasks")
    boss = connect().channel()
    boss.queue_declare(queue, durable=True)
    busy, idle = connect().channel(), connect().channel()
    for worker in (busy, idle):
        worker.basic_qos(prefetch_count=1)
    busy_box = Mailbox(busy, queue)
    put(boss, queue, [b"long"], delivery_mode=DeliveryMode.Persistent.value)
    busy_box.wait_for(1)

    idle_box = Mailbox(idle, queue)
    put(boss, queue, [b"a", b"b", b"c"], delivery_mode=2)
    for count in (1, 2, 3):
        idle.basic_ack(idle_box.wait_for(count)[-1].tag)
    assert idle_box.bodies == [b"a", b"b", b"c"]
    barrier(busy, queue)
    assert busy_box.bodies == [b"long"]
    assert idle_box.deliveries[0].properties.delivery_mode == 2
    busy.basic_ack(busy_box.deliveries[0].tag)


def test_a_worker_that_goes_away_leaves_its_task_to_another(connect: Connect, names: Names) -> None:
    queue = names.queue("tasks")
    channel = connect().channel()
    channel.queue_declare(queue, durable=True)
    put(channel, queue, [b"task"])
    careless = connect()
    Mailbox(careless.channel(), queue).wait_for(1)
    careless.close()

    [again] = Mailbox(channel, queue).wait_for(1)
    assert again.body == b"task"
    assert again.method.redelivered


def test_publish_subscribe(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    logs = names.exchange("logs")
    channel.exchange_declare(logs, ExchangeType.fanout)
    mailboxes = []
    for _ in range(2):
        subscriber = connect().channel()
        queue = subscriber.queue_declare("", exclusive=True).method.queue
        assert queue.startswith("amq.gen-")
        subscriber.queue_bind(queue, logs)
        mailboxes.append(Mailbox(subscriber, queue, auto_ack=True))
    channel.basic_publish(logs, "ignored", b"info: hello")
    for mailbox in mailboxes:
        [delivery] = mailbox.wait_for(1)
        assert (delivery.body, delivery.method.exchange) == (b"info: hello", logs)
        assert delivery.method.routing_key == "ignored"


def test_routing(channel: BlockingChannel, names: Names) -> None:
    logs, errors, everything = names.exchange("direct"), names.queue("errors"), names.queue("everything")
    channel.exchange_declare(logs, ExchangeType.direct)
    for queue, severities in ((errors, ["error"]), (everything, ["info", "warning", "error"])):
        channel.queue_declare(queue)
        for severity in severities:
            channel.queue_bind(queue, logs, severity)
    for severity in ("info", "error", "debug", "warning"):
        channel.basic_publish(logs, severity, severity.encode())
    assert take_all(channel, errors) == [b"error"]
    assert take_all(channel, everything) == [b"info", b"error", b"warning"]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("#", {"quick.orange.rabbit", "lazy.orange.elephant", "lazy.pink.rabbit", "fox", "lazy", "a.b.orange.d"}),
        ("*.orange.*", {"quick.orange.rabbit", "lazy.orange.elephant"}),
        ("*.*.rabbit", {"quick.orange.rabbit", "lazy.pink.rabbit"}),
        ("lazy.#", {"lazy.orange.elephant", "lazy.pink.rabbit", "lazy"}),
        ("#.orange.#", {"quick.orange.rabbit", "lazy.orange.elephant", "a.b.orange.d"}),
        ("fox", {"fox"}),
        ("*", {"fox", "lazy"}),
        ("", set()),
    ],
)
def test_topics(channel: BlockingChannel, names: Names, pattern: str, matching: set[str]) -> None:
    animals, queue = names.exchange("animals"), names.queue()
    channel.exchange_declare(animals, ExchangeType.topic)
    channel.queue_declare(queue)
    channel.queue_bind(queue, animals, pattern)
    keys = ["quick.orange.rabbit", "lazy.orange.elephant", "lazy.pink.rabbit", "fox", "lazy", "a.b.orange.d"]
    for key in keys:
        channel.basic_publish(animals, key, key.encode())
    assert take_all(channel, queue) == [key.encode() for key in keys if key in matching]


def serve_fibonacci(channel: BlockingChannel, queue: str) -> None:
    """Answers every request on the queue, to its reply_to."""

    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def on_request(_: BlockingChannel, method: Basic.Deliver, properties: BasicProperties, body: bytes) -> None:
        answer = str(fibonacci(int(body))).encode()
        assert properties.reply_to is not None
        reply = BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to, answer, reply)
        channel.basic_ack(method.delivery_tag)

    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(queue, on_request)


def test_rpc_with_a_reply_queue(connect: Connect, names: Names) -> None:
    queue = names.queue("rpc")
    server = connect()
    server_channel = server.channel()
    server_channel.queue_declare(queue)
    serve_fibonacci(server_channel, queue)

    client = connect().channel()
    replies = client.queue_declare("", exclusive=True).method.queue
    mailbox = Mailbox(client, replies, auto_ack=True)
    for n in (1, 7, 10):
        put(client, queue, [str(n).encode()], reply_to=replies, correlation_id=f"call-{n}")
    pump(server, lambda: answered(client.connection, mailbox, 3), "three answers")
    answers = {d.properties.correlation_id: d.body for d in mailbox.deliveries}
    assert answers == {"call-1": b"1", "call-7": b"13", "call-10": b"55"}


def answered(client: pika.BlockingConnection, mailbox: Mailbox, count: int) -> bool:
    client.process_data_events(time_limit=0)
    return len(mailbox.deliveries) >= count


def test_rpc_with_direct_reply_to(connect: Connect, names: Names) -> None:
    queue = names.queue("rpc")
    server = connect()
    server_channel = server.channel()
    server_channel.queue_declare(queue)
    serve_fibonacci(server_channel, queue)

    client = connect().channel()
    mailbox = Mailbox(client, "amq.rabbitmq.reply-to", auto_ack=True)
    put(client, queue, [b"9"], reply_to="amq.rabbitmq.reply-to", correlation_id="nine")
    pump(server, lambda: answered(client.connection, mailbox, 1), "the answer")
    [reply] = mailbox.deliveries
    assert (reply.body, reply.properties.correlation_id) == (b"34", "nine")


def test_direct_reply_to_gives_each_requester_an_address_of_its_own(connect: Connect, names: Names) -> None:
    queue = names.queue("rpc")
    server = connect().channel()
    server.queue_declare(queue)
    requests = Mailbox(server, queue, auto_ack=True)
    clients = [connect().channel() for _ in range(2)]
    mailboxes = [Mailbox(client, "amq.rabbitmq.reply-to", auto_ack=True) for client in clients]
    for number, client in enumerate(clients):
        put(client, queue, [str(number).encode()], reply_to="amq.rabbitmq.reply-to")
    addresses = {int(d.body): d.properties.reply_to for d in requests.wait_for(2)}
    assert len(set(addresses.values())) == 2
    for number, address in addresses.items():
        assert address is not None and address.startswith("amq.rabbitmq.reply-to.")
        # A responder may ask whether the requester is still there.
        server.queue_declare(address, passive=True)
        server.basic_publish("", address, f"for {number}".encode(), mandatory=True)
    for number, mailbox in enumerate(mailboxes):
        assert [d.body for d in mailbox.wait_for(1)] == [f"for {number}".encode()]

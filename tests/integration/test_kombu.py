"""kombu (with py-amqp): the tutorials' patterns, confirms, transactions, errors, its own reconnecting."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from amqp.exceptions import (
    AccessRefused,
    ConsumerCancelled,
    MessageNacked,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError
from kombu.message import Message
from kombu.messaging import Consumer, Producer
from kombu.mixins import ConsumerMixin, ConsumerProducerMixin
from kombu.pools import producers
from kombu.simple import SimpleQueue
from kombu.utils.uuid import uuid

from .broker_under_test import BrokerUnderTest, Names
from .cable import Cable
from .waiting import PATIENCE_S, wait_until


@pytest.fixture
def kombu_url(broker: BrokerUnderTest) -> str:
    return broker.url.replace("amqp://", "pyamqp://").removesuffix("%2F") + "/"


@pytest.fixture
def connection(kombu_url: str, names: Names) -> Iterator[Connection]:
    with Connection(kombu_url) as connection:
        yield connection


def drain(connection: Connection, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        try:
            connection.drain_events(timeout=0.05)
        except TimeoutError:
            connection.heartbeat_check()


def consumed(connection: Connection, queue: Queue, count: int) -> list[Any]:
    got: list[Any] = []

    def on_message(body: object, message: Message) -> None:
        got.append(body)
        message.ack()

    with Consumer(connection.channel(), [queue], callbacks=[on_message], accept=["json", "pickle", "text/plain"]):
        drain(connection, lambda: len(got) >= count)
    return got


def test_hello_world(connection: Connection, names: Names) -> None:
    queue: SimpleQueue = connection.SimpleQueue(names.queue("hello"))
    queue.put({"hello": "world", "n": [1, 2.5, None]})
    message = queue.get(timeout=PATIENCE_S)
    assert message.payload == {"hello": "world", "n": [1, 2.5, None]}
    message.ack()
    with pytest.raises(queue.Empty):
        queue.get_nowait()
    queue.close()


def test_work_queue_with_prefetch(connection: Connection, kombu_url: str, names: Names) -> None:
    queue = Queue(names.queue("tasks"), durable=True)
    got: list[Message] = []
    with Connection(kombu_url) as other:
        consumer = Consumer(other.channel(), [queue], on_message=got.append, prefetch_count=2)
        with Producer(connection.channel()) as producer:
            for number in range(5):
                producer.publish(
                    {"number": number}, routing_key=queue.name, declare=[queue], serializer="json", delivery_mode=2
                )
        with consumer:
            drain(other, lambda: len(got) == 2)
            assert queue(connection.channel()).queue_declare(passive=True).message_count == 3
            for expected in (3, 4, 5):
                got[expected - 3].ack()
                drain(other, lambda expected=expected: len(got) == expected)  # type: ignore[misc]
    assert [message.payload["number"] for message in got] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "binding", "wanted"),
    [
        ("fanout", "", ["kern.info", "kern.error", "mail.error"]),
        ("direct", "kern.error", ["kern.error"]),
        ("topic", "kern.*", ["kern.info", "kern.error"]),
        ("topic", "#.error", ["kern.error", "mail.error"]),
    ],
)
def test_publish_subscribe_routing_and_topics(
    connection: Connection, names: Names, kind: str, binding: str, wanted: list[str]
) -> None:
    exchange = Exchange(names.exchange(kind), kind, durable=False)
    queue = Queue(names.queue(kind), exchange, routing_key=binding, durable=False)
    queue(connection.channel()).declare()
    with producers[connection].acquire(block=True) as producer:
        for key in ("kern.info", "kern.error", "mail.error"):
            producer.publish(key, exchange=exchange, routing_key=key, serializer="json")
    assert consumed(connection, queue, len(wanted)) == wanted


class SquareServer(ConsumerProducerMixin):
    """kombu's way to write a server that answers."""

    def __init__(self, connection: Connection, queue: Queue) -> None:
        self.connection = connection
        self.queue = queue

    def get_consumers(self, consumer: type[Consumer], channel: object) -> list[Consumer]:
        return [consumer([self.queue], on_message=self.on_request, accept={"json"}, prefetch_count=1)]

    def on_request(self, message: Message) -> None:
        self.producer.publish(
            {"result": message.payload["n"] ** 2},
            exchange="",
            routing_key=message.properties["reply_to"],
            correlation_id=message.properties["correlation_id"],
            serializer="json",
        )
        message.ack()
        self.should_stop = message.payload["n"] == 9


@pytest.mark.parametrize("direct", [False, True])
def test_rpc(connection: Connection, kombu_url: str, names: Names, direct: bool) -> None:
    queue = Queue(names.queue("rpc"))
    queue(connection.channel()).declare()
    answers: dict[str, int] = {}

    def on_reply(message: Message) -> None:
        answers[message.properties["correlation_id"]] = message.payload["result"]

    channel = connection.channel()
    name = "amq.rabbitmq.reply-to" if direct else uuid()
    replies = Queue(name, exclusive=True, auto_delete=True, no_ack=True, no_declare=direct)
    with Consumer(channel, [replies], on_message=on_reply, no_ack=True), Producer(channel) as producer:
        for n in (3, 9):
            producer.publish({"n": n}, routing_key=queue.name, reply_to=name, correlation_id=str(n))
        with Connection(kombu_url) as server_connection:
            for _ in SquareServer(server_connection, queue).consume(limit=2, timeout=PATIENCE_S):
                pass
        drain(connection, lambda: len(answers) == 2)
    assert answers == {"3": 9, "9": 81}


def test_confirms(kombu_url: str, names: Names) -> None:
    full = Queue(names.queue("full"), queue_arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    with Connection(kombu_url, transport_options={"confirm_publish": True}) as connection:
        producer = Producer(connection.channel())
        producer.publish("fits", routing_key=full.name, declare=[full])
        with pytest.raises(MessageNacked):
            producer.publish("does not", routing_key=full.name)
        assert consumed(connection, full, 1) == ["fits"]


def test_mandatory_returns(connection: Connection) -> None:
    returned: list[tuple[int, str]] = []
    channel = connection.channel()

    def on_return(exception: Exception, exchange: str, routing_key: str, message: object) -> None:
        returned.append((exception.reply_code, routing_key))  # type: ignore[attr-defined]

    producer = Producer(channel, on_return=on_return)
    producer.publish("m", routing_key="it.nowhere", mandatory=True)
    drain(connection, lambda: returned)
    assert returned == [(312, "it.nowhere")]


def test_transactions(connection: Connection, names: Names) -> None:
    queue = Queue(names.queue())
    queue(connection.channel()).declare()
    channel = connection.channel()
    channel.tx_select()
    producer = Producer(channel)
    producer.publish("rolled back", routing_key=queue.name)
    channel.tx_rollback()
    producer.publish("committed", routing_key=queue.name)
    assert queue(connection.channel()).get() is None
    channel.tx_commit()
    assert consumed(connection, queue, 1) == ["committed"]


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda c, own: c.queue_declare("it.missing", passive=True), NotFound),
        (lambda c, own: c.queue_declare(own, durable=True), PreconditionFailed),
        (lambda c, own: c.queue_declare("amq.mine"), AccessRefused),
        (lambda c, own: c.queue_declare(f"{own}.private", exclusive=True), ResourceLocked),
    ],
)
def test_errors_have_their_own_exceptions(
    connection: Connection, kombu_url: str, names: Names, act: Callable[[Any, str], object], error: type[Exception]
) -> None:
    own = names.queue("own")
    with Connection(kombu_url) as other:
        holder = other.channel()
        holder.queue_declare(own, durable=False, auto_delete=False)
        holder.queue_declare(f"{own}.private", exclusive=True)
        channel = connection.channel()
        with pytest.raises(error):
            act(channel, own)
        # The connection stays open.
        connection.channel().queue_declare(own, passive=True)


def test_every_property_and_type_of_header(connection: Connection, names: Names) -> None:
    queue = Queue(names.queue("größe"))
    headers = {"bool": True, "int": 5, "big": 2**60, "float": 3.141592653589793, "text": "größe 🌳", "none": None}
    headers |= {"list": [1, "a", {"b": False}], "table": {"c": {"d": [1.5]}}, "negative": -(2**40)}
    properties = {"message_id": "id", "type": "t", "app_id": "a", "user_id": "guest", "cluster_id": "c"}
    properties |= {"reply_to": "r", "correlation_id": "c"}
    channel = connection.channel()
    Producer(channel).publish(
        b"\x00\xff",
        routing_key=queue.name,
        declare=[queue],
        headers=headers,
        priority=4,
        expiration=60,
        content_type="application/data",
        content_encoding="binary",
        **properties,
    )
    message = queue(channel).get(no_ack=True)
    assert message.headers == headers
    expected = {**properties, "priority": 4, "expiration": "60000", "delivery_mode": 2}
    assert {key: message.properties[key] for key in expected} == expected
    assert (bytes(message.body), message.content_type) == (b"\x00\xff", "application/data")


@pytest.mark.parametrize("size", [0, 131065, 5 * 1024 * 1024])
def test_a_body_of_any_size(connection: Connection, names: Names, size: int) -> None:
    queue = Queue(names.queue())
    channel = connection.channel()
    body = b"\xa5" * size
    producer = Producer(channel)
    producer.publish(
        body, routing_key=queue.name, declare=[queue], content_type="application/data", content_encoding="binary"
    )
    received = queue(channel).get(no_ack=True).body
    same = (received or b"") == body
    assert same


def test_compressed_and_other_serializers(connection: Connection, names: Names) -> None:
    queue = Queue(names.queue())
    producer = Producer(connection.channel())
    for serializer in ("json", "pickle"):
        for compression in (None, "zlib", "bzip2"):
            payload = {"serializer": serializer, "numbers": list(range(100))}
            producer.publish(
                payload, routing_key=queue.name, declare=[queue], serializer=serializer, compression=compression
            )
            assert consumed(connection, queue, 1) == [payload]


def test_reject_requeue_and_dead_letters(connection: Connection, names: Names) -> None:
    grave = Queue(names.queue("grave"))
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave.name}
    queue = Queue(names.queue(), queue_arguments=arguments, message_ttl=600, max_priority=5)
    channel = connection.channel()
    Producer(channel).publish("m", routing_key=queue.name, declare=[grave, queue])
    bound = queue(channel)
    bound.get().requeue()
    message = bound.get()
    assert message.delivery_info["redelivered"]
    message.reject()
    wait_until(lambda: grave(channel).queue_declare(passive=True).message_count == 1, "the dead letter")
    dead = grave(channel).get(no_ack=True)
    assert [(d["queue"], d["reason"], d["count"]) for d in dead.headers["x-death"]] == [(queue.name, "rejected", 1)]


def test_a_consumer_receives_a_cancel_when_its_queue_is_deleted(
    connection: Connection, kombu_url: str, names: Names
) -> None:
    """Without a callback for it, py-amqp raises ConsumerCancelled out of the event loop."""
    queue = Queue(names.queue())
    with Connection(kombu_url) as other, Consumer(connection.channel(), [queue], on_message=lambda _: None):
        queue(other.channel()).delete()
        with pytest.raises(ConsumerCancelled):
            drain(connection, lambda: False)


class Collector(ConsumerMixin):
    """kombu's way to write a consumer that survives connections."""

    def __init__(self, connection: Connection, queue: Queue, on_first: Callable[[], None], last: str) -> None:
        self.connection, self.queue, self.on_first, self.last = connection, queue, on_first, last
        self.got: list[str] = []

    def get_consumers(self, consumer: type[Consumer], channel: object) -> list[Consumer]:
        return [consumer([self.queue], callbacks=[self.on_message])]

    def on_message(self, body: str, message: Message) -> None:
        message.ack()
        self.got.append(body)
        if len(self.got) == 1:
            self.on_first()
        self.should_stop = body == self.last


def test_a_consumer_mixin_survives_a_cut(
    broker: BrokerUnderTest, connection: Connection, kombu_url: str, names: Names
) -> None:
    queue = Queue(names.queue())
    queue(connection.channel()).declare()
    producer = Producer(connection.channel())
    producer.publish("before", routing_key=queue.name)
    with Cable(broker.host, broker.port) as cable:

        def cut_and_publish() -> None:
            cable.cut()
            producer.publish("after", routing_key=queue.name)

        with Connection(kombu_url.replace(str(broker.port), str(cable.port)), heartbeat=4) as fragile:
            collector = Collector(fragile, queue, cut_and_publish, last="after")
            collector.run()
        # The ack of the first may have been lost with the connection: then it was delivered twice.
        assert set(collector.got) == {"before", "after"}
        assert cable.connections >= 2


def test_ensure_retries_a_publish(broker: BrokerUnderTest, kombu_url: str, names: Names) -> None:
    queue = Queue(names.queue())
    options = {"confirm_publish": True}
    with (
        Cable(broker.host, broker.port) as cable,
        Connection(kombu_url.replace(str(broker.port), str(cable.port)), transport_options=options) as connection,
    ):
        producer = Producer(connection)
        producer.publish("first", routing_key=queue.name, declare=[queue])
        cable.cut()
        producer.publish("second", routing_key=queue.name, retry=True, retry_policy={"interval_start": 0})
        assert "second" in consumed(connection, queue, 2)


def test_a_wrong_password_and_a_closed_port(broker: BrokerUnderTest, kombu_url: str) -> None:
    with Connection(kombu_url.replace(":guest@", ":wrong@")) as connection, pytest.raises(AccessRefused):
        connection.connect()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        Connection(kombu_url.replace(str(broker.port), str(port))) as connection,
        pytest.raises((OperationalError, ConnectionRefusedError)),
    ):
        connection.ensure_connection(max_retries=1, interval_start=0)


def test_heartbeats_through_an_idle_period(kombu_url: str) -> None:
    with Connection(kombu_url, heartbeat=2) as connection:
        connection.connect()
        assert connection.get_heartbeat_interval() == 2
        deadline = time.monotonic() + 4.5
        while time.monotonic() < deadline:
            connection.heartbeat_check(rate=2)
            try:
                connection.drain_events(timeout=0.5)
            except TimeoutError:
                continue
        assert connection.connected
        assert connection.channel().queue_declare(exclusive=True).queue

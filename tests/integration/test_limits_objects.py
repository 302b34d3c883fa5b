"""Limits of a client's objects and messages: channels, frames, messages, queues, bindings, consumers.

At, below and above. A refusal closes a channel or a connection with its reason, harms no other client, and the same
request succeeds once there is room.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import BlockingConnection
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker, NoFreeChannels

from tests.support.client import Connection
from tests.support.frames import BODY, METHOD

from .configured_broker import ConfiguredBroker, running
from .pika_mailbox import put, take
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its limits are set for the tests")

CHANNELS, FRAME_BYTES, MESSAGE_BYTES, QUEUES, BINDINGS, CONSUMERS = 5, 8192, 50_000, 4, 6, 3
FRAME_OVERHEAD_BYTES = 8


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    limits = {
        "channel_max": CHANNELS,
        "frame_bytes_max": FRAME_BYTES,
        "message_bytes_max": MESSAGE_BYTES,
        "queues_max": QUEUES,
        "bindings_max": BINDINGS,
        "consumers_max": CONSUMERS,
    }
    with running(ConfiguredBroker(tmp_path_factory.mktemp("limited"), limits=limits)) as broker:
        yield broker


@pytest.fixture
def connection(limited: ConfiguredBroker) -> Iterator[Connection]:
    opened = limited.open(channel_max=CHANNELS, frame_max=FRAME_BYTES)
    yield opened
    opened.drop()


@pytest.fixture
def bystander(limited: ConfiguredBroker) -> Iterator[Connection]:
    """An uninvolved client, whose connection has to survive the test."""
    opened = limited.open(channel_max=CHANNELS, frame_max=FRAME_BYTES)
    channel = opened.channel()
    yield opened
    assert channel.rpc("channel.flow", active=True).active
    opened.close()


# Channels.


def test_channels(limited: ConfiguredBroker, connection: Connection, bystander: Connection) -> None:
    channels = [connection.channel() for _ in range(CHANNELS)]
    channels.pop().rpc("channel.close", reply_code=200, reply_text="")
    channels.append(connection.channel(CHANNELS))
    mark = limited.mark()
    connection.send("channel.open", CHANNELS + 1)
    text = f"NOT_ALLOWED - number of channels opened ({CHANNELS}) has reached the negotiated channel_max ({CHANNELS})"
    connection.expect_close(530, text)
    assert len(limited.lines("WARNING|ERROR", mark)) == 1


def test_a_channels_number_may_be_any_that_both_know(limited: ConfiguredBroker) -> None:
    """pika counts its channels itself."""
    with limited.connect() as client:
        opened = [client.channel() for _ in range(CHANNELS)]
        with pytest.raises(NoFreeChannels):
            client.channel()
        opened.pop().close()
        assert client.channel().is_open


def test_less_is_agreed_on_but_not_more(limited: ConfiguredBroker) -> None:
    for asked, text in (
        ({"channel_max": CHANNELS + 1}, f"channel_max = 6 is higher than the maximum allowed value ({CHANNELS})"),
        ({"channel_max": 0}, f"channel_max = 0 (no limit) is higher than the maximum allowed value ({CHANNELS})"),
        ({"frame_max": FRAME_BYTES + 1}, f"frame_max = 8193 is higher than the maximum allowed value ({FRAME_BYTES})"),
        ({"frame_max": 4095}, "frame_max = 4095 is lower than the minimum allowed value (4096)"),
    ):
        greedy = Connection(limited.address())
        greedy.log_in()
        answer = {"channel_max": CHANNELS, "frame_max": FRAME_BYTES, "heartbeat": 0, **asked}
        greedy.send("connection.tune-ok", **answer)
        greedy.expect_close(530, f"NOT_ALLOWED - negotiated {text}", "connection.tune")
    limited.open(channel_max=1, frame_max=4096).close()


# Frames and messages.


def test_a_frame_of_the_agreed_size(connection: Connection) -> None:
    channel = connection.channel()
    queue = channel.declare_queue()
    body = b"x" * (FRAME_BYTES - FRAME_OVERHEAD_BYTES)
    channel.publish(body, queue)
    assert channel.drain(queue) == [body]


@pytest.mark.parametrize("kind", [METHOD, BODY])
def test_a_frame_that_is_too_large(
    limited: ConfiguredBroker, connection: Connection, bystander: Connection, kind: int
) -> None:
    channel = connection.channel()
    queue = channel.declare_queue()
    if kind == BODY:
        channel.send("basic.publish", routing_key=queue)
    mark = limited.mark()
    # Like RabbitMQ, the broker accepts clients that forget the eight octets around a payload.
    size = FRAME_BYTES + 1
    # The header is enough: the broker does not wait for four gigabytes before it refuses.
    connection.send_bytes(bytes([kind]) + channel.number.to_bytes(2, "big") + size.to_bytes(4, "big"))
    closed = connection.expect("connection.close")
    assert closed.reply_code == 501
    assert f"{{frame_too_large,{size},{FRAME_BYTES - FRAME_OVERHEAD_BYTES}}}" in closed.reply_text
    connection.send("connection.close-ok")
    connection.expect_eof()
    assert len(limited.lines("WARNING|ERROR", mark)) == 1


def test_a_message_of_the_largest_size(limited: ConfiguredBroker) -> None:
    with limited.connect() as client:
        channel = client.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for size in (MESSAGE_BYTES - 1, MESSAGE_BYTES):
            put(channel, queue, [b"x" * size])
            assert len(take(channel, queue).body) == size


def test_a_message_one_octet_larger(limited: ConfiguredBroker, bystander: Connection) -> None:
    with limited.connect() as client:
        channel = client.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        with pytest.raises(ChannelClosedByBroker) as caught:
            put(channel, queue, [b"x" * (MESSAGE_BYTES + 1)])
        text = (
            f"PRECONDITION_FAILED - message size {MESSAGE_BYTES + 1} is larger than configured max size {MESSAGE_BYTES}"
        )
        assert (caught.value.reply_code, caught.value.reply_text) == (406, text)
        # The connection stays open, and smaller messages are accepted.
        channel = client.channel()
        put(channel, queue, [b"small"])
        assert take(channel, queue).body == b"small"


def test_a_header_that_promises_too_much_is_refused_before_the_body(connection: Connection) -> None:
    channel = connection.channel()
    channel.send("basic.publish", routing_key="nowhere")
    header = b"\x00\x3c\x00\x00" + (2**63).to_bytes(8, "big") + b"\x00\x00"
    connection.send_frame(2, channel.number, header)
    assert channel.expect("channel.close").reply_code == 406
    channel.send("channel.close-ok")
    connection.channel().declare_queue()


# Queues, bindings, consumers.


def test_queues(limited: ConfiguredBroker, connection: Connection, bystander: Connection) -> None:
    channel = connection.channel()
    queues = [channel.declare_queue(f"q{number}") for number in range(QUEUES)]
    # A declare of an existing queue needs no room.
    assert channel.declare_queue("q0") == "q0"
    text = f"PRECONDITION_FAILED - cannot declare queue 'one more': queue limit in cluster ({QUEUES}) is reached"
    channel.refused(406, text, "queue.declare", queue="one more", exclusive=True)
    other = bystander.channel()
    other.refused(406, text.replace("one more", "another"), "queue.declare", queue="another", exclusive=True)
    channel = connection.channel()
    channel.rpc("queue.delete", queue=queues.pop())
    channel.declare_queue("one more")
    # When their connection ends all are free.
    connection.close()
    last = bystander.channel()
    for number in range(QUEUES):
        last.rpc("queue.delete", queue=last.declare_queue(f"again{number}"))


def test_bindings(limited: ConfiguredBroker, connection: Connection, bystander: Connection) -> None:
    channel = connection.channel()
    queue = channel.declare_queue("bound")
    for number in range(BINDINGS):
        channel.bind(queue, "amq.direct", f"key{number}")
    channel.bind(queue, "amq.direct", "key0")
    text = f"PRECONDITION_FAILED - cannot bind 'bound' to exchange 'amq.direct': binding limit ({BINDINGS}) is reached"
    channel.refused(406, text, "queue.bind", queue=queue, exchange="amq.direct", routing_key="one more")
    channel = connection.channel()
    exchange = channel.declare_exchange("x", "fanout", auto_delete=False)
    text = text.replace("'bound' to exchange 'amq.direct'", "'x' to exchange 'amq.fanout'")
    channel.refused(406, text, "exchange.bind", destination=exchange, source="amq.fanout")
    channel = connection.channel()
    channel.rpc("exchange.delete", exchange=exchange)
    channel.rpc("queue.unbind", queue=queue, exchange="amq.direct", routing_key="key0")
    channel.bind(queue, "amq.direct", "one more")
    # The existing binding works.
    channel.publish(b"m", "one more", "amq.direct")
    assert channel.drain(queue) == [b"m"]
    channel.rpc("queue.delete", queue=queue)
    fresh = channel.declare_queue("bound")
    for number in range(BINDINGS):
        channel.bind(fresh, "amq.topic", f"key{number}")


def test_consumers(limited: ConfiguredBroker, connection: Connection, bystander: Connection) -> None:
    channel = connection.channel()
    queue = channel.declare_queue("eaten")
    tags = [channel.consume(queue, no_ack=True) for _ in range(CONSUMERS)]
    second = connection.channel()
    text = (
        f"PRECONDITION_FAILED - cannot consume from queue 'eaten' in vhost '/': consumer limit ({CONSUMERS}) is reached"
    )
    second.refused(406, text, "basic.consume", queue=queue)
    channel.rpc("basic.cancel", consumer_tag=tags.pop())
    second = connection.channel()
    second.consume(queue, no_ack=True)
    second.rpc("channel.close", reply_code=200, reply_text="")
    third = connection.channel()
    third.consume(queue, no_ack=True)
    third.publish(b"m", queue)


def test_pika_gets_the_same_refusals(limited: ConfiguredBroker) -> None:
    with limited.connect() as client:
        channel = client.channel()
        for _ in range(QUEUES):
            channel.queue_declare("", exclusive=True)
        with pytest.raises(ChannelClosedByBroker) as caught:
            channel.queue_declare("", exclusive=True)
        assert caught.value.reply_code == 406
        for number in range(CHANNELS):
            client.channel(number + 1)
        with pytest.raises(ConnectionClosedByBroker) as refused:
            client.channel(CHANNELS + 1)
        assert refused.value.reply_code == 530


def test_consumers_of_one_queue_and_on_one_channel(tmp_path: Path) -> None:
    limits = {"consumers_per_channel_max": 3, "consumers_per_queue_max": 2}
    with running(ConfiguredBroker(tmp_path, limits=limits)) as broker:
        opened = broker.open()
        channel = opened.channel()
        crowded, free = channel.declare_queue(), channel.declare_queue()
        for _ in range(2):
            channel.consume(crowded)
        opened.channel().refused(
            406,
            f"PRECONDITION_FAILED - cannot consume from queue '{crowded}' in vhost '/': consumer limit (2) is reached",
            "basic.consume",
            queue=crowded,
        )
        channel.consume(free)
        text = "NOT_ALLOWED - reached maximum (3) of consumers per channel"
        channel.refused_hard(530, text, "basic.consume", queue=free)


@pytest.mark.proves("R19")
def test_the_configuration_of_all_brokers(tmp_path: Path) -> None:
    with running(ConfiguredBroker(tmp_path, limits={"configuration_bytes_max": 16384})) as broker:
        connection = broker.connect()
        refused = "configuration_bytes_max .16384 bytes. is reached"
        declared: list[str] = []
        while len(declared) < 400 and _declares(connection, f"queue-{len(declared):04d}"):
            declared.append(f"queue-{len(declared):04d}")
        with pytest.raises(ChannelClosedByBroker, match=refused):
            connection.channel().queue_declare("queue-more", durable=True)
        assert 50 < len(declared) < 400
        for other in (
            lambda channel: channel.exchange_declare("exchange" * 20, durable=True),
            lambda channel: channel.queue_bind(declared[0], "amq.topic", "k" * 200),
        ):
            with pytest.raises(ChannelClosedByBroker, match=refused):
                other(connection.channel())
        channel = connection.channel()
        channel.queue_declare(declared[0], durable=True)
        channel.queue_declare("", exclusive=True)
        for name in declared[:20]:
            channel.queue_delete(name)
        wait_until(lambda: _declares(connection, "queue-new"), "room for another queue")
        connection.close()


def _declares(connection: BlockingConnection, name: str) -> bool:
    channel = connection.channel()
    try:
        channel.queue_declare(name, durable=True)
    except ChannelClosedByBroker:
        return False
    return True

"""Connections of pika: login, negotiation, heartbeats, many channels, exclusive queues, reconnects."""

from __future__ import annotations

import socket
import time

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    AMQPConnectionError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    NoFreeChannels,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
    StreamLostError,
)

from .broker_under_test import BrokerUnderTest, Names
from .cable import Cable
from .conftest import Connect
from .pika_mailbox import Mailbox, put, take, take_all
from .waiting import pump, wait_until

LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{}' in vhost '/'. It could be originally "
    "declared on another connection or the exclusive property value does not match that of the original declaration."
)


def test_the_capabilities_that_clients_look_for(connection: pika.BlockingConnection) -> None:
    properties = connection._impl.server_properties
    expected = [
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    ]
    assert {name: properties["capabilities"].get(name) for name in expected} == dict.fromkeys(expected, True)
    assert all(part.isdigit() for part in properties["version"].split(".")[:2])
    assert properties["product"]
    assert connection.basic_nack_supported and connection.consumer_cancel_notify_supported
    assert connection.exchange_exchange_bindings_supported and connection.publisher_confirms_supported


def test_a_wrong_password_is_refused(connect: Connect) -> None:
    for user, password in (("guest", "wrong"), ("nobody", "guest")):
        with pytest.raises(ProbableAuthenticationError) as caught:
            connect(credentials=pika.PlainCredentials(user, password))
        assert "(403) 'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN." in str(caught.value)


def test_an_unknown_vhost_is_refused(connect: Connect) -> None:
    with pytest.raises(ProbableAccessDeniedError) as caught:
        connect(virtual_host="no such vhost")
    assert "(530) 'NOT_ALLOWED - vhost no such vhost not found'" in str(caught.value)


def test_the_smaller_proposal_holds(connect: Connect) -> None:
    connection = connect(channel_max=5, frame_max=8192, heartbeat=7)
    parameters = connection._impl.params
    assert (parameters.channel_max, parameters.frame_max, parameters.heartbeat) == (5, 8192, 7)
    for _ in range(5):
        connection.channel()
    with pytest.raises(NoFreeChannels):
        connection.channel()


def test_one_channel_too_many_closes_the_connection(connect: Connect) -> None:
    connection = connect(channel_max=2)
    connection.channel()
    connection.channel()
    with pytest.raises(ConnectionClosedByBroker) as caught:
        connection.channel(7)
    assert caught.value.reply_code == 530


def test_200_channels_on_one_connection(connection: pika.BlockingConnection, names: Names) -> None:
    queue = names.queue()
    channels = [connection.channel() for _ in range(200)]
    channels[0].queue_declare(queue)
    for channel in channels:
        put(channel, queue, [str(channel.channel_number).encode()])
    mailbox = Mailbox(channels[-1], queue, auto_ack=True)
    mailbox.wait_for(200)
    assert {int(body) for body in mailbox.bodies} == {channel.channel_number for channel in channels}
    for channel in channels[:100]:
        channel.close()
    assert {connection.channel().channel_number for _ in range(100)} == set(range(1, 101))


def test_heartbeats_keep_an_idle_connection(connect: Connect) -> None:
    """For the time of four heartbeats there is no other traffic: both sides have to send heartbeats or be considered
    dead."""
    connection = connect(heartbeat=1)
    channel = connection.channel()
    deadline = time.monotonic() + 4
    while time.monotonic() < deadline:
        connection.process_data_events(time_limit=0.2)
    assert channel.queue_declare("", exclusive=True).method.queue
    checker = connection._impl._heartbeat_checker
    assert checker._heartbeat_frames_received >= 2


def test_a_silent_client_is_dropped(broker: BrokerUnderTest, connect: Connect, names: Names) -> None:
    """A client that agreed to heartbeats and sends none loses its connection, and its unacked messages are requeued."""
    queue = names.queue()
    keeper = connect().channel()
    keeper.queue_declare(queue)
    put(keeper, queue, [b"m"])
    silent = connect(heartbeat=1)
    Mailbox(silent.channel(), queue).wait_for(1)
    # No thread serves this connection from here on, so it sends no heartbeat.
    again = take(keeper, queue)
    assert (again.body, again.method.redelivered) == (b"m", True)
    with pytest.raises(AMQPConnectionError):
        pump(silent, lambda: silent.is_closed, "the end of the silent connection")


def test_heartbeat_zero_switches_them_off(connect: Connect) -> None:
    connection = connect(heartbeat=0)
    assert connection._impl.params.heartbeat == 0
    assert connection.channel().queue_declare("", exclusive=True).method.queue


def test_update_secret_is_answered(connection: pika.BlockingConnection) -> None:
    connection.update_secret("guest", "because a token ran out")
    assert connection.channel().queue_declare("", exclusive=True).method.queue


@pytest.mark.only_ours("a foreign broker need not listen there")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_localhost_in_every_spelling(broker: BrokerUnderTest, connect: Connect, host: str) -> None:
    if host == "::1" and not has_ipv6_loopback():
        pytest.skip("this machine has no ::1")
    assert connect(host=host).channel().queue_declare("", exclusive=True).method.queue


def has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_an_exclusive_queue_is_its_connections_alone(connect: Connect, names: Names) -> None:
    queue = names.queue()
    owner, other = connect(), connect()
    owner.channel().queue_declare(queue, exclusive=True)
    # Any channel of the same connection may use it.
    owner.channel().queue_declare(queue, exclusive=True)
    for act in (
        lambda c: c.queue_declare(queue, exclusive=True),
        lambda c: c.queue_declare(queue, passive=True),
        lambda c: c.queue_declare(queue),
        lambda c: c.basic_consume(queue, lambda *_: None),
        lambda c: c.basic_get(queue),
        lambda c: c.queue_bind(queue, "amq.direct", "k"),
        lambda c: c.queue_purge(queue),
        lambda c: c.queue_delete(queue),
    ):
        with pytest.raises(ChannelClosedByBroker) as caught:
            act(other.channel())
        assert (caught.value.reply_code, caught.value.reply_text) == (405, LOCKED.format(queue))
    # Every client may publish to it.
    put(other.channel(), queue, [b"m"])
    assert take(owner.channel(), queue).body == b"m"


def test_an_exclusive_queue_ends_with_its_connection(connect: Connect, names: Names) -> None:
    queue = names.queue()
    owner = connect()
    channel = owner.channel()
    channel.queue_declare(queue, exclusive=True)
    put(channel, queue, [b"lost"])
    channel.close()
    owner.channel().queue_declare(queue, passive=True)
    owner.close()
    other = connect()

    def is_free() -> bool:
        try:
            declared = other.channel().queue_declare(queue, exclusive=True)
        except ChannelClosedByBroker:
            return False
        assert declared.method.message_count == 0, "it is another queue under the same name"
        return True

    # RabbitMQ answers the close before it has deleted the queue.
    wait_until(is_free, "the end of the exclusive queue")


def test_closing_a_connection_closes_its_channels_and_gives_back(connect: Connect, names: Names) -> None:
    queue = names.queue()
    keeper = connect().channel()
    keeper.queue_declare(queue)
    put(keeper, queue, [b"1", b"2", b"3"])
    leaver = connect()
    for _ in range(3):
        channel = leaver.channel()
        channel.basic_qos(prefetch_count=1)
        Mailbox(channel, queue).wait_for(1)
    leaver.close()
    assert take_all(keeper, queue) == [b"1", b"2", b"3"]


def test_a_client_reconnects_after_the_cable_is_cut(broker: BrokerUnderTest, connect: Connect, names: Names) -> None:
    queue = names.queue()
    keeper = connect().channel()
    keeper.queue_declare(queue)
    put(keeper, queue, [b"in flight"])
    with Cable(broker.host, broker.port) as cable:
        connection = connect(host="127.0.0.1", port=cable.port)
        Mailbox(connection.channel(), queue).wait_for(1)
        cable.cut()
        with pytest.raises((StreamLostError, AMQPConnectionError)):
            pump(connection, lambda: connection.is_closed, "the end of the connection")
        fresh = connect(host="127.0.0.1", port=cable.port).channel()
        again = take(fresh, queue)
        assert (again.body, again.method.redelivered) == (b"in flight", True)


def test_a_client_reconnects_after_the_broker_closed(connect: Connect, names: Names) -> None:
    queue = names.queue()
    channel = connect().channel()
    channel.queue_declare(queue)
    put(channel, queue, [b"kept"])
    with pytest.raises(ConnectionClosedByBroker):
        channel.basic_recover(requeue=False)
    assert channel.is_closed and channel.connection.is_closed
    assert take(connect().channel(), queue).body == b"kept"


def test_a_declared_queue_outlives_its_connection(connect: Connect, names: Names) -> None:
    queue = names.queue()
    first = connect()
    channel = first.channel()
    channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    put(channel, queue, [b"1"], delivery_mode=2)
    first.close()
    assert take(connect().channel(), queue).body == b"1"


def test_channel_flow_is_answered(channel: BlockingChannel) -> None:
    assert channel.flow(True) is True


def test_closing_and_opening_in_a_row(connect: Connect) -> None:
    connection = connect()
    for _ in range(50):
        channel = connection.channel(1)
        channel.basic_qos(prefetch_count=1)
        channel.close()
    wait_until(lambda: connection.is_open, "the connection")

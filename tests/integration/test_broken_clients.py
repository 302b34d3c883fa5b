"""Clients that disconnect, send garbage or are killed: they harm no other client, and no message that they held is
lost."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from .broker_under_test import BrokerUnderTest, Names
from .conftest import Connect
from .pika_mailbox import Mailbox, put, take
from .waiting import PATIENCE_S, wait_until

HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def dial(broker: BrokerUnderTest) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S)


def hang_up_hard(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    peer.close()


def read_to_end(peer: socket.socket) -> bytes:
    received = b""
    try:
        while data := peer.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    peer.close()
    return received


def assert_serves(connect: Connect) -> None:
    channel = connect().channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    put(channel, queue, [b"alive"])
    assert take(channel, queue).body == b"alive"


def test_connect_and_close(broker: BrokerUnderTest, connect: Connect) -> None:
    before = broker.process.log_text() if broker.process else ""
    for _ in range(20):
        dial(broker).close()
    for _ in range(20):
        hang_up_hard(dial(broker))
    assert_serves(connect)
    if broker.process:
        assert "ERROR" not in broker.process.log_text()[len(before) :]


@pytest.mark.parametrize("length", [1, 4, 7, 8])
def test_half_a_handshake(broker: BrokerUnderTest, connect: Connect, length: int) -> None:
    for close in (socket.socket.close, hang_up_hard):
        peer = dial(broker)
        peer.sendall(HEADER_0_9_1[:length])
        if length == 8:
            assert peer.recv(1) == b"\x01", "connection.start comes in a method frame"
        close(peer)
    assert_serves(connect)


@pytest.mark.parametrize(
    "greeting",
    [b"GET / HTTP/1.1\r\n\r\n", b"AMQP\x00\x01\x00\x00", b"AMQP\x01\x01\x00\x0a", b"\x00" * 64, b"\xff" * 4096],
    ids=["HTTP", "AMQP 0-10", "AMQP 1.0", "zeros", "ones"],
)
def test_a_wrong_greeting_is_answered_with_the_right_one(
    broker: BrokerUnderTest, connect: Connect, greeting: bytes
) -> None:
    peer = dial(broker)
    peer.sendall(greeting)
    assert read_to_end(peer) == HEADER_0_9_1
    assert_serves(connect)


GARBAGE = [
    b"garbage, garbage, garbage",
    random.Random(0).randbytes(4096),
    # A method frame of four gigabytes.
    b"\x01\x00\x00\xff\xff\xff\xff",
    # A frame without its end mark, one of an unknown type, a method that does not exist, a body without a method.
    b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0b\x00",
    b"\x09\x00\x00\x00\x00\x00\x00\xce",
    b"\x01\x00\x00\x00\x00\x00\x04\x00\xff\x00\xff\xce",
    b"\x03\x00\x01\x00\x00\x00\x01x\xce",
]


def test_garbage_after_the_greeting_ends_the_connection(broker: BrokerUnderTest, connect: Connect) -> None:
    peers = [dial(broker) for _ in GARBAGE]
    for peer, garbage in zip(peers, GARBAGE, strict=True):
        peer.sendall(HEADER_0_9_1)
        assert peer.recv(1) == b"\x01"
        peer.sendall(garbage)
        with contextlib.suppress(OSError):  # The broker may have closed the connection already.
            peer.shutdown(socket.SHUT_WR)
    # RabbitMQ takes three seconds for each, so all of them wait at once.
    for peer in peers:
        read_to_end(peer)
    assert_serves(connect)


def test_garbage_in_the_middle_of_a_conversation(connect: Connect, names: Names) -> None:
    """The sender loses its connection; its unacked messages return to the others."""
    queue = names.queue()
    keeper = connect().channel()
    keeper.queue_declare(queue)
    put(keeper, queue, [b"m"])
    victim = connect()
    Mailbox(victim.channel(), queue).wait_for(1)
    raw: socket.socket = victim._impl._transport._sock
    raw.setblocking(True)
    raw.sendall(b"\x01\x00\x01\x00\x00\x00\x05hello no end mark")
    again = take(keeper, queue)
    assert (again.body, again.method.redelivered) == (b"m", True)


def test_half_a_message_is_no_message(broker: BrokerUnderTest, connect: Connect, names: Names) -> None:
    """A publisher that dies between the header and the end of the body has published nothing."""
    queue = names.queue()
    channel = connect().channel()
    channel.queue_declare(queue)
    publisher = connect()
    publisher_channel = publisher.channel()
    put(publisher_channel, queue, [b"whole"])
    raw: socket.socket = publisher._impl._transport._sock
    name = queue.encode()
    publish = b"\x00\x3c\x00\x28\x00\x00\x00" + bytes([len(name)]) + name + b"\x00"
    header = b"\x00\x3c\x00\x00" + (1000).to_bytes(8, "big") + b"\x00\x00"
    frames = b"".join(
        kind + b"\x00\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"
        for kind, payload in ((b"\x01", publish), (b"\x02", header), (b"\x03", b"only a part"))
    )
    raw.setblocking(True)
    raw.sendall(frames)
    raw.shutdown(socket.SHUT_RDWR)
    assert take(channel, queue).body == b"whole"
    put(channel, queue, [b"next"])
    assert take(channel, queue).body == b"next"


def test_a_killed_client_gives_its_messages_back(broker: BrokerUnderTest, connect: Connect, names: Names) -> None:
    queue = names.queue()
    channel = connect().channel()
    channel.queue_declare(queue, durable=True)
    bodies = [str(number).encode() for number in range(30)]
    put(channel, queue, bodies, delivery_mode=2)
    program = Path(__file__).with_name("unacked_consumer.py")
    victim = subprocess.Popen(
        [sys.executable, str(program), broker.url, queue, "30"], stdout=subprocess.PIPE, text=True
    )
    with victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "holding\n"
        assert channel.basic_get(queue) == (None, None, None)
        victim.kill()
    mailbox = Mailbox(channel, queue)
    mailbox.wait_for(30)
    assert mailbox.bodies == bodies
    assert all(delivery.method.redelivered for delivery in mailbox.deliveries)


def test_a_publisher_that_vanishes_after_its_confirms_has_published(
    broker: BrokerUnderTest, connect: Connect, names: Names
) -> None:
    queue = names.queue()
    keeper = connect().channel()
    keeper.queue_declare(queue)
    publisher = connect()
    channel = publisher.channel()
    channel.confirm_delivery()
    put(channel, queue, [b"confirmed"] * 10)
    publisher._impl._transport._sock.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: keeper.queue_declare(queue, passive=True).method.message_count == 10, "ten messages")

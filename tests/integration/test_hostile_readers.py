"""Clients that send requests and do not read the answers: their cost is bounded, and all answers arrive if they
read."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.support.client import Connection
from tests.support.frames import METHOD, frame
from tests.support.methods import encode

from .bystander import Bystander
from .configured_broker import ConfiguredBroker
from .tls_brokers import PASSWORD, USER, TlsBroker, tls_broker
from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its log and its size are looked at")

Connect = Callable[..., Connection]

MIB = 1024 * 1024
DEAF_BYTES_MAX = 16 * MIB
"""The cost of a client that reads nothing: buffers of a megabyte or two in each place, and a margin."""
FLOW = frame(METHOD, 1, encode("channel.flow", active=True))
MORE_THAN_SOCKETS_HOLD = 3_000_000


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    with tls_broker(tmp_path_factory.mktemp("target"), "ignore") as broker:
        yield broker


@pytest.fixture(scope="module")
def target(secured: TlsBroker) -> ConfiguredBroker:
    return secured.broker


@pytest.fixture(params=["plain", "TLS"])
def connect(request: pytest.FixtureRequest, secured: TlsBroker) -> Connect:
    """Both kinds of connection apply back-pressure in their own way."""
    return partial(secured.broker.open, USER, PASSWORD) if request.param == "plain" else secured.open


def grown_to(broker: ConfiguredBroker, before: int, rounds: int = 3) -> int:
    """Returns its largest growth over a few measurements, between which it has worked."""
    with Bystander(broker.address(USER, PASSWORD)) as watching:
        sizes = []
        for _ in range(rounds):
            watching.goes_on()
            sizes.append(broker.resident_bytes - before)
    return max(sizes)


def test_a_consumer_that_never_reads(target: ConfiguredBroker, connect: Connect) -> None:
    """Messages that it does not read wait in the queue, once, and not in its connection again."""
    count, size = 60, MIB
    publisher = connect()
    channel = publisher.channel()
    channel.declare_queue("unread", exclusive=False)
    with channel.settling():
        for _ in range(count):
            channel.publish(b"x" * size, "unread")
    deaf = connect()
    before = target.resident_bytes
    deaf.channel(1).send("basic.consume", queue="unread", no_ack=True)
    assert grown_to(target, before) < DEAF_BYTES_MAX
    ready, consumers = channel.counts("unread")
    assert consumers == 1
    assert ready > count / 2, "most wait where they are"
    deaf.drop()
    wait_until(lambda: channel.counts("unread")[1] == 0, "the end of the consumer")
    publisher.close()


def test_a_client_that_never_reads_its_answers_costs_a_bounded_amount_of_memory(
    target: ConfiguredBroker, connect: Connect
) -> None:
    deaf = connect()
    deaf.channel(1)
    before = target.resident_bytes
    assert isinstance(deaf.socket, socket.socket)
    deaf.socket.settimeout(0.5)
    with pytest.raises(TimeoutError):
        # The broker stops reading from it long before all of this is sent.
        deaf.socket.sendall(FLOW * MORE_THAN_SOCKETS_HOLD)
    assert grown_to(target, before) < DEAF_BYTES_MAX
    deaf.drop()


def test_short_questions_with_long_answers(target: ConfiguredBroker, connect: Connect) -> None:
    """One read contains thousands of basic.get, each for the same megabyte, which is requeued each time."""
    count = 3000
    asker = connect()
    channel = asker.channel(1)
    queue = channel.declare_queue()
    channel.publish(b"x" * MIB, queue)
    assert channel.counts(queue)[0] == 1
    before = target.resident_bytes
    get = frame(METHOD, 1, encode("basic.get", queue=queue))
    give_back = [frame(METHOD, 1, encode("basic.nack", delivery_tag=n + 1, requeue=True)) for n in range(count)]
    asker.send_bytes(b"".join(get + back for back in give_back))
    assert grown_to(target, before) < DEAF_BYTES_MAX
    # Once it reads, it receives all answers, in order.
    for number in range(200):
        answer = channel.expect("basic.get-ok")
        assert (answer.delivery_tag, len(answer.body)) == (number + 1, MIB)
    assert grown_to(target, before) < DEAF_BYTES_MAX
    asker.drop()


def test_requests_before_a_close_are_answered(target: ConfiguredBroker, connect: Connect) -> None:
    count = 40
    mark = target.mark()
    asker = connect()
    channel = asker.channel(1)
    queue = channel.declare_queue()
    for number in range(count):
        channel.publish(bytes([number]) * MIB, queue)
    assert channel.counts(queue)[0] == count
    get = frame(METHOD, 1, encode("basic.get", queue=queue, no_ack=True))
    asker.send_bytes(get * count + frame(METHOD, 0, encode("connection.close", reply_code=200)))
    for number in range(count):
        assert channel.expect("basic.get-ok").body == bytes([number]) * MIB
    asker.expect("connection.close-ok")
    asker.expect_eof()
    asker.drop()
    assert target.lines("WARNING|ERROR", mark) == []


@pytest.mark.slow
def test_a_deaf_client_is_gone_after_two_heartbeats(target: ConfiguredBroker) -> None:
    """Its heartbeats do not reach the broker, which does not read from it while it does not read the answers."""
    mark = target.mark()
    deaf = target.open(USER, PASSWORD, heartbeat=1)
    deaf.channel(1)
    assert isinstance(deaf.socket, socket.socket)
    deaf.socket.settimeout(0.5)
    with pytest.raises((TimeoutError, ConnectionError)):
        deaf.socket.sendall(FLOW * MORE_THAN_SOCKETS_HOLD)
    target.wait_for_line("dropped: nothing was received for two heartbeat intervals", mark)
    deaf.drop()

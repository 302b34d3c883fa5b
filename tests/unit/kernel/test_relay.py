"""Publishes of a broker that is not the root: to its own queues and to the root, and sent again until confirmed."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from pandomq.kernel.constants import CONFIRMED_BEFORE
from tests.unit.kernel.frames import Confirmed, ack, nack, properties, publish, read
from tests.unit.kernel.test_scanner import flat
from tests.unit.kernel.world import World


class Front:
    """A client's channel, and the session that leads to the root."""

    def __init__(self, world: World, mode: int = 1, frame_max: int = 4096) -> None:
        self.world = world
        self.channel = world.channel(number=3, mode=mode)
        self.client = self.channel.session
        self.tunnel = world.session(frame_max=frame_max)
        self.client.uplink = self.tunnel

    def publish(self, key: bytes, *bodies: bytes, bits: int = 0, props: bytes = b"\0\0") -> None:
        data = b"".join(publish(key, body, props, channel=3, bits=bits) for body in bodies)
        self.world.feed(self.client, data)

    def confirm(self, data: bytes) -> list[Any]:
        (run,) = self.world.kernel.Scanner(0, 0).feed(data)
        self.world.engine.relay_confirms(self.client, run)
        return read(self.client.take())

    def forwarded(self) -> list[tuple[bytes, int]]:
        """Bodies and flags of what the root gets."""
        kernel = self.world.kernel
        values = flat(kernel, kernel.Scanner(4096, 1 << 20).feed(self.tunnel.take()))
        assert all(value[0] == 3 for value in values)
        return [(value[3], value[5]) for value in values]


@pytest.fixture
def front(world: World) -> Front:
    return Front(world)


def test_a_message_without_a_local_queue_is_forwarded_as_it_is(front: Front) -> None:
    front.publish(b"far", b"1", b"2", bits=1)
    front.publish(b"far", b"3")
    assert front.forwarded() == [(b"1", 1), (b"2", 1), (b"3", 0)]
    assert front.world.engine.returned == []
    assert front.world.engine.unroutable == 0


def test_a_message_for_a_local_queue_is_forwarded_without_mandatory(front: Front) -> None:
    queue = front.world.queue("near")
    for _ in range(2):
        front.publish(b"near", b"1", bits=1)
    assert front.world.ready(queue) == [b"1", b"1"]
    assert front.forwarded() == [(b"1", 0), (b"1", 0)]


def test_the_bytes_are_those_of_a_publish(front: Front) -> None:
    props = properties(priority=4, delivery_mode=2)
    data = publish(b"key", b"body" * 30, props, channel=3, exchange=b"exchange", bits=1)
    front.world.feed(front.client, data)
    assert front.tunnel.take() == data


def test_bodies_are_split_as_the_root_wants_it(world: World) -> None:
    front = Front(world, frame_max=20)
    front.world.feed(front.client, publish(b"k", b"x" * 30, channel=3))
    assert front.tunnel.take() == publish(b"k", b"x" * 30, channel=3, chunk=12)


def test_transactions_go_to_the_hook(world: World) -> None:
    front = Front(world, mode=2)
    front.publish(b"far", b"1")
    assert front.forwarded() == [(b"1", 0)]
    assert (front.channel.kept_count, front.channel.published_count) == (0, 0)


@pytest.mark.parametrize("mode", [0, 1])
def test_only_messages_that_will_be_confirmed_are_kept(world: World, mode: int) -> None:
    front = Front(world, mode)
    front.publish(b"far", b"12", b"345")
    engine, channel = world.engine, front.channel
    assert (channel.kept_count, channel.published_count, channel.unconfirmed_count) == (2 * mode,) * 3
    assert channel.kept_bytes == engine.held_bytes == mode * (5 + 2 * 14)
    assert channel.first_kept == 1


def test_a_message_in_a_queue_here_is_held_once(front: Front) -> None:
    front.world.queue("near")
    front.publish(b"near", b"12345")
    assert (front.world.engine.held_messages, front.world.engine.held_bytes) == (1, 19)
    assert front.confirm(ack(1, channel=3)) == [Confirmed(3, True, 1, False)]
    assert (front.world.engine.held_messages, front.channel.kept_bytes) == (1, 0)


def test_confirms_are_relayed_as_they_are(front: Front) -> None:
    front.publish(b"far", *(b"%d" % number for number in range(1, 9)))
    assert front.confirm(ack(2, True, channel=3) + nack(3, False, False, channel=3)) == [
        Confirmed(3, True, 2, True),
        Confirmed(3, False, 3, False),
    ]
    assert (front.channel.first_kept, front.channel.kept_count, front.world.engine.confirmed) == (4, 5, 2)
    # One that came early stays, since those before it may have to be sent again.
    assert front.confirm(ack(5, channel=3)) == [Confirmed(3, True, 5, False)]
    assert (front.channel.kept_count, front.channel.unconfirmed_count) == (5, 4)
    assert front.confirm(ack(4, channel=3)) == [Confirmed(3, True, 4, False)]
    assert (front.channel.first_kept, front.channel.kept_count) == (6, 3)
    assert front.confirm(ack(8, True, channel=3)) == [Confirmed(3, True, 8, True)]
    assert (front.channel.first_kept, front.channel.kept_bytes, front.world.engine.held_messages) == (9, 0, 0)


def test_unconfirmed_messages_are_sent_again_without_a_gap(front: Front) -> None:
    front.publish(b"far", b"1", b"2", b"3", b"4")
    front.confirm(ack(1, channel=3) + ack(3, channel=3))
    front.forwarded()
    front.client.uplink = front.tunnel = front.world.session()
    front.channel.resend()
    assert front.forwarded() == [(b"2", 0), (b"3", CONFIRMED_BEFORE), (b"4", 0)]
    # The client does not receive the same confirm again.
    assert front.confirm(ack(3, channel=3)) == []
    assert front.confirm(ack(3, True, channel=3)) == [Confirmed(3, True, 2, True)]
    assert front.confirm(nack(3, True, False, channel=3) + ack(9, channel=3)) == []
    assert front.confirm(ack(9, True, channel=3)) == [Confirmed(3, True, 4, True)]


def test_a_confirmed_publish_is_marked_so_when_it_is_sent_again(front: Front) -> None:
    """The next root must not return it, and must not enqueue it: queues may have been bound in the meantime."""
    for number in range(1, 5):
        front.world.engine.forward(front.channel, front.world.message(b"%d" % number, key="far"), 3)
    front.confirm(ack(2, channel=3) + nack(4, False, False, channel=3))
    front.forwarded()
    front.channel.resend()
    assert front.forwarded() == [
        (b"1", 3),
        (b"2", 2 | CONFIRMED_BEFORE),
        (b"3", 3),
        (b"4", 2 | CONFIRMED_BEFORE),
    ]


def test_a_returned_message_is_not_mandatory_when_it_is_sent_again(front: Front) -> None:
    def message(body: bytes, key: str = "far") -> Any:
        return front.world.message(body, key=key)

    front.channel.come_back(message(b"never sent"))
    for body in (b"a", b"b", b"a", b"a"):
        front.world.engine.forward(front.channel, message(body), 1)
    front.channel.come_back(message(b"a"))
    front.channel.come_back(message(b"a", key="elsewhere"))
    front.channel.come_back(message(b"a"))
    # The root returns them in order: this one is behind.
    front.channel.come_back(message(b"b"))
    front.forwarded()
    front.channel.resend()
    assert front.forwarded() == [(b"a", 0), (b"b", 1), (b"a", 0), (b"a", 1)]
    # The next root begins anew.
    front.channel.come_back(message(b"b"))
    front.confirm(ack(2, True, channel=3))
    front.channel.come_back(message(b"a"))
    front.channel.resend()
    assert front.forwarded() == [(b"a", 0), (b"a", 0)]


def test_without_a_tunnel_it_is_kept_and_follows(front: Front) -> None:
    front.publish(b"far", b"1")
    front.forwarded()
    front.client.uplink = None
    message = front.world.message(b"2", key="far")
    front.world.engine.forward(front.channel, message, 1)
    front.client.uplink = front.tunnel
    front.channel.resend()
    assert front.forwarded() == [(b"1", 0), (b"2", 1)]


def test_a_channel_that_is_closed_keeps_nothing(front: Front) -> None:
    front.publish(b"far", b"1", b"2")
    front.channel.close(0)
    assert (front.channel.kept_count, front.world.engine.held_messages) == (0, 0)
    front.world.engine.forward(front.channel, front.world.message(b"3"), 0)
    assert (front.channel.kept_count, len(front.forwarded())) == (0, 2)
    assert front.confirm(ack(2, True, channel=3)) == []


def test_long_windows(kernel: ModuleType) -> None:
    front = Front(World(kernel))
    for start in range(0, 1000, 100):
        front.publish(b"far", *(b"%d" % number for number in range(start, start + 100)))
        front.confirm(ack(start + 40, True, channel=3))
        assert front.channel.kept_count == 60
    front.forwarded()
    front.channel.resend()
    assert [body for body, _ in front.forwarded()] == [b"%d" % number for number in range(940, 1000)]

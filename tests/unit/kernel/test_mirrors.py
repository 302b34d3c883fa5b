"""Deliveries of the root to clients of another broker, and what the root hears about them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from pandomq.kernel.constants import MIRROR_SPAN_MAX, NEVER_MS
from tests.support.examples import examples
from tests.unit.kernel.frames import Delivered, ack, deliver, nack, properties, reject, split_frames
from tests.unit.kernel.world import World

ACK, REJECT, NACK = 80, 90, 120


class Front:
    """A channel of a client here, and the session that leads to the root."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.channel = world.channel(number=3)
        self.client = self.channel.session
        self.client.uplink = self.tunnel = world.session()

    def subscribe(self, **settings: Any) -> Any:
        return self.world.consumer(self.channel, self.world.queue(mirror=True), **settings)

    def arrive(self, consumer: Any, *tags: int, redelivered: bool = False, props: bytes = b"\0\0") -> None:
        data = b"".join(
            deliver(consumer.tag, tag, b"%d" % tag, props, channel=3, redelivered=redelivered) for tag in tags
        )
        for run in self.world.kernel.Scanner(4096, 100, True).feed(data):
            self.world.engine.mirror(self.client, run, self.world.now_ms)

    def delivered(self) -> list[Delivered]:
        return self.world.run(self.client)

    def settle(self, *data: bytes) -> list[tuple[int, int, int]]:
        """Sends the client's bytes; returns the root's input: method, tag, bits."""
        self.world.feed(self.client, b"".join(data))
        return self.heard()

    def heard(self) -> list[tuple[int, int, int]]:
        frames = split_frames(self.tunnel.take())
        assert all((kind, channel) == (1, 3) for kind, channel, _ in frames)
        return [struct.unpack(">HHQB", payload)[1:] for _, _, payload in frames]


def acks(*tags: int) -> bytes:
    return b"".join(ack(tag, channel=3) for tag in tags)


@pytest.fixture
def front(world: World) -> Front:
    return Front(world)


def test_the_client_gets_it_under_a_tag_of_its_own(front: Front) -> None:
    consumer = front.subscribe()
    front.arrive(consumer, 7)
    front.arrive(consumer, 9, redelivered=True)
    assert [(one.tag, one.redelivered, one.body) for one in front.delivered()] == [(1, False, b"7"), (2, True, b"9")]
    assert front.settle(ack(2, channel=3)) == [(ACK, 9, 0)]
    assert front.settle(ack(1, channel=3)) == [(ACK, 7, 0)]
    assert (front.world.engine.held_messages, front.world.engine.acked, consumer.unacked_count) == (0, 2, 0)


def test_acks_are_joined_while_nothing_else_is_covered(front: Front) -> None:
    consumer = front.subscribe()
    front.arrive(consumer, *range(1, 11))
    front.delivered()
    assert front.settle(acks(1, 2, 3)) == [(ACK, 3, 1)]
    assert front.settle(acks(5, 4, 6)) == [(ACK, 5, 0), (ACK, 6, 1)]
    assert front.settle(ack(9, True, channel=3)) == [(ACK, 9, 1)]
    assert front.settle(ack(0, True, channel=3)) == [(ACK, 10, 0)]


def test_deliveries_of_another_mirror_of_the_channel_are_never_acked_along(front: Front) -> None:
    one, other = front.subscribe(prefetch=1), front.subscribe()
    front.arrive(one, 1, 2)
    front.arrive(other, 3, 4)
    assert [event.body for event in front.delivered()] == [b"1", b"3", b"4"]
    # The root's second one waits here.
    assert front.settle(acks(2, 3)) == [(ACK, 3, 0), (ACK, 4, 0)]
    assert front.settle(acks(1)) == [(ACK, 1, 0)]
    front.arrive(other, 5)
    assert [event.body for event in front.delivered()] == [b"5", b"2"]
    assert front.settle(acks(4, 5)) == [(ACK, 5, 0), (ACK, 2, 0)]


def test_other_settlements_are_passed_on_and_have_no_effect_here(front: Front) -> None:
    consumer = front.subscribe()
    front.arrive(consumer, 1, 2, 3, 4, 5, 6, 7)
    front.delivered()
    assert front.settle(
        ack(1, channel=3),
        nack(2, False, True, channel=3),
        ack(3, channel=3),
        reject(4, False, channel=3),
        reject(5, True, channel=3),
        nack(7, True, False, channel=3),
    ) == [(ACK, 1, 0), (NACK, 2, 2), (ACK, 3, 0), (REJECT, 4, 0), (REJECT, 5, 1), (NACK, 6, 0), (NACK, 7, 0)]
    assert front.delivered() == []
    queue = consumer.queue
    assert (queue.ready_count, queue.unacked_count, queue.dropped, front.world.engine.dead) == (0, 0, 3, [])
    assert front.world.engine.held_messages == 0


def test_private_queues_of_the_same_channel_are_settled_here(front: Front) -> None:
    private = front.world.queue()
    front.world.consumer(front.channel, private)
    mirrored = front.subscribe()
    front.arrive(mirrored, 1)
    front.world.put(private, b"here")
    front.arrive(mirrored, 2)
    front.delivered()
    assert front.settle(ack(0, True, channel=3)) == [(ACK, 2, 1)]
    assert private.acked == 1


def test_recover_requeues_at_the_root(front: Front) -> None:
    front.arrive(front.subscribe(), 1, 2)
    front.delivered()
    front.channel.recover(0)
    assert front.heard() == [(NACK, 1, 2), (NACK, 2, 2)]
    assert (front.delivered(), front.channel.unacked_count) == ([], 0)


@pytest.mark.parametrize("end", ["channel", "session"])
def test_a_close_sends_no_settlements(front: Front, end: str) -> None:
    front.arrive(front.subscribe(), 1, 2)
    front.delivered()
    (front.channel if end == "channel" else front.client).close(0)
    assert (front.heard(), front.world.engine.held_messages) == ([], 0)


def test_deliveries_of_an_earlier_tunnel_are_not_settled(front: Front) -> None:
    consumer = front.subscribe()
    front.arrive(consumer, 1, 2, 3)
    front.delivered()
    front.client.uplink = front.tunnel = front.world.session()
    assert front.settle(acks(1)) == []
    front.arrive(consumer, 1, 2, redelivered=True)
    front.delivered()
    assert front.settle(acks(2, 4, 3, 5)) == [(ACK, 2, 1)]
    front.client.uplink = None
    front.arrive(consumer, 9)
    front.delivered()
    assert (front.settle(acks(6)), front.world.engine.held_messages) == ([], 0)


def test_settlements_after_the_end_of_the_mirror_are_ignored(front: Front) -> None:
    consumer = front.subscribe(prefetch=2)
    front.arrive(consumer, 1, 2, 3)
    front.delivered()
    assert consumer.queue.delete() == 1
    assert front.settle(acks(1), nack(2, False, True, channel=3)) == []
    assert (front.world.events, front.world.engine.held_messages) == ([], 0)


def test_ready_ones_can_go_back(front: Front) -> None:
    consumer = front.subscribe(prefetch=1)
    front.arrive(consumer, 1, 2, 3)
    front.delivered()
    consumer.cancel()
    assert front.channel.give_back(consumer.queue) == 2
    assert front.heard() == [(NACK, 2, 2), (NACK, 3, 2)]
    assert front.settle(acks(1)) == [(ACK, 1, 0)]
    assert front.world.engine.held_messages == 0


def test_deliveries_without_a_consumer_go_back(front: Front) -> None:
    consumer = front.subscribe()
    consumer.cancel()
    front.arrive(consumer, 4)
    assert front.heard() == [(NACK, 4, 2)]
    front.channel.open = False
    front.arrive(consumer, 5)
    front.channel.close(0)
    front.arrive(consumer, 6)
    assert front.heard() == []


def test_deliveries_without_acks_do_not_split_a_multiple_ack(front: Front) -> None:
    quiet, consumer = front.subscribe(no_ack=True), front.subscribe()
    front.arrive(quiet, 1)
    front.arrive(consumer, 2)
    front.arrive(quiet, 3)
    front.arrive(consumer, 4)
    front.delivered()
    assert front.settle(acks(2, 4)) == [(ACK, 4, 1)]


def test_time_to_live_is_the_roots_matter(front: Front) -> None:
    consumer = front.subscribe(prefetch=1)
    front.arrive(consumer, 1, 2, props=properties(expiration=b"5"))
    front.world.now_ms += 1000
    assert [one.tag for one in front.delivered()] == [1]
    front.settle(acks(1))
    assert [one.tag for one in front.delivered()] == [2]


def test_gets(front: Front) -> None:
    mailbox = front.world.queue(mirror=True)
    consumer = front.subscribe()
    for tag in (5, 6):
        mailbox.reinstate(front.world.message(b"got"), tag, 0, NEVER_MS, 0, True)
        assert mailbox.take(front.channel, False, 0)[:2] == (tag - 4, True)
    front.arrive(consumer, 7)
    front.delivered()
    assert front.settle(acks(1, 2, 3)) == [(ACK, 7, 1)]


def test_a_session_that_is_full_lets_them_wait(front: Front) -> None:
    front.client.pause()
    consumer = front.subscribe()
    front.arrive(consumer, 1, 2)
    assert (front.delivered(), consumer.queue.ready_count) == ([], 2)
    front.client.resume()
    assert [one.body for one in front.delivered()] == [b"1", b"2"]


def test_tags_too_far_apart_are_no_longer_joined(front: Front) -> None:
    consumer = front.subscribe()
    far = 1 + MIRROR_SPAN_MAX
    front.arrive(consumer, 1, 2, far - 1, far, far + 1)
    front.delivered()
    assert front.settle(acks(1, 2)) == [(ACK, 1, 0), (ACK, 2, 0)]
    assert front.settle(acks(3, 4, 5)) == [(ACK, far - 1, 0), (ACK, far, 0), (ACK, far + 1, 0)]


def test_forgotten_deliveries_are_unknown(front: Front) -> None:
    one, other = front.subscribe(), front.subscribe()
    front.arrive(one, 1, 2)
    front.arrive(other, 3)
    front.arrive(one, 4)
    front.delivered()
    front.channel.forget(one.queue)
    assert front.channel.outstanding(0, True) == [3]
    assert (one.unacked_count, one.queue.unacked_count) == (0, 0)
    assert (front.channel.forget_tag(3), front.channel.forget_tag(3)) == (True, False)
    assert (front.heard(), front.world.engine.held_messages) == ([], 0)
    assert front.settle(acks(3)) == []
    assert front.world.events == [("unknown tag", 0, ACK, 3)]


@hypothesis.settings(max_examples=examples(150))
@hypothesis.given(script=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), max_size=60))
def test_nothing_is_covered_that_the_client_did_not_ack(
    kernel_world: Callable[[], World], script: list[tuple[int, int]]
) -> None:
    """Held against the definition: the root's window, settled frame by frame."""
    front = Front(kernel_world())
    consumers = [front.subscribe(), front.subscribe(prefetch=2)]
    at_root: set[int] = set()
    mine: dict[int, int] = {}  # the client's tags, and the root's
    next_tag = 1
    for kind, number in script:
        if kind < 2:
            tags = range(next_tag + number % 3, next_tag + number % 3 + 1 + number % 70)
            front.arrive(consumers[kind], *tags)
            at_root |= set(tags)
            next_tag = tags[-1] + 1
        elif mine:
            tag = sorted(mine)[number % len(mine)]
            gone = [each for each in mine if each == tag or (kind == 3 and each < tag)]
            expected = at_root - {mine.pop(each) for each in gone}
            for method, roots, multiple in front.settle(ack(tag, kind == 3, channel=3)):
                assert method == ACK
                assert roots in at_root
                at_root -= {each for each in at_root if each == roots or (multiple and each < roots)}
            assert at_root == expected
        mine |= {one.tag: int(one.body) for one in front.delivered()}

"""When confirms go out, and in how few frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st

from pandomq.kernel import constants
from tests.unit.kernel.frames import PERSISTENT, Confirmed, ack, publish, read
from tests.unit.kernel.world import World


def confirming(world: World) -> Any:
    """A channel in confirm mode, a durable queue k, a transient queue t, a full queue f."""
    world.queue("k", logged=True)
    world.queue("t")
    world.queue("f", length_max=0, overflow=1)
    return world.channel(mode=constants.CONFIRM)


def durable(body: bytes = b"x") -> bytes:
    return publish(b"k", body, PERSISTENT)


def test_a_batch_is_confirmed_by_one_frame(world: World) -> None:
    channel = confirming(world)
    world.feed(channel.session, publish(b"t", b"x") * 5)
    assert channel.unconfirmed_count == 5
    assert world.run(channel.session) == [Confirmed(1, True, 5, True)]
    world.feed(channel.session, publish(b"t", b"x"))
    assert world.run(channel.session) == [Confirmed(1, True, 6, False)]
    assert (channel.published_count, channel.unconfirmed_count, world.engine.confirmed) == (6, 0, 6)


def test_unroutable_messages_are_confirmed_too(world: World) -> None:
    channel = confirming(world)
    world.feed(channel.session, publish(b"nowhere", b"x"))
    assert world.run(channel.session) == [Confirmed(1, True, 1, False)]


def test_a_confirm_of_a_logged_message_waits_for_the_log(world: World) -> None:
    channel = confirming(world)
    world.feed(channel.session, durable() * 3)
    assert world.end_batch(commit=False) is not None
    assert channel.session.pending_bytes == 0
    world.engine.committed(1)
    assert read(channel.session.take()) == [Confirmed(1, True, 3, True)]


def test_a_confirm_that_need_not_wait_waits_only_for_earlier_ones(world: World) -> None:
    channel = confirming(world)
    world.feed(channel.session, publish(b"t", b"x") + durable() + publish(b"t", b"x"))
    world.end_batch(commit=False)
    assert read(channel.session.take()) == [Confirmed(1, True, 1, False)]
    world.feed(channel.session, publish(b"t", b"x"))
    world.end_batch(commit=False)
    assert channel.session.pending_bytes == 0, "numbers are confirmed in order"
    world.engine.committed(1)
    assert read(channel.session.take()) == [Confirmed(1, True, 4, True)]


def test_another_channel_does_not_wait(world: World) -> None:
    channel = confirming(world)
    other = world.channel(mode=constants.CONFIRM)
    world.feed(channel.session, durable())
    world.feed(other.session, publish(b"t", b"x"))
    world.end_batch(commit=False)
    assert read(other.session.take()) == [Confirmed(1, True, 1, False)]
    assert channel.session.pending_bytes == 0


def test_several_entries_are_confirmed_together(world: World) -> None:
    channel = confirming(world)
    for _ in range(4):
        world.feed(channel.session, durable())
        world.end_batch(commit=False)
    world.engine.committed(2)
    assert read(channel.session.take()) == [Confirmed(1, True, 2, True)]
    world.engine.committed(4)
    assert read(channel.session.take()) == [Confirmed(1, True, 4, True)]


def test_a_confirm_proves_the_acks_before_it(world: World) -> None:
    channel = confirming(world)
    world.put(world.queues[0], b"x", props=PERSISTENT)
    world.consumer(channel, world.queues[0])
    world.end_batch()
    channel.session.take()
    world.feed(channel.session, publish(b"t", b"1") + ack(1) + publish(b"t", b"2"))
    world.end_batch(commit=False)
    assert read(channel.session.take()) == [Confirmed(1, True, 1, False)]
    world.feed(channel.session, publish(b"t", b"3"))
    world.end_batch(commit=False)
    assert channel.session.pending_bytes == 0
    world.engine.committed(world.index)
    assert read(channel.session.take()) == [Confirmed(1, True, 3, True)]


def test_refused_publishes_are_nacked_one_by_one(world: World) -> None:
    channel = confirming(world)
    good, bad = publish(b"t", b"x"), publish(b"f", b"x")
    world.feed(channel.session, good + good + bad + bad + good)
    assert world.run(channel.session) == [
        Confirmed(1, True, 2, True),
        Confirmed(1, False, 3, False),
        Confirmed(1, False, 4, False),
        Confirmed(1, True, 5, False),
    ]
    assert world.engine.confirmed == 3


def test_the_broker_may_refuse(world: World) -> None:
    channel = confirming(world)
    world.feed(channel.session, publish(b"t", b"x"))
    world.engine.refuse(channel)
    world.engine.refuse(channel)
    assert world.run(channel.session) == [Confirmed(1, False, 1, False)]
    world.engine.refuse(channel)
    assert world.run(channel.session) == [], "there is no publish left to refuse"


def test_no_confirms_without_asking_nor_on_a_shut_channel(world: World) -> None:
    channel = confirming(world)
    normal = world.channel()
    world.feed(normal.session, publish(b"t", b"x"))
    assert world.run(normal.session) == []
    assert normal.published_count == 0
    world.feed(channel.session, publish(b"t", b"x"))
    channel.open = False
    assert world.run(channel.session) == []


@hypothesis.given(
    st.lists(
        st.one_of(
            st.lists(st.sampled_from("tkf"), max_size=6).map("".join),
            st.integers(0, 3),
        ),
        max_size=12,
    )
)
def test_against_a_list_of_numbers(kernel_world: Callable[[], World], script: list[str | int]) -> None:
    """Each number is answered once, in order, when its entry and all entries before it are committed."""
    world = kernel_world()
    channel = confirming(world)
    needed: list[tuple[int, bool]] = []
    answered: list[tuple[int, bool]] = []
    entries = committed = 0
    for step in script:
        if isinstance(step, int):
            committed = min(entries, committed + step)
            world.engine.committed(committed)
        else:
            world.feed(channel.session, b"".join(publish(key.encode(), b"x", PERSISTENT) for key in step))
            entries += world.end_batch(commit=False) is not None
            need = needed[-1][0] if needed else 0
            for key in step:
                need = entries if key == "k" else need
                needed.append((need, key != "f"))
        for event in read(channel.session.take()):
            first = event.number if not event.multiple else len(answered) + 1
            answered += [(number, event.positive) for number in range(first, event.number + 1)]
        expected = []
        for number, (need, positive) in enumerate(needed, start=1):
            if need > committed:
                break
            expected.append((number, positive))
        assert answered == expected
    assert channel.unconfirmed_count == len(needed) - len(answered)


def test_a_repeated_publish_waits_for_all_that_is_in_the_log(world: World) -> None:
    first, second = confirming(world), world.channel(mode=constants.CONFIRM)
    world.feed(first.session, durable())
    world.end_batch(commit=False)
    world.feed(second.session, publish(b"nowhere", b"x") * 2)
    world.engine.repeat(second)
    world.end_batch(commit=False)
    assert read(second.session.take()) == [Confirmed(1, True, 1, False)]
    world.engine.committed(1)
    assert read(second.session.take()) == [Confirmed(1, True, 2, False)]
    world.feed(second.session, publish(b"nowhere", b"x"))
    world.engine.repeat(second)
    assert world.run(second.session) == [Confirmed(1, True, 3, False)], "there is nothing to wait for"


def test_on_other_channels_a_repeated_publish_means_nothing(world: World) -> None:
    channel = world.channel(mode=constants.NORMAL)
    world.engine.repeat(channel)
    assert world.run(channel.session) == []

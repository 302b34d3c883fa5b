"""Confirms of what goes to other brokers: they wait until it has come out there, and for nothing else but the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st

from pandomq.kernel import constants
from tests.unit.kernel.frames import PERSISTENT, Confirmed, publish, read
from tests.unit.kernel.world import World

SHORT = {
    "o": publish(b"o", b"x"),
    "p": publish(b"p", b"x", PERSISTENT),
    "b": publish(b"b", b"x", PERSISTENT),
    "t": publish(b"t", b"x"),
    "n": publish(b"nowhere", b"x"),
}
"""To an outlet; to a durable queue; to both; to a passing one; to none."""


def with_outlet(world: World) -> Any:
    world.bind("b", world.queue("o", outlet=True))
    world.bind("b", world.queue("p", logged=True))
    world.queue("t")
    return world.channel(mode=constants.CONFIRM)


def batch(world: World, channel: Any, script: str, *, commit: bool = True) -> list[Any]:
    world.feed(channel.session, b"".join(SHORT[letter] for letter in script))
    world.end_batch(commit=commit)
    return read(channel.session.take())


def came_out(world: World, channel: Any, number: int) -> list[Any]:
    world.engine.outlets_received(number)
    return read(channel.session.take())


def committed(world: World, channel: Any, index: int) -> list[Any]:
    world.engine.committed(index)
    return read(channel.session.take())


def test_a_confirm_waits_until_the_message_has_come_out(world: World) -> None:
    channel = with_outlet(world)
    assert batch(world, channel, "tpo") == [Confirmed(1, True, 1, False)]
    assert came_out(world, channel, 1) == [Confirmed(1, True, 3, True)]
    assert channel.unconfirmed_count == 0
    assert batch(world, channel, "oo") == []
    assert came_out(world, channel, 1) == []
    assert came_out(world, channel, 2) == [Confirmed(1, True, 5, True)]


def test_later_confirms_on_the_channel_wait_and_other_channels_do_not(world: World) -> None:
    channel = with_outlet(world)
    other = world.channel(mode=constants.CONFIRM)
    assert batch(world, channel, "o") == []
    assert batch(world, channel, "pt") == []
    assert batch(world, other, "pt") == [Confirmed(1, True, 2, True)]
    assert batch(world, channel, "o") == []
    assert came_out(world, channel, 1) == [Confirmed(1, True, 3, True)]
    assert came_out(world, channel, 4) == [Confirmed(1, True, 4, False)]


def test_the_log_and_the_outlet_are_both_waited_for(world: World) -> None:
    channel = with_outlet(world)
    assert batch(world, channel, "b", commit=False) == []
    assert came_out(world, channel, 1) == []
    assert committed(world, channel, 1) == [Confirmed(1, True, 1, False)]
    assert batch(world, channel, "b", commit=False) == []
    assert committed(world, channel, 2) == []
    assert came_out(world, channel, 2) == [Confirmed(1, True, 2, False)]


def test_receipt_by_backups_is_not_enough(world: World) -> None:
    world.engine.replicated = True
    channel = with_outlet(world)
    batch(world, channel, "o", commit=False)
    world.engine.received(1)
    assert read(channel.session.take()) == []
    assert came_out(world, channel, 1) == [Confirmed(1, True, 1, False)]


def test_channels_without_confirms_wait_for_nothing(world: World) -> None:
    channel = with_outlet(world)
    channel.mode = constants.NORMAL
    batch(world, channel, "ob")
    channel.mode = constants.CONFIRM
    assert batch(world, channel, "p") == [Confirmed(1, True, 1, False)]
    assert came_out(world, channel, 1) == []


def test_confirms_do_not_wait_for_an_outlet_that_is_gone(world: World) -> None:
    channel = with_outlet(world)
    assert batch(world, channel, "o") == []
    world.queues[0].delete()
    assert came_out(world, channel, 1) == [Confirmed(1, True, 1, False)]


@hypothesis.given(st.data())
def test_every_publish_is_confirmed_once_and_none_too_early(
    kernel_world: Callable[[], World], data: st.DataObject
) -> None:
    world = kernel_world()
    world.engine.replicated = data.draw(st.booleans())
    channel = with_outlet(world)
    needs: list[tuple[int, int]] = []
    out = done = 0
    confirmed: set[int] = set()
    script = data.draw(st.lists(st.sampled_from(["o", "p", "b", "t", "n", "bo", "to", "commit", "out"]), max_size=30))
    for word in script:
        if word == "commit":
            world.engine.committed(world.index)
            done = world.index
        elif word == "out":
            out = world.engine.batch - 1
            world.engine.outlets_received(out)
        else:
            number = world.engine.batch
            world.feed(channel.session, b"".join(SHORT[letter] for letter in word))
            world.end_batch(commit=False)
            for letter in word:
                needs.append((world.index if letter in "pb" else 0, number if letter in "ob" else 0))
        for frame in read(channel.session.take()):
            assert frame.positive
            first = 1 if frame.multiple else frame.number
            fresh = set(range(first, frame.number + 1)) - confirmed
            assert fresh
            confirmed |= fresh
        assert all(needs[number - 1][0] <= done and needs[number - 1][1] <= out for number in confirmed)
    world.engine.committed(world.index)
    world.engine.outlets_received(world.engine.batch)
    read(channel.session.take())
    assert channel.unconfirmed_count == 0

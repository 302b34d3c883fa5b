"""Confirms where several brokers keep the log: what need not be on their disks does not wait for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st

from pandomq.kernel import constants
from tests.unit.kernel.frames import PERSISTENT, Confirmed, ack, publish, read
from tests.unit.kernel.world import World

SHORT = {
    "p": publish(b"k", b"x", PERSISTENT),
    "t": publish(b"k", b"x"),
    "s": publish(b"s", b"x"),
    "u": publish(b"u", b"x"),
    "f": publish(b"f", b"x"),
}
"""Persistent and not, to a durable queue; to a synced one; to one that is not durable; to one that is full."""


def replicating(world: World) -> Any:
    world.engine.replicated = True
    world.queue("k", logged=True)
    world.queue("s", logged=True, synced=True)
    world.queue("u")
    world.queue("f", logged=True, length_max=0, overflow=1)
    return world.channel(mode=constants.CONFIRM)


def batch(world: World, channel: Any, script: str) -> list[Any]:
    world.feed(channel.session, b"".join(SHORT[letter] for letter in script))
    world.end_batch(commit=False)
    return read(channel.session.take())


def received(world: World, channel: Any, index: int) -> list[Any]:
    world.engine.received(index)
    return read(channel.session.take())


def committed(world: World, channel: Any, index: int) -> list[Any]:
    world.engine.committed(index)
    return read(channel.session.take())


def test_receipt_is_enough_for_messages_that_are_not_persistent(world: World) -> None:
    channel = replicating(world)
    world.feed(channel.session, SHORT["t"] * 3)
    assert world.engine.prompt
    assert batch(world, channel, "") == []
    assert not world.engine.prompt
    assert received(world, channel, 1) == [Confirmed(1, True, 3, True)]
    assert committed(world, channel, 1) == []
    assert (channel.unconfirmed_count, world.engine.confirmed) == (0, 3)


def test_a_commit_is_a_receipt(world: World) -> None:
    channel = replicating(world)
    batch(world, channel, "tt")
    assert committed(world, channel, 1) == [Confirmed(1, True, 2, True)]
    assert received(world, channel, 1) == []


def test_confirms_of_persistent_messages_wait_for_the_commit(world: World) -> None:
    channel = replicating(world)
    for letter in "ps":
        world.feed(channel.session, SHORT[letter])
        assert not world.engine.prompt
        assert batch(world, channel, "") == []
        assert received(world, channel, world.index) == []
        assert committed(world, channel, world.index)[0].positive


def test_multiple_never_covers_one_that_waits(world: World) -> None:
    channel = replicating(world)
    batch(world, channel, "tpttsu")
    assert received(world, channel, 1) == [
        Confirmed(1, True, 1, False),
        Confirmed(1, True, 3, False),
        Confirmed(1, True, 4, False),
        Confirmed(1, True, 6, False),
    ]
    assert (channel.unconfirmed_count, world.engine.confirmed) == (2, 4)
    assert committed(world, channel, 1) == [Confirmed(1, True, 5, True)]
    assert (channel.unconfirmed_count, world.engine.confirmed) == (0, 6)


def test_later_batches_overtake(world: World) -> None:
    channel = replicating(world)
    batch(world, channel, "p")
    batch(world, channel, "t")
    assert received(world, channel, 2) == [Confirmed(1, True, 2, False)]
    assert batch(world, channel, "u") == [Confirmed(1, True, 3, False)]
    assert committed(world, channel, 1) == [Confirmed(1, True, 1, False)]
    assert batch(world, channel, "t") == []
    assert received(world, channel, 3) == [Confirmed(1, True, 4, False)]


def test_a_refused_publish_keeps_its_place(world: World) -> None:
    channel = replicating(world)
    batch(world, channel, "ptf")
    assert received(world, channel, 1) == [Confirmed(1, True, 2, False)]
    assert committed(world, channel, 1) == [Confirmed(1, True, 1, False), Confirmed(1, False, 3, False)]


def test_a_confirm_still_proves_the_acks_before_it(world: World) -> None:
    channel = replicating(world)
    world.put(world.queues[0], b"x")
    world.end_batch()
    world.queues[0].take(channel, False, world.now_ms)
    world.feed(channel.session, SHORT["t"] + ack(1) + SHORT["t"])
    assert batch(world, channel, "") == []
    assert received(world, channel, 2) == [Confirmed(1, True, 1, False)]
    world.feed(channel.session, SHORT["t"])
    assert not world.engine.prompt
    batch(world, channel, "")
    assert received(world, channel, 3) == []
    assert committed(world, channel, 2) == [Confirmed(1, True, 2, False)]


def test_so_does_one_after_a_reply(world: World) -> None:
    channel = replicating(world)
    world.engine.log_command(b"declare")
    channel.hold()
    batch(world, channel, "t")
    assert received(world, channel, 1) == []
    assert committed(world, channel, 1) == [Confirmed(1, True, 1, False)]


def test_confirms_that_are_held_go_out_when_they_are_held_no_more(world: World) -> None:
    channel = replicating(world)
    batch(world, channel, "pp")
    channel.hold_confirms(2)
    assert committed(world, channel, 1) == [Confirmed(1, True, 1, False)]
    batch(world, channel, "tp")
    assert received(world, channel, 2) == []
    assert committed(world, channel, 2) == []
    channel.hold_confirms(4)
    assert read(channel.session.take()) == [Confirmed(1, True, 3, True)]
    channel.hold_confirms(0)
    assert read(channel.session.take()) == [Confirmed(1, True, 4, False)]
    batch(world, channel, "t")
    assert received(world, channel, 3) == [Confirmed(1, True, 5, False)]


def test_everything_in_durable_queues_is_logged_and_settled_in_the_log(world: World) -> None:
    channel = replicating(world)
    world.put(world.queues[0], b"x")
    world.consumer(channel, world.queues[0])
    assert world.end_batch() is not None
    world.engine.replicated = False
    world.feed(channel.session, ack(1))
    assert world.end_batch() is not None, "the log has it, whoever keeps the log now"
    world.put(world.queues[0], b"x")
    world.engine.replicated = True
    assert world.end_batch() is None
    world.feed(channel.session, ack(2))
    assert world.end_batch() is None, "the log never had it"


def test_kept_messages_stay_so_on_pages(world: World) -> None:
    replicating(world)
    queue = world.queues[0]
    world.use_pages()
    world.put(queue, *[b"%d" % number for number in range(9)])
    world.end_batch()
    assert world.page_out()
    index = queue.pages()[0].index()
    assert index is not None and index[1] == b"\0"
    world.consumer(world.channel(), queue)
    world.end_batch()
    while world.load():
        world.end_batch()
    assert all(row[6].kept for row in world.channels[-1].unacked())


class Model:
    """The condition of each number: the line of its channel committed up to an index, or some index received."""

    def __init__(self, index: int) -> None:
        self.committed = self.received = self._barrier = self._last = index
        self._line: list[int] = []
        self._early: dict[int, int] = {}
        self._refused: set[int] = set()

    def batch(self, script: str, index: int) -> None:
        barred = self._barrier > self.committed
        for letter in script:
            self._last = index if letter in "ptsa" else self._last
            if letter == "a":
                barred, self._barrier = True, index
                continue
            self._line.append(self._last)
            if letter == "f":
                self._refused.add(len(self._line))
            elif letter in "tu" and not barred:
                self._early[len(self._line)] = index

    def due(self) -> dict[int, bool]:
        received = max(self.committed, self.received)
        numbers = enumerate(self._line, start=1)
        return {
            number: number not in self._refused
            for number, index in numbers
            if index <= self.committed or (number in self._early and self._early[number] <= received)
        }


@hypothesis.given(
    st.lists(
        st.one_of(
            st.lists(st.sampled_from("ptsufa"), max_size=6).map("".join),
            st.tuples(st.sampled_from("rc"), st.integers(0, 3)),
        ),
        max_size=14,
    )
)
def test_against_a_list_of_numbers(kernel_world: Callable[[], World], script: list[str | tuple[str, int]]) -> None:
    """Each number is answered once, and `multiple` covers no number whose time has not come."""
    world = kernel_world()
    channel = replicating(world)
    world.put(world.queues[0], *[b"x"] * 100)
    world.end_batch()
    model = Model(world.index)
    answered: dict[int, bool] = {}
    for step in script:
        if isinstance(step, str):
            for letter in step:
                tag = world.queues[0].take(channel, False, world.now_ms)[0] if letter == "a" else 0
                world.feed(channel.session, ack(tag) if letter == "a" else SHORT[letter])
            world.end_batch(commit=False)
            model.batch(step, world.index)
        elif step[0] == "c":
            model.committed = min(world.index, model.committed + step[1])
            world.engine.committed(model.committed)
        else:
            model.received = min(world.index, model.received + step[1])
            world.engine.received(model.received)
        due = model.due()
        for event in read(channel.session.take()):
            fresh = [number for number in range(1, event.number + 1) if number not in answered]
            fresh = fresh if event.multiple else [event.number]
            assert not answered.keys() & fresh
            answered.update((number, event.positive) for number in fresh)
            assert answered.keys() <= due.keys(), event
        assert answered == due
    assert channel.unconfirmed_count == channel.published_count - len(answered)


def test_receipt_is_not_enough_for_a_repeated_message(world: World) -> None:
    channel = replicating(world)
    world.feed(channel.session, SHORT["t"] * 2)
    world.engine.repeat(channel)
    assert batch(world, channel, "") == []
    assert received(world, channel, 1) == [Confirmed(1, True, 1, False)]
    assert committed(world, channel, 1) == [Confirmed(1, True, 2, False)]

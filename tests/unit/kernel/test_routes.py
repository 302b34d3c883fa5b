"""Remembered plans: found by their routing whatever else is remembered, and never after they were withdrawn.

Long runs with many keys matter here: the compiled twin looks ahead in them, while the hook changes what it saw there.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kernel.frames import publish
from tests.unit.kernel.world import World

KEYS = 90
CAPACITY = 64


class ChangingWorld(World):
    """Its hook also does, one after another, what a list says: withdraw a plan, forget all, or nothing."""

    def __init__(self, kernel: ModuleType, changes: list[int]) -> None:
        super().__init__(kernel)
        self.routes = kernel.Routes(CAPACITY)
        self.changes = list(changes)
        for number in range(7):
            self.queue(f"q{number}")
        for number in range(KEYS):
            # Most keys lead to one queue, some to two or nowhere.
            for queue in (number % 7, number % 11):
                if queue < 6:
                    self.bind(key(number).decode(), self.queues[queue])

    def publish(self, channel: Any, message: Any, flags: int) -> None:
        super().publish(channel, message, flags)
        change = self.changes.pop() if self.changes else -1
        if 0 <= change < len(self.plans):
            self.plans.pop(change).withdraw()
        elif change == KEYS:
            self.routes.clear()
        elif change > KEYS:
            self.queues[change % 7].delete()


def key(number: int) -> bytes:
    # Some are short, some long, all begin alike.
    return b"a" * (number % 3 * 20) + b"%d" % number


def played(kernel: ModuleType, runs: list[list[int]], changes: list[int]) -> Any:
    world = ChangingWorld(kernel, changes)
    channel = world.channel()
    for run in runs:
        world.feed(channel.session, b"".join(publish(key(number), b"%d" % number) for number in run))
    world.end_batch()
    return len(world.routes), world.view()


@given(
    st.lists(st.lists(st.integers(0, KEYS - 1), max_size=120), max_size=4),
    st.lists(st.integers(-1, KEYS + 7), max_size=60),
)
def test_both_twins_remember_the_same(
    plain: ModuleType, fast: ModuleType, runs: list[list[int]], changes: list[int]
) -> None:
    assert played(fast, runs, changes) == played(plain, runs, changes)


def test_thousands_of_plans_are_remembered(world: World) -> None:
    world.routes = world.kernel.Routes(5000)
    channel = world.channel()
    queues = [world.queue(f"q{number}") for number in range(3)]
    for number in range(4000):
        world.table[f"k{number}"] = [queues[number % 3]]
    data = b"".join(publish(b"k%d" % number, b"%d" % number) for number in range(4000))
    for _ in range(2):
        world.feed(channel.session, data)
    assert len(world.routes) == 4000
    assert sum(event[0] == "publish" for event in world.events) == 4000
    for at, queue in enumerate(queues):
        assert world.ready(queue) == [b"%d" % number for number in range(at, 4000, 3)] * 2


def test_messages_share_the_routing_that_is_remembered(world: World) -> None:
    channel = world.channel()
    queue = world.queue("k")
    world.feed(channel.session, publish(b"k", b"1") + publish(b"other", b"-") + publish(b"k", b"2"))
    assert [row[5].routing for row in queue.snapshot()] == [world.kernel.routing_of("", "k")] * 2


def test_a_plan_put_again_replaces_the_first(world: World) -> None:
    channel = world.channel()
    one, two = world.queue("one"), world.queue("two")
    routing = world.kernel.routing_of("", "k")
    world.routes.put(routing, world.kernel.Plan([one]))
    world.routes.put(routing, world.kernel.Plan([two]))
    world.feed(channel.session, publish(b"k", b"1"))
    assert (len(world.routes), world.ready(one), world.ready(two)) == (1, [], [b"1"])

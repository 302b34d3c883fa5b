"""When a replica wants to be told the time, and what it makes of it."""

from __future__ import annotations

import msgspec
import pytest

from pandomq.journal.journal import Journal
from pandomq.replica.limits import GREETING_MS
from pandomq.replica.ports import LogPort
from pandomq.replica.settings import ReplicaSettings
from tests.unit.replica.world import World


def journal_is_a_port(journal: Journal) -> LogPort:
    """For the type checker."""
    return journal


def advance_by_deadlines(world: World, until_ms: int) -> int:
    """Ticks only when somebody asks for it; returns how often."""
    ticks = 0
    world.settle()
    while True:
        nodes = [node for node in world.nodes.values() if node.up]
        next_ms = min(node.replica.next_tick_ms for node in nodes)
        if next_ms > until_ms:
            return ticks
        world.now_ms = max(world.now_ms, next_ms)
        for node in nodes:
            # All are told, as they would be before the input that may follow; the others did not ask for it.
            ticks += node.replica.next_tick_ms <= world.now_ms
            node.tick()
        world.settle()


@pytest.mark.parametrize("names", ["a", "ab", "abc", "abcde"])
def test_ticks_at_the_deadlines_are_enough(names: str) -> None:
    world = World(names)
    ticks = advance_by_deadlines(world, 60_000)
    assert [node.replica.serving for node in world.roots] == [True]
    assert world.roots[0].replica.view().term == 1
    assert ticks < 60 * 8 * len(names)


def test_deadlines_are_enough_for_a_takeover() -> None:
    world = World("abc")
    advance_by_deadlines(world, 5_000)
    old = world.roots[0]
    world.isolate(old.name)
    advance_by_deadlines(world, 8_000)
    assert [node is old for node in world.roots] == [False]


def greet(world: World, name: str, cluster_ms: int) -> int | None:
    """Returns the cluster's time in broker a after greetings of another one, which contain no more about it then."""
    replica = world[name].replica
    replica.know_time(cluster_ms - world.now_ms)
    world.advance(GREETING_MS)
    replica.know_time(None)
    return world["a"].replica.told_ahead_ms


def test_a_greeting_of_a_broker_that_knows_only_an_older_time_takes_nothing_back() -> None:
    world = World("abc")
    world.advance(1_000)
    hour_ms = 3_600_000
    told = greet(world, "b", 10 * hour_ms)
    assert told is not None
    again = greet(world, "c", 8 * hour_ms)
    assert again == told
    last = greet(world, "c", 11 * hour_ms)
    assert last is not None and last > told + hour_ms // 2


def test_a_clock_that_goes_back_is_a_bug() -> None:
    world = World("a")
    with pytest.raises(AssertionError, match="went back"):
        world["a"].replica.tick(world.now_ms - 1)


@pytest.mark.parametrize(
    "wrong", [{"lease_ms": 1}, {"drift_percent": -1}, {"min_copies": 0}, {"disk_stall_ms": 0}, {"drift_percent": 101}]
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        msgspec.convert(wrong, ReplicaSettings)


@pytest.mark.parametrize("drift_percent", [0, 10, 50])
def test_a_promise_outlasts_a_lease_on_a_clock_that_is_that_much_faster(drift_percent: int) -> None:
    settings = ReplicaSettings(drift_percent=drift_percent)
    assert settings.promise_ms * 100 >= settings.lease_ms * (100 + drift_percent)
    assert settings.heartbeat_ms * 4 < settings.lease_ms

"""The operations on a store, as values that hypothesis can choose, shrink and print."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from pandomq.ids import LogIndex
from pandomq.journal.faults import StoreFault
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import Store

BODIES = st.one_of(
    st.binary(max_size=40),
    st.integers(0, 3000).map(bytes),
    st.integers(0, 3000).map(lambda size: b"x" * size),
)


class Append(NamedTuple):
    bodies: list[bytes]
    released: int
    stride: int
    """So many of the oldest live messages does the entry release, each so many-th of them."""
    new_term: bool


class Sync(NamedTuple):
    pass


class Steps(NamedTuple):
    times: int


class Tick(NamedTuple):
    pass


class Snapshot(NamedTuple):
    pass


class PageOut(NamedTuple):
    messages: int


class Load(NamedTuple):
    place: int


class Truncate(NamedTuple):
    back: int
    keep_aside: bool


class Crash(NamedTuple):
    loss: Loss
    steps: list[int]
    """How far each of the next recoveries gets before it crashes, too."""


Operation = Append | Sync | Steps | Tick | Snapshot | PageOut | Load | Truncate | Crash

OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Append, st.lists(BODIES, min_size=1, max_size=8), st.integers(0, 12), st.integers(1, 3), st.booleans()),
    st.builds(Append, st.lists(BODIES, min_size=1, max_size=8), st.integers(0, 12), st.integers(1, 3), st.just(False)),
    st.builds(Sync),
    st.builds(Steps, st.integers(1, 12)),
    st.builds(Tick),
    st.builds(Snapshot),
    st.builds(PageOut, st.integers(1, 20)),
    st.builds(Load, st.integers(0, 20)),
    st.builds(Truncate, st.integers(0, 20), st.booleans()),
    st.builds(Crash, st.sampled_from(Loss), st.lists(st.integers(0, 30), max_size=2)),
)


def program(random: Random, length: int) -> list[Operation]:
    """The same without hypothesis: longer, and less varied."""
    return [_operation(random) for _ in range(length)]


def _operation(random: Random) -> Operation:
    chance = random.random()
    if chance < 0.3:
        sizes = [random.choice((random.randint(0, 40), random.randint(0, 3000))) for _ in range(random.randint(1, 8))]
        bodies = [random.choice((bytes(size), random.randbytes(size))) for size in sizes]
        return Append(bodies, random.choice((0, 1, random.randint(0, 12))), random.randint(1, 3), chance < 0.02)
    if chance < 0.36:
        return PageOut(random.randint(1, 20))
    if chance < 0.4:
        return Load(random.randint(0, 20))
    if chance < 0.55:
        return Sync()
    if chance < 0.75:
        return Steps(random.randint(1, 30))
    if chance < 0.8:
        return Tick()
    if chance < 0.88:
        return Snapshot()
    if chance < 0.93:
        return Truncate(random.randint(0, 20), random.random() < 0.5)
    return Crash(random.choice(list(Loss)), [random.randint(0, 30) for _ in range(random.randint(0, 2))])


def perform(store: Store, operation: Operation) -> None:
    journal = store.journal
    match operation:
        case Append(bodies, released, stride, new_term):
            gone = store.owner.numbers[::stride][:released]
            store.append(*bodies, released=gone, term=max(1, journal.last_term + new_term))
        case Sync():
            store.sync()
        case Steps(times):
            for _ in range(times):
                store.step()
        case Tick():
            store.tick()
        case Snapshot():
            newest = max(store.snapshot_begun, journal.view().snapshot_index)
            if not store.snapshot_active and store.owner.applied_index > newest:
                store.snapshot()
        case PageOut(messages):
            store.page_out(messages)
        case Load(place):
            store.load(place)
        case Truncate(back, keep_aside):
            truncate(store, journal.last_index - back, keep_aside=keep_aside)
        case Crash(loss, steps):
            store.crash(loss)
            for count in steps:
                for _ in range(count):
                    store.step()
                store.crash(loss)
            store.check()


def truncate(store: Store, first_index: int, *, keep_aside: bool) -> None:
    """As a backup would: only what is not committed, and what the owner has not built on."""
    journal = store.journal
    first_index = max(first_index, journal.commit_index + 1)
    if store.early or store.older is not None or first_index > journal.last_index:
        return
    store.older = list(store.history)
    del store.history[first_index - 1 :]
    journal.truncate(LogIndex(first_index), keep_aside=keep_aside)
    store.durable = min(store.durable, first_index - 1)
    store.pump()


def run(store: Store, operations: list[Operation]) -> None:
    store.open()
    for operation in operations:
        try:
            perform(store, operation)
        except StoreFault as fault:
            raise AssertionError(f"no fault was injected, but: {fault}") from fault
    store.crash(Loss.SOME)
    store.check()

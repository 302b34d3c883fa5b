"""Every message of a queue under leases is in one place, at any moment and on every broker that has the log: in the
queue, in one lease, or done with. A plain list keeps the books."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import methods
from pandomq.broker.leases.asks import LeaseEnds
from pandomq.broker.leases.lease import LeaseView
from pandomq.broker.leases.table import LEASE_BYTES, RUN_BYTES
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import Snapshot
from tests.support.examples import examples
from tests.unit.broker.conversation import World
from tests.unit.broker.lease_scene import PERSISTENT, TIMEOUT_MS, Lessee, bodies, drained, filled, taken_over
from tests.unit.broker.stream_scene import Places

LESSEES = ("one", "two")

STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(1, 5)),
    st.tuples(st.just("lease"), st.sampled_from(LESSEES), st.integers(0, 8)),
    st.tuples(st.just("release"), st.sampled_from(LESSEES), st.integers(0, 5)),
    st.tuples(st.just("end"), st.sampled_from(LESSEES)),
    st.tuples(st.just("take"), st.integers(1, 3)),
    st.tuples(st.just("requeue"), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.sampled_from([10, TIMEOUT_MS // 2, 2 * TIMEOUT_MS])),
    st.tuples(st.just("takeover")),
    st.tuples(st.just("snapshot")),
)


class Books:
    """Plays steps, and knows what ought to be where."""

    def __init__(self) -> None:
        self.world, self.peer = filled(0)
        self.world.broker.state.chunk_cache.store = self.places = Places()
        self.published = 0
        self.ready: list[bytes] = []
        self.leased: dict[str, list[bytes]] = {name: [] for name in LESSEES}
        self.asked_ms = dict.fromkeys(LESSEES, 0)
        self.has_whole_log = True
        """It can be given to another broker; after a restart from a snapshot only the rest is there."""
        self.seen: set[bytes] = set()
        """These say `redelivered` from now on."""

    def play(self, step: Any) -> None:
        getattr(self, step[0])(*step[1:])
        self.check()

    # Steps.

    def publish(self, count: int) -> None:
        for _ in range(count):
            self.peer.publish("", "q", b"%d" % self.published, PERSISTENT)
            self.ready.append(b"%d" % self.published)
            self.published += 1

    def lessee(self, name: str) -> Lessee:
        return Lessee(self.world, name=name)

    def lease(self, name: str, messages_max: int) -> None:
        self.lessee(name).lease(messages_max)
        count = max(0, messages_max - len(self.leased[name]))
        self.leased[name] += self.ready[:count]
        del self.ready[:count]
        self.asked_ms[name] = self.world.now_ms

    def release(self, name: str, count: int) -> None:
        lessee, view = self.lessee(name), self.view(name)
        if view is not None:
            count = min(count, len(self.leased[name]))
            lessee.release(view.first_offset + count)
            del self.leased[name][:count]
            self.asked_ms[name] = self.world.now_ms

    def end(self, name: str) -> None:
        if self.view(name) is not None:
            self.lessee(name).end()
            self._back(name)

    def take(self, count: int) -> None:
        """Taken and acknowledged."""
        for _ in range(count):
            got = self.peer.get()
            assert (None if got is None else got.body) == (self.ready.pop(0) if self.ready else None)
            if got is not None:
                assert isinstance(got.method, methods.BasicGetOk)
                assert got.method.redelivered == (got.body in self.seen)

    def requeue(self, count: int) -> None:
        for _ in range(count):
            self.peer.get(no_ack=False)
        self.seen.update(self.ready[:count])
        self.peer.send(methods.BasicRecover(True))
        self.peer.hear()

    def wait(self, milliseconds: int) -> None:
        self.world.pass_time(milliseconds)
        for name in LESSEES:
            if self.world.now_ms - self.asked_ms[name] >= TIMEOUT_MS:
                self._back(name)

    def takeover(self) -> None:
        """Ready messages may have been delivered, and the timeout of every lease begins again."""
        if not self.has_whole_log:
            return
        self.peer.leave()
        self._begin(taken_over(self.world))
        self.seen.update(self.ready)

    def snapshot(self) -> None:
        """All brokers are stopped in order, and begin again."""
        self.peer.leave()
        other, found = World(limits=self.world.limits, seed=3), Places()
        other.broker.state.users.clear()
        other.broker.state.chunk_cache.store = found
        kept = self.places.kept
        revival = Revival(other.broker, lambda place: found.kept.setdefault(place, kept[place]))
        for piece in Snapshot(self.world.broker, exact=True).pieces(1000):
            revival.take(piece)
        other.now_ms = self.world.now_ms
        revival.finish(other.now_ms)
        other.run([])
        self.places, self.has_whole_log = found, False
        self._begin(other)

    def _begin(self, world: World) -> None:
        world.entries = [*self.world.entries, *world.entries]
        self.world = world
        self.peer = world.peer()
        for name in LESSEES:
            self.asked_ms[name] = world.now_ms

    def _back(self, name: str) -> None:
        self.seen.update(self.leased[name])
        self.ready = sorted([*self.ready, *self.leased[name]], key=int)
        self.leased[name] = []

    # The content.

    def view(self, name: str) -> LeaseView | None:
        lease = self.world.broker.state.leases.find("/", "q", name)
        return None if lease is None else lease.view()

    def check(self) -> None:
        queue = self.world.broker.state.vhosts["/"].queues["q"]
        assert [row[-1].body for row in queue.kernel.snapshot()] == self.ready
        for name in LESSEES:
            view = self.view(name)
            assert (self.lessee(name).read(view) if view is not None else []) == self.leased[name]
        leases = self.world.broker.state.leases
        runs = [lease.runs for lease in leases]
        assert leases.size_bytes == len(runs) * LEASE_BYTES + sum(map(len, runs)) * RUN_BYTES
        assert [lease.size_bytes for lease in leases] == [sum(run.size_bytes for run in some) for some in runs]


@pytest.mark.proves("S1")
@settings(max_examples=examples(120), deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=40))
def test_every_message_is_in_one_place(steps: list[Any]) -> None:
    books = Books()
    for step in steps:
        books.play(step)


def test_longer_books() -> None:
    kinds = ("publish", "lease", "release", "end", "take", "requeue", "wait", "snapshot")
    for seed in range(6):
        random, books = Random(seed), Books()
        for _ in range(150):
            kind = random.choices(kinds, (6, 6, 5, 1, 3, 1, 1, 1))[0]
            name, count = random.choice(LESSEES), random.randint(1, 8)
            match kind:
                case "publish" | "take" | "requeue":
                    books.play((kind, count))
                case "lease" | "release":
                    books.play((kind, name, count))
                case "end":
                    books.play((kind, name))
                case "wait":
                    books.play((kind, random.choice((10, TIMEOUT_MS // 2, 2 * TIMEOUT_MS))))
                case _:
                    books.play((kind,))


def test_a_root_that_dies_after_any_entry_leaves_a_whole_lease() -> None:
    """Whichever part of the log the next root has, no message is lost, and none is there twice."""
    world, peer = filled(12)
    lessee = Lessee(world)
    begun = len(world.entries)
    view = lessee.lease(8)
    lessee.release(view.first_offset + 3)
    lessee.lease(8)
    lessee.end()
    peer.leave()
    released = {begun + 1: 0}
    for last in range(begun, len(world.entries) + 1):
        other = World(seed=2)
        for index, entry in enumerate(world.entries[:last], start=1):
            other.broker.apply(index, 1, entry)
        other.now_ms = world.now_ms
        Revival(other.broker, lambda place: place).finish(other.now_ms, takeover=True)
        other.run([])
        known = other.broker.state.leases.find("/", "q", "job")
        leased = Lessee(other).read(known.view()) if known is not None else []
        released[last] = 12 - len(leased) - other.peer().counts()[0]
        other.pass_time(2 * TIMEOUT_MS)
        found = [body for body, _ in drained(other.peer())]
        assert found == bodies(12 - len(found), 12) and len(found) in (12, 9)
    assert set(released.values()) == {0, 3}


def test_a_lease_whose_entry_was_lost_does_not_exist() -> None:
    world, peer = filled(6, late=True)
    lessee = Lessee(world)
    kept = len(world.entries)
    lessee.ask(3)
    assert not lessee.answers
    peer.leave()
    del world.entries[kept:]
    other = taken_over(world)
    assert not Lessee(other).is_there
    assert [body for body, _ in drained(other.peer())] == bodies(0, 6)


def test_the_next_root_goes_on_giving_back() -> None:
    world, peer = filled(5, late=True)
    lessee = Lessee(world)
    lessee.ask(3)
    world.commit()
    lessee.end()
    ended = len(world.entries)
    peer.leave()
    del world.entries[ended:]
    other = taken_over(world)
    assert not Lessee(other).is_there
    assert drained(other.peer()) == [(body, True) for body in bodies(0, 5)]
    with pytest.raises(LeaseEnds):
        lessee.ask(3)


def test_backups_have_the_same_bytes_at_the_same_offsets() -> None:
    world, peer = filled(50)
    lessee = Lessee(world)
    view = lessee.lease(40)
    lessee.release(view.first_offset + 15)
    view = lessee.lease(20)
    other = world.replayed()
    assert Lessee(other).read(view) == lessee.read(view) == bodies(15, 40)
    mine, theirs = (one.broker.state.leases.find("/", "q", "job") for one in (world, other))
    assert mine is not None and theirs is not None
    assert (mine.runs, mine.view()) == (theirs.runs, theirs.view())
    peer.leave()

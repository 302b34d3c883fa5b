"""A root, and brokers that follow it: each must hold what the root holds, whenever they are compared.

Tables are tiny, so that rows are forgotten all the time: which ones go next must be the same everywhere.
"""

from __future__ import annotations

from random import Random

from pandomq.broker.broker import BatchOutcome
from pandomq.broker.limits import BrokerLimits, TableLimits
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import Snapshot
from pandomq.sim.state.kept_state import NUMBERS, STARTS, Section, difference, kept_state
from tests.unit.broker.conversation import World
from tests.unit.broker.stream_scene import Places

TINY = {
    "publishing.named_producers.PRODUCER_ODD_MAX": 2,
    "publishing.named_producers.PRODUCER_RANGES_MAX": 2,
    "publishing.deduplication.PRODUCERS_FORGOTTEN_PER_ENTRY_MAX": 1,
    "staging.staging.STAGED_QUERIES_FORGOTTEN_PER_ENTRY_MAX": 1,
    "queues.queue_settings.STREAM_CHUNK_BYTES": 60,
    "publishing.delayed.DUE_MESSAGES_MAX": 2,
}
"""Of the package `broker`."""
TABLES = TableLimits(
    relayed_producers_max=3,
    relayed_producer_age_ms=1500,
    fenced_connections_max=2,
    staged_queries_max=2,
    staged_query_age_ms=1500,
    stored_offsets_max=2,
)
LIMITS = BrokerLimits(producers_max=3, producer_age_ms=1500, tables=TABLES)
COMPARED_SHARE = 0.3
SUCCESSION_MS = 8_000
FOLLOWERS_MAX = 3


class Root(World):
    """Compares itself with the brokers that follow it, when an entry is sealed and when it is committed."""

    def __init__(self, random: Random, *, replicated: bool, lag_ms: int) -> None:
        super().__init__(limits=LIMITS, late=True)
        self.broker.engine.replicated = replicated
        self.broker.engine.term = 1
        self.places = self.broker.state.chunk_cache.store = Places()
        self._random = random
        self._lag_ms = lag_ms
        self.committed_share = 1.0
        """How often what is sealed is committed before the next batch."""
        self.followers = [Follower(self)]

    def _finish(self, outcome: BatchOutcome) -> None:
        super()._finish(outcome)
        if outcome.proposal is not None:
            self.compare(COMPARED_SHARE)
        if self._random.random() < self.committed_share and self.committed_index < len(self.entries):
            self.now_ms += self._lag_ms
            self.broker.note_time(self.now_ms)
            self.committed_index = len(self.entries)
            self.broker.committed(self.committed_index)
            self.compare(COMPARED_SHARE)

    def compare(self, share: float = 1.0) -> None:
        if self._random.random() > share or not self.broker.at_rest:
            return
        ours = kept_state(self.broker)
        # The log of a single broker lacks transient messages.
        # The terms of these brokers begin without an entry.
        without = (STARTS,) if self.broker.engine.replicated else (NUMBERS, STARTS)
        for follower in self.followers:
            follower.catch_up()
            text = difference(ours, kept_state(follower.broker), without=without)
            assert text is None, f"what the root has, and a follower from entry {follower.first}: {text}"
        text = difference(ours, kept_state(Follower(self, restored=True).broker), without=(STARTS,))
        assert text is None, f"what the root has, and a broker that is restored from its snapshot: {text}"

    def compare_successors(self) -> None:
        """All that follow become roots, and do what time brings, alone."""
        self.seal_removals()
        self.compare()
        states = [follower.succeed(self.now_ms) for follower in (*self.followers, Follower(self, restored=True))]
        for follower, state in zip(self.followers, states, strict=False):
            text = difference(states[-1], state, without=(STARTS,))
            assert text is None, f"the next root from a snapshot, and one from entry {follower.first}: {text}"

    def add_follower(self) -> None:
        if self.broker.at_rest:
            self.followers[1:] = [*self.followers[1:], Follower(self, restored=True)][1 - FOLLOWERS_MAX :]


class Follower:
    """Made from a snapshot of the root, or without; from then on it applies the root's entries."""

    def __init__(self, root: Root, *, restored: bool = False) -> None:
        self._root = root
        self.world = World(limits=LIMITS, seed=2)
        self.broker = self.world.broker
        places = self.broker.state.chunk_cache.store = Places(root.places.last_number)
        self.first = self._applied = 0
        if restored:
            self.broker.state.users.clear()
            self.broker.state.vhosts["/"].revoke("guest")
            revival = Revival(self.broker, lambda place: places.kept.setdefault(place, root.places.kept[place]))
            for piece in Snapshot(root.broker, exact=False).pieces(1000):
                revival.take(piece)
            self.first = self._applied = len(root.entries)

    def catch_up(self) -> None:
        for entry in self._root.entries[self._applied :]:
            self._applied += 1
            self.broker.apply(self._applied, self._root.broker.engine.term, entry)

    def succeed(self, now_ms: int) -> dict[str, Section]:
        self.broker.engine.term = self._root.broker.engine.term + 1
        self.broker.engine.replicated = True
        self.world.now_ms = now_ms
        Revival(self.broker, lambda place: place).finish(now_ms, takeover=True)
        self.world.run([])
        self.world.pass_time(SUCCESSION_MS)
        return kept_state(self.broker)

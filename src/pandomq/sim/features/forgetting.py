"""Tables are tiny and ages are short, so that brokers forget, evict and expire all the time, in the same way on all
brokers.

Clients with a model of the broker's tables check that the broker remembers as much as it promises, and that it evicts
what it has to. Abandoned attempts and leases have to be dropped in time, also after the root has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.limits import TableLimits
from pandomq.broker.staging.names import attempt_of
from pandomq.sim.checkers.counted_once import CountedOnce
from pandomq.sim.clients.data_port.lease_abandoner import TIMEOUT_MS, LeaseAbandoner
from pandomq.sim.clients.data_port.query_roster import QueryRoster
from pandomq.sim.clients.publisher import Publisher
from pandomq.sim.clients.roster import Roster
from pandomq.sim.features.feature import Feature
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.queues import QueueKind
from pandomq.sim.state.kept_state import difference, kept_state
from pandomq.sim.state.memory_model import MemoryModel

if TYPE_CHECKING:
    from pandomq.node.settings import NodeSettings
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

PROMISE: Final = "abandoned objects are dropped in time"
ROLLED: Final = QueueKind("rolled", ordered=False)
FORSAKEN: Final = QueueKind("forsaken", ordered=False)
QUERIES: Final = "query-roster"
LATE_MS: Final = 3_000
"""The largest delay of an eviction, with clocks that drift and slow disks."""
TABLES: Final = ("head", "producers", "named producers", "staged batches", "leases")
"""The sections of brokers' state that are compared at the end."""
RELAYED_AGE_MS: Final = 6_000
"""Brokers repeat their unanswered requests for two seconds at most."""


class ForgettingFeature(Feature):
    name = "forgetting"
    never_with = ("vhosts",)
    """Its producers of the same names would evict rows that clients rely on."""
    chance = 0.35

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self.counted_once = CountedOnce(world.ledger)
        self._producers_max = random.randint(2, 3)
        self._producer_age_ms = random.choice((800, 2_000, 60_000))
        self._queries_max = random.randint(2, 3)
        self._query_age_ms = random.choice((800, 2_000, 60_000))
        self._left_alone_ms = random.choice((300, 900))
        self._relayed_max = random.choice((150, 100_000))
        self._waits_since_ms = -1

    def _needed_by_others(self) -> set[str]:
        """Returns the tables that have rows on which clients without a model rely."""
        needed = {table for feature in self.world.features for table in feature.relies_on}
        if self.world.streams:
            needed |= {"named producers", "staged batches"}
        return needed

    def adjust(self, settings: NodeSettings) -> NodeSettings:
        needed = self._needed_by_others()
        tables = TableLimits(
            relayed_producers_max=self._relayed_max,
            relayed_producer_age_ms=RELAYED_AGE_MS,
            staged_left_alone_ms=self._left_alone_ms,
        )
        if "staged batches" not in needed:
            tables = msgspec.structs.replace(
                tables, staged_queries_max=self._queries_max, staged_query_age_ms=self._query_age_ms
            )
        if "named producers" not in needed:
            settings = msgspec.structs.replace(
                settings, producers_max=self._producers_max, producer_age_ms=self._producer_age_ms
            )
        return msgspec.structs.replace(settings, tables=tables)

    def checkers(self) -> Sequence[Checker]:
        return (self.counted_once,)

    def queues(self) -> Sequence[QueueKind]:
        return (ROLLED, FORSAKEN)

    def clients(self) -> Sequence[SimulatedClient]:
        needed, scene, random = self._needed_by_others(), self.world.scene, self.random
        clients: list[SimulatedClient] = [
            Publisher(scene, "publisher-of-forsaken", [FORSAKEN], "", random.randint(3, 12)),
            LeaseAbandoner(scene, "forsaker", FORSAKEN, random.randint(1, 3)),
        ]
        model = None
        if "staged batches" not in needed:
            model = MemoryModel(self._queries_max, self._query_age_ms)
        clients.append(
            QueryRoster(
                scene,
                QUERIES,
                ROLLED,
                model,
                self.counted_once,
                names=self._queries_max + 1,
                wanted=random.randint(8, 20),
                rests_ms=self._rests_ms(self._query_age_ms),
            )
        )
        if "named producers" not in needed:
            roster = Roster(
                scene,
                "roster",
                ROLLED,
                MemoryModel(self._producers_max, self._producer_age_ms),
                self.counted_once,
                names=self._producers_max + random.randint(1, 2),
                wanted=random.randint(15, 40),
                rests_ms=self._rests_ms(self._producer_age_ms),
            )
            clients.append(roster)
        return clients

    def _rests_ms(self, age_ms: int) -> tuple[int, ...]:
        """Returns possible pauses between two requests."""
        return (0, 0, 1, 5, 20, 20, 100, min(age_ms, 2_000) // 2, min(age_ms, 2_000) * 3 // 2)[
            : self.random.choice((6, 9))
        ]

    def join_faults(self, faults: WorldFaults) -> None:
        # A broker that is promoted by force may know less than clients were promised.
        faults.kinds = [kind for kind in faults.kinds if kind != "promote"] or ["kill"]

    def healed(self) -> bool:
        root = self.world.machine
        now_ms = self.world.agenda.now_ms
        if self._waits_since_ms < 0:
            self._waits_since_ms = now_ms
        if root.node is None or not root.serving:
            return False
        left = self._left_alone(root)
        limit_ms = max(TIMEOUT_MS, self._left_alone_ms) * 11 // 10 + LATE_MS
        if left and now_ms > self._waits_since_ms + limit_ms:
            raise BrokenPromise(PROMISE, f"{', '.join(left)} are still on {root.name} after {limit_ms} ms")
        return not left

    def _left_alone(self, root: Machine) -> list[str]:
        assert root.node is not None
        state = root.node.broker.state
        attempts = [attempt_of(name) for name in state.vhosts["/"].inner_queues]
        own = [attempt for attempt in attempts if attempt is not None and attempt.query.startswith(f"{QUERIES}-")]
        return [
            *(f"attempt {attempt.name} of {attempt.query}" for attempt in own),
            *(f"lease {lease.name}" for lease in state.leases if lease.queue == FORSAKEN.name),
        ]

    def compare(self, machines: Sequence[Machine], root: Machine) -> None:
        assert root.node is not None
        ours = kept_state(root.node.broker)
        for machine in machines:
            if machine is root or machine.secondary or machine.node is None:
                continue
            text = difference(ours, kept_state(machine.node.broker), only=TABLES)
            if text is not None:
                raise BrokenPromise("all brokers have the same state", f"on {machine.name} {text}")

"""Batches of several queries that are staged and committed; each query is driven by two clients at once.

Attempts that no commit names are dropped after a time that is shorter in these worlds than by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.staging.names import attempt_of
from pandomq.sim.checkers.batches import BatchesWhole, StagedQuery
from pandomq.sim.clients.data_port.batch_driver import BatchDriver
from pandomq.sim.clients.declarer import Declarer
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.node.settings import NodeSettings
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.world import World

BATCHED: Final = QueueKind("batched")
"""A queue without consumers: at the end it has all messages, in order."""
LEFT_ALONE_MS: Final = 1_500


class StagingFeature(Feature):
    name = "staging"
    never_with = ("forgetting", "hours")
    chance = 0.25

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._queries = [StagedQuery(f"{world.seed}", f"query-{number}") for number in range(2)]
        self._whole = BatchesWhole(world.ledger, BATCHED.name, self._queries)

    def adjust(self, settings: NodeSettings) -> NodeSettings:
        tables = msgspec.structs.replace(settings.tables, staged_left_alone_ms=LEFT_ALONE_MS)
        return msgspec.structs.replace(settings, tables=tables)

    def checkers(self) -> Sequence[Checker]:
        return (self._whole,)

    def queues(self) -> Sequence[QueueKind]:
        return (BATCHED,)

    def clients(self) -> Sequence[SimulatedClient]:
        scene = self.world.scene
        clients: list[SimulatedClient] = [Declarer(scene, [BATCHED], "declarer-of-batched")]
        for query in self._queries:
            for number in range(2):
                name = f"driver-{number}-of-{query.name}"
                clients.append(BatchDriver(scene, name, BATCHED, query, self._whole, LEFT_ALONE_MS))
        return clients

    def healed(self) -> bool:
        """Whether no staged part is left without a commit."""
        root = self.world.machine
        if root.node is None or not root.serving:
            return False
        names = {query.name for query in self._queries}
        attempts = map(attempt_of, root.node.broker.state.vhosts["/"].inner_queues)
        return not any(attempt is not None and attempt.query in names for attempt in attempts)

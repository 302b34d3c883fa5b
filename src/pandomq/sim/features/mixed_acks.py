"""Clients that consume and get from the same queue on one channel, and settle late, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final, cast

from pandomq.sim.checkers.holders import OneHolder
from pandomq.sim.clients.mixed_consumer import MixedConsumer
from pandomq.sim.clients.publisher import Publisher
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.cluster.faults import ClusterFaults
    from pandomq.sim.cluster.world import ClusterWorld
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.world import World

MIXED: Final = QueueKind("mixed")
ASKED: Final = QueueKind("asked")
"""The queue that is used by basic.get alone."""
ROOTS_CHANCE: Final = 0.6
"""The chance that a world in which any broker serves has roots that die, and few other faults: clients of the other
brokers settle deliveries of an earlier root."""
LATE_MS: Final = 1_500
"""Longer than the time from the end of a root until the next one serves."""


class MixedAcksFeature(Feature):
    name = "mixed-acks"
    chance = 0.25

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._one_holder = OneHolder(world.ledger)
        self._mixed: list[MixedConsumer] = []

    def checkers(self) -> Sequence[Checker]:
        return (self._one_holder,)

    def queues(self) -> Sequence[QueueKind]:
        return (MIXED, ASKED)

    def clients(self) -> Sequence[SimulatedClient]:
        scene = self.world.scene
        counts = self.random.randint(30, 80), self.random.randint(20, 40)
        clients: list[SimulatedClient] = [
            Publisher(scene, f"publisher-of-{kind.name}", [kind], "", count)
            for kind, count in zip((MIXED, ASKED), counts, strict=True)
        ]
        self._mixed = [MixedConsumer(scene, f"mixed-{number}", MIXED, ASKED, self._one_holder) for number in range(2)]
        return [*clients, *self._mixed]

    def join_faults(self, faults: WorldFaults) -> None:
        if getattr(self.world, "proxied", False) and self.random.random() < ROOTS_CHANCE:
            of_cluster = cast("ClusterFaults", faults)
            of_cluster.only_roots_die()
            cast("ClusterWorld", self.world).faults_changed(of_cluster)
            # The first client settles late; the second one receives the same messages from the next root, and returns
            # them after the first one has acked them.
            late, returning = self._mixed
            late.settle_late(LATE_MS)
            returning.return_most()

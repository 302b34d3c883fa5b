"""Consumers that share a queue: a single active consumer, and consumers with one message at a time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.root_time import RootTime
from pandomq.sim.checkers.turns import OneActive, PrefetchKept
from pandomq.sim.clients.turns import FrugalConsumer, SingleConsumer, SteadyPublisher
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.world import World

SINGLE: Final = QueueKind("single", {"x-single-active-consumer": True})
FRUGAL: Final = (QueueKind("frugal-1"), QueueKind("frugal-2"))


class TurnsFeature(Feature):
    name = "turns"
    chance = 0.3

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._time = RootTime(world.ledger, world.scene)
        self._one_active = OneActive(world.ledger, self._time, SINGLE.name)
        self._prefetch_kept = PrefetchKept(world.ledger)

    def checkers(self) -> Sequence[Checker]:
        return self._time, self._one_active, self._prefetch_kept

    def queues(self) -> Sequence[QueueKind]:
        return SINGLE, *FRUGAL

    def clients(self) -> Sequence[SimulatedClient]:
        scene, random = self.world.scene, self.random
        clients: list[SimulatedClient] = [
            SteadyPublisher(scene, "publisher-of-single", SINGLE, random.randint(15, 40)),
            SteadyPublisher(scene, "publisher-of-frugal-1", FRUGAL[0], random.randint(8, 20)),
            SteadyPublisher(scene, "publisher-of-frugal-2", FRUGAL[1], random.randint(8, 20)),
            FrugalConsumer(scene, "frugal-both", FRUGAL, self._prefetch_kept),
            FrugalConsumer(scene, "frugal-one", FRUGAL[:1], self._prefetch_kept),
        ]
        count = random.randint(2, 3)
        clients += [
            SingleConsumer(scene, f"single-{number}", SINGLE, self._time, stays=not number) for number in range(count)
        ]
        return clients

    def healed(self) -> bool:
        """Whether all confirmed messages were consumed, and the first active consumer has left."""
        consumed = {client.kind.name for client in self.world.clients if isinstance(client, SingleConsumer)}
        return self.world.ledger.is_consumed(consumed)

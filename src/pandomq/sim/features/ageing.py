"""A stream with `x-max-age`."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.root_time import RootTime
from pandomq.sim.clients.ageing import AgeingPublisher, AgeingReader
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.world import World

AGEING: Final = QueueKind(
    "ageing",
    {"x-queue-type": "stream", "x-max-age": "1s", "x-stream-max-segment-size-bytes": 2_000},
    stream=True,
    keeps=False,
)


class AgeingFeature(Feature):
    name = "ageing"
    chance = 0.2

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._time = RootTime(world.ledger, world.scene)
        # Only the feature's own reader reads this stream.
        world.ledger.kinds[AGEING.name] = AGEING

    def checkers(self) -> Sequence[Checker]:
        return (self._time,)

    def clients(self) -> Sequence[SimulatedClient]:
        scene = self.world.scene
        publisher = AgeingPublisher(scene, "publisher-of-ageing", AGEING, self.random.randint(5, 40), self._time)
        return publisher, AgeingReader(scene, "reader-of-ageing", AGEING, publisher, self._time)

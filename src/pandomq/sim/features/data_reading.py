"""A stream that is read on the data ports of all brokers, and written by a publisher that a crash may interrupt."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.rows import RowsKept
from pandomq.sim.clients.data_port.bulk_reader import BulkReader
from pandomq.sim.clients.publisher import Publisher
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

READINGS: Final = QueueKind(
    "readings", {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 3_000}, stream=True, tempts=True
)


class DataReadingFeature(Feature):
    name = "data-reading"
    chance = 0.25

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._rows_kept = RowsKept(world.ledger, READINGS.name, world.streams_kept)

    def checkers(self) -> Sequence[Checker]:
        return (self._rows_kept,)

    def queues(self) -> Sequence[QueueKind]:
        return (READINGS,)

    def clients(self) -> Sequence[SimulatedClient]:
        scene = self.world.scene
        writer = Publisher(scene, "writer-of-readings", [READINGS], "", self.random.randint(20, 60))
        return (writer, *(BulkReader(scene, f"bulk-reader-{number}", self._rows_kept) for number in range(2)))

    def compare(self, machines: Sequence[Machine], root: Machine) -> None:
        for machine in machines:
            assert machine.node is not None
            stream = machine.node.broker.streams.find("/", READINGS.name)
            if stream is not None and not machine.secondary:
                self._rows_kept.check_stored(machine.name, stream.stored_offsets)

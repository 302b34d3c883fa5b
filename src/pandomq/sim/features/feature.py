"""The definition of a feature: clients, queues, checkers and settings that belong together.

Each world draws its features from its seed, and each feature has its own source of chance. A feature that is added to
the catalogue or left out of a world therefore does not change the random choices of the other features.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pandomq.node.settings import NodeSettings
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.machine import Machine
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.world import World


class Feature:
    name: ClassVar[str]
    chance: ClassVar[float] = 0.2
    """The share of the suitable worlds that have this feature."""
    relies_on: ClassVar[tuple[str, ...]] = ()
    """Tables of which its clients need every row: "named producers", "staged batches", "stored offsets". A feature that
    makes tables small leaves these alone."""
    never_with: ClassVar[tuple[str, ...]] = ()
    """Features that no world has beside this one: their actions would look like a broken promise to its checkers."""
    patience_ms: ClassVar[int] = 0
    """How much longer than usual a world waits until this feature is healed."""

    def __init__(self, world: World, random: Random) -> None:
        """The world has its ledger, its scene and its trace; it has no machines, clients or faults yet."""
        self.world = world
        self.random = random

    @classmethod
    def suits(cls, world: World) -> bool:
        """Whether such a world can have this feature."""
        return True

    # Methods that the world calls, in this order.

    def adjust(self, settings: NodeSettings) -> NodeSettings:
        """Returns the settings of one broker, with what this feature changes in them."""
        return settings

    def checkers(self) -> Sequence[Checker]:
        return ()

    def queues(self) -> Sequence[QueueKind]:
        """Returns the kinds that the ledger has to know. Clients of this feature declare and publish to them; the
        world empties them at the end, and reads streams to their end. No broker of a world with streams is promoted
        by force."""
        return ()

    def clients(self) -> Sequence[SimulatedClient]:
        return ()

    def join_faults(self, faults: WorldFaults) -> None:
        """May add kinds of faults or remove them."""

    def healed(self) -> bool:
        """Whether the awaited events of this feature have happened, after the faults have ended. A reduction may have
        left out some of its clients: those that take part are in `self.world.clients`."""
        return True

    def compare(self, machines: Sequence[Machine], root: Machine) -> None:
        """All brokers have the same log, and no client changes anything. Raises BrokenPromise."""

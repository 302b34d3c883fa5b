"""Several leases of one queue, one of them used by two clients at once, and leases that are abandoned.

At the end every lease is over, by request or by timeout, and its messages are in the queue again.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.leases import LeasesKept
from pandomq.sim.clients.consumer import ConsumingClient
from pandomq.sim.clients.data_port.rival_lessee import RivalLessee
from pandomq.sim.clients.publisher import Publisher
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.world import World

RENTED: Final = QueueKind("rented", ordered=False)
"""A message that a lease returns was first delivered to no consumer, or long after others."""
SHARED, OWN, LOST = "shared", "own", "lost"


class LeasesFeature(Feature):
    name = "leases"
    never_with = ("forgetting", "hours")
    chance = 0.25

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._kept = LeasesKept(world.ledger, world.agenda)

    def checkers(self) -> Sequence[Checker]:
        return (self._kept,)

    def queues(self) -> Sequence[QueueKind]:
        return (RENTED,)

    def clients(self) -> Sequence[SimulatedClient]:
        scene = self.world.scene
        clients: list[SimulatedClient] = [
            Publisher(scene, "publisher-of-rented", [RENTED], "", self.random.randint(15, 40))
        ]
        for number, lease in enumerate((SHARED, SHARED, OWN, LOST)):
            once = lease == LOST
            clients.append(RivalLessee(scene, f"lessee-{number}", RENTED, lease, self._kept, once=once))
        if self.random.random() < 0.3:
            clients.append(ConsumingClient(scene, "consumer-of-rented", RENTED))
        return clients

    def healed(self) -> bool:
        root = self.world.machine
        if root.node is None or root.replica is None or not root.serving:
            return False
        # A crash could revert uncommitted changes, and messages that have returned would have to return once more.
        is_safe = root.replica.commit_index >= root.journal.last_index
        return is_safe and not root.node.broker.state.leases.of_queue("/", RENTED.name)

"""Several vhosts with equal names in them, one of which is deleted and made again under load."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from pandomq.sim.clients.administration.vhosts import (
    VhostConsumer,
    VhostMaker,
    VhostNamedPublisher,
    VhostPublisher,
    VhostState,
)
from pandomq.sim.features.feature import Feature
from pandomq.sim.queues import NOWHERE, QueueKind

if TYPE_CHECKING:
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.world import World


class VhostsFeature(Feature):
    name = "vhosts"
    chance = 0.25

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._vhosts = [VhostState("east"), VhostState("west", bound=False), VhostState("doomed", mortal=True)]
        self._tenants: list[VhostPublisher | VhostConsumer] = []
        self._kinds = {
            vhost.name: QueueKind(vhost.queue, keeps=not vhost.mortal, ordered=not vhost.mortal)
            for vhost in self._vhosts
        }
        # The world empties the queues of its own vhost only.
        for kind in (NOWHERE, *self._kinds.values()):
            world.ledger.kinds[kind.name] = kind

    def clients(self) -> Sequence[SimulatedClient]:
        scene, random = self.world.scene, self.random
        clients: list[SimulatedClient] = [VhostMaker(scene, "vhost-maker", self._vhosts, random.randint(1, 4))]
        for vhost in self._vhosts:
            kind = self._kinds[vhost.name]
            publisher = VhostPublisher(scene, f"publisher-in-{vhost.name}", vhost, kind, random.randint(6, 20))
            consumer = VhostConsumer(scene, f"consumer-in-{vhost.name}", vhost, kind)
            consumer.publisher = publisher
            clients += [publisher, consumer]
            if not vhost.mortal:
                wanted = random.randint(4, 12)
                clients.append(VhostNamedPublisher(scene, f"named-in-{vhost.name}", vhost, kind, wanted))
            self._tenants += [publisher, consumer]
        return clients

    def healed(self) -> bool:
        """Whether the messages in the vhosts that stay were consumed, and clients of the deleted vhost are in the new
        one."""
        names = {client.name for client in self.world.clients}
        kinds = [self._kinds[vhost.name] for vhost in self._vhosts if f"consumer-in-{vhost.name}" in names]
        consumed = self.world.ledger.is_consumed({kind.name for kind in kinds if kind.keeps})
        return consumed and not any(client.outlives for client in self._tenants)

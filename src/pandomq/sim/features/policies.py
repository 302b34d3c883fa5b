"""Policies and operator policies change under load; queues follow them on every broker, and at rest all brokers
agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.sim.clients.administration.policies import (
    PREFIX,
    PROMISE,
    Definition,
    PolicyGroup,
    PolicyMaker,
    Tenant,
    seen,
)
from pandomq.sim.facts import Facts
from pandomq.sim.features.drills.visibility import brokers_of, lose_touch, serves_anywhere, without_forced_promotions
from pandomq.sim.features.feature import Feature
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.broker import Broker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

TENANTS: Final = (1, 2)


class PoliciesFeature(Feature):
    name = "policies"
    chance = 0.25

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._facts: Facts[PolicyGroup] = Facts(world.agenda)

    def clients(self) -> Sequence[SimulatedClient]:
        scene = self.world.scene
        maker = PolicyMaker(scene, "policy-maker", self._facts, self.random.randint(6, 30))
        count = self.random.choice(TENANTS)
        names = [machine.name for machine in (*scene.machines, *scene.secondaries)]
        places: list[str | None] = [None] * count
        if serves_anywhere(self.world):
            places = [*self.random.sample(names, min(count, len(names)))]
        return [maker, *(Tenant(scene, f"tenant-{n}", self._facts, place) for n, place in enumerate(places))]

    def join_faults(self, faults: WorldFaults) -> None:
        without_forced_promotions(faults)
        lose_touch(self.world, faults, self.random)

    def compare(self, machines: Sequence[Machine], root: Machine) -> None:
        assert root.node is not None
        ours = _in_force(root.node.broker)
        for machine in machines:
            for broker in brokers_of(machine):
                theirs = _in_force(broker)
                if theirs != ours:
                    different = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
                    what = {name: (theirs.get(name), ours.get(name)) for name in different[:2]}
                    raise BrokenPromise(PROMISE, f"on {machine.name} and on the root there is in force: {what}")
        for fact in self._facts.certain():
            assert fact.value is not None
            for queue, definition in ours.items():
                if queue.startswith(fact.name) and definition != fact.value.definition(queue):
                    raise BrokenPromise(
                        PROMISE, f"in force for {queue} is {definition}, not {fact.value.definition(queue)}"
                    )


def _in_force(broker: Broker) -> dict[str, Definition]:
    queues = broker.state.vhosts["/"].queues.values()
    return {queue.name: seen(queue.settings) for queue in queues if queue.name.startswith(PREFIX) and not queue.owner}

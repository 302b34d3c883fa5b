"""Users, passwords and permissions change under load; clients try them on every broker that serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.sim.clients.administration.rights import PROMISE, TOPIC, LoginVisitor, Rights, RightsMaker, Visitor
from pandomq.sim.facts import Fact, Facts
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

VISITORS: Final = (1, 2)
CALLERS: Final = 3


class RightsFeature(Feature):
    name = "rights"
    chance = 0.25

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._facts: Facts[Rights] = Facts(world.agenda)

    def clients(self) -> Sequence[SimulatedClient]:
        scene = self.world.scene
        maker = RightsMaker(scene, "rights-maker", self._facts, self.random.randint(6, 30))
        count = self.random.choice(VISITORS)
        clients: list[SimulatedClient] = [maker]
        clients += [Visitor(scene, f"visitor-{number}", self._facts) for number in range(count)]
        if serves_anywhere(self.world):
            clients += [LoginVisitor(scene, f"caller-{number}", self._facts) for number in range(CALLERS)]
        return clients

    def join_faults(self, faults: WorldFaults) -> None:
        without_forced_promotions(faults)
        lose_touch(self.world, faults, self.random)

    def compare(self, machines: Sequence[Machine], root: Machine) -> None:
        for machine in machines:
            for broker in brokers_of(machine):
                for fact in self._facts.certain():
                    _compare(machine.name, broker, fact)


def _compare(name: str, broker: Broker, fact: Fact[Rights]) -> None:
    assert fact.value is not None
    access = broker.state.vhosts["/"].access.get(fact.name)
    found = (
        fact.name in broker.state.users,
        None if access is None or access.permissions is None else tuple(access.permissions),
        None if access is None or TOPIC.exchange not in access.topics else access.topics[TOPIC.exchange].write,
    )
    expected = (fact.value.exists, fact.value.permissions, fact.value.topic)
    if found != expected:
        raise BrokenPromise(PROMISE, f"on {name} {fact.name} has {found}, not {expected}")

"""Two brokers that cannot connect to each other, for longer than a link may be silent, and use a third one as a relay.

The log keeps up over the relay, also under load. When the direct path works again they link directly, and no broker
relays any more. Only some worlds wait for that, so this drill comes after all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pandomq.cluster.limits import KNOCK_MS, REDIAL_MS_MAX
from pandomq.sim.cluster.network_faults import both_ways
from pandomq.sim.features.drills.drill import ANSWER_MS, Awaited, Drill, of_brokers
from pandomq.sim.network.byte_network import NetworkFault

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

NODES_MIN: Final = 3
FOUND_MS: Final = 12_000
SILENT_CHANCE: Final = 0.3
"""The chance that a path is cut, so that brokers detect it only by the silence of their links."""
MANY: Final = 40
BACK_CHANCE: Final = 0.25
"""The chance that a world waits until the relay is no longer used, which takes long."""
BACK_MS: Final = 2 * KNOCK_MS + 5 * REDIAL_MS_MAX


class DetoursFeature(Drill):
    name = "detours"
    chance = 0.25
    patience_ms = FOUND_MS + 2 * ANSWER_MS + 2 * BACK_MS
    promise = "brokers that cannot connect use a third as a relay"

    @classmethod
    def suits(cls, world: World) -> bool:
        return of_brokers(world, NODES_MIN)

    def course(self) -> Iterator[Awaited]:
        yield self.is_calm
        members = self.members()
        if len(members) < NODES_MIN:
            return
        one, other = self.root.name, self.random.choice(self.backups())
        if self.random.random() < 0.3 and len(self.backups()) > 1:
            one, other = self.random.sample(self.backups(), 2)
        paths = frozenset(both_ways((one, other)))
        network = self.root.network
        if self.random.random() < SILENT_CHANCE:
            self.say(f"nothing passes between {one} and {other}")
            trouble = NetworkFault(cut=paths)
            network.impose(trouble)
        else:
            self.say(f"{one} and {other} cannot connect to each other")
            trouble = NetworkFault(refused=paths)
            network.impose(trouble)
            network.reset(paths)
        ends = self.machine_of(one), self.machine_of(other)
        yield self.within(FOUND_MS, f"{one} and {other} are linked by a detour", lambda: _both_say("through", *ends))
        yield self.confirms(MANY, "while two brokers are linked by a detour")
        yield self.in_sync(ANSWER_MS)
        network.lift(trouble)
        if self.random.random() < BACK_CHANCE:
            self.say(f"{one} and {other} can connect to each other again")
            yield self.within(BACK_MS, f"{one} and {other} are linked directly", lambda: _both_say("linked", *ends))
            if not self.world.scene.proxied:
                # Where any broker serves, its clients may have reached the root over the relay, and stay on it. Another
                # pair may use a relay since the faults, and tries the direct path as rarely as this pair did.
                yield self.within(BACK_MS, "nobody passes on anything", self._passes_nothing_on)
            yield self.is_calm

    def _passes_nothing_on(self) -> bool:
        nodes = [machine.node for machine in self.world.machines]
        return not any(node is not None and node.peer_links and len(node.peer_links.relays) for node in nodes)


def _both_say(how: str, one: Machine, other: Machine) -> bool:
    """Whether both brokers are linked to each other in this way."""
    states = _state(one, other), _state(other, one)
    return all(state == how or f" {how} " in state for state in states)


def _state(here: Machine, there: Machine) -> str:
    links = None if here.node is None else here.node.peer_links
    views = () if links is None else links.view()
    return next((view.state for view in views if view.name == there.name), "")

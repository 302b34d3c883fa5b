"""Clients rely on objects that were declared and bound on another broker, as soon as the declaring client was answered
(R16)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Final, cast

from pandomq.cluster.proxy.front import Front
from pandomq.node.broker_state import BrokerState
from pandomq.sim.clients.administration.topology import (
    BINDING,
    EXCHANGE,
    PROMISE,
    SOURCE,
    TopologyMaker,
    TopologyProber,
)
from pandomq.sim.cluster.network_faults import both_ways
from pandomq.sim.facts import Facts
from pandomq.sim.features.drills.drill import ANSWER_MS, Awaited, Drill
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.network.byte_network import NetworkFault

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.cluster.faults import ClusterFaults
    from pandomq.sim.cluster.world import ClusterWorld
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

PLACES_MAX: Final = 3
FOCUS_CHANCE: Final = 0.5
"""The chance of a world in which brokers lose their connection to the root, and few other faults occur."""
FOCUS_KINDS: Final = ("split", "deaf", "mute", "clog", "reset", "pause", "kill root", "hand over")
FOCUS_PAUSE_MS: Final = (150, 400)
MEMBERS_MIN: Final = 3
DRILL_CHANGES: Final = 4
DRILL_MESSAGES: Final = 100
DRILL_RATE: Final = 30
"""Bytes per millisecond."""
NARROW_MS: Final = 700
RESET_CHANCE: Final = 0.5
HAND_OVER_CHANCE: Final = 0.6
CUT_OFF: Final = "cut off"
CUT_OFF_MS: Final = (900, 1_300)
"""Longer than any serving lease."""


def without_forced_promotions(faults: WorldFaults) -> None:
    """A forced promotion may revert changes that clients were told."""
    faults.kinds = [kind for kind in faults.kinds if kind != "promote"] or ["kill"]


def serves_anywhere(world: World) -> bool:
    return bool(getattr(world, "proxied", False))


def lose_touch(world: World, faults: WorldFaults, random: Random) -> None:
    """In some worlds brokers are cut off from the root for longer than their leases, or the root changes, and few other
    faults occur: most of the time the others continue."""
    if random.random() < FOCUS_CHANCE and serves_anywhere(world):
        cluster = cast("ClusterWorld", world)
        if not cluster._settles:
            faults.focus(random.sample(FOCUS_KINDS, 1), random.choice(FOCUS_PAUSE_MS))
            faults.add_kind(CUT_OFF, lambda machine: _cut_off(cluster, faults, machine))
            cluster.faults_changed(cast("ClusterFaults", faults))


def _cut_off(world: ClusterWorld, faults: WorldFaults, machine: Machine) -> None:
    """Cuts off a broker that is not the root for longer than its serving lease. No client makes changes through it
    meanwhile, so that the others continue."""
    others = [one for one in (*world.machines, *world.scene.secondaries) if one is not machine]
    makers = [client.cable for client in world.clients if client.name.endswith("maker")]
    busy = {cable.machine for cable in makers if cable is not None}
    fronts = [one for one in (machine, *others) if one.up and not one.serving and one not in busy]
    if world.machine.serving and fronts and not world.network.troubles:
        random = Random(f"{CUT_OFF} {world.seed} {faults.strikes.count()}")
        _isolate(world, fronts[0], random.randint(*CUT_OFF_MS))


def _isolate(world: ClusterWorld, machine: Machine, for_ms: int) -> None:
    network, trace, name = world.network, world.trace, machine.name
    paths = [path for other in network.machines if other != name for path in both_ways((name, other))]
    trouble = NetworkFault(cut=frozenset(paths))
    trace.say("network", f"{name} is cut off for {for_ms} ms")
    network.impose(trouble)

    def lift() -> None:
        if trouble in network.troubles:
            trace.say("network", f"{name} is no longer cut off")
            network.lift(trouble)

    world.agenda.after(for_ms, lift)


def brokers_of(machine: Machine) -> list[Broker]:
    """Returns the broker that follows the log, and the front if there is one that may have clients."""
    assert machine.node is not None
    service = machine.node._front_service
    front: list[Front] = [service.front] if service is not None and service.front.ready else []
    return [machine.node.broker, *front]


class VisibilityFeature(Drill):
    """After the faults a broker is cut off for longer than its lease, and clients make changes on others."""

    name = "visibility"
    chance = 0.3
    promise = PROMISE

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._facts: Facts[bool] = Facts(world.agenda)

        self._maker = TopologyMaker(world.scene, "topology-maker", self._facts, random.randint(6, 30))
        self._probers: list[TopologyProber] = []

    @classmethod
    def suits(cls, world: World) -> bool:
        return serves_anywhere(world)

    def clients(self) -> Sequence[SimulatedClient]:
        scene = self.world.scene
        if not self._probers:
            names = [machine.name for machine in (*scene.machines, *scene.secondaries)]
            places = self.random.sample(names, min(len(names), PLACES_MAX))
            outside = [machine.name for machine in scene.secondaries]
            if outside and not set(outside) & set(places):
                places[-1] = outside[0]
            self._probers = [TopologyProber(scene, place, self._facts) for place in places]
        return [self.prober, self._maker, *self._probers]

    def join_faults(self, faults: WorldFaults) -> None:
        without_forced_promotions(faults)
        lose_touch(self.world, faults, self.random)

    def course(self) -> Iterator[Awaited]:
        yield self.is_calm
        if len(self.members()) < MEMBERS_MIN:
            return
        # A root that hands over and a broker that is cut off leave two of three primaries, if that broker is no
        # primary.
        outside = [prober for prober in self._probers if prober.place not in self.members()]
        inside = [prober for prober in self._probers if prober.place in self.backups()]
        hands_over = bool(outside) and (not inside or self.random.random() < HAND_OVER_CHANCE)
        if not outside and not inside:
            return
        prober = self.random.choice(outside if hands_over else inside)
        assert prober.place is not None
        front = self.machine_of(prober.place)
        # The connection of the client that makes changes survives the change of the root.
        served = self.random.choice([name for name in self.backups() if name != front.name])
        self._maker.place = served
        self._maker.cut()
        yield self.within(ANSWER_MS, f"a client is served at {served}", lambda: self._maker.is_prepared)
        yield lambda: prober.is_prepared or prober.refused
        yield self.is_calm
        yield from self._with_next_root(front, served) if hands_over else self._behind(front)
        self._maker.place = None
        yield self.is_calm
        yield lambda: all(one.content for one in self._probers)

    def _with_next_root(self, front: Machine, successor: str) -> Iterator[Awaited]:
        """The next root must not answer before the leases of the last one have expired."""
        network, root, trouble = front.network, self.root, self._trouble(front)
        answers: list[bool] = []

        def ended(done: bool, text: str) -> None:
            self.say(f"{root.name}: {text}")
            answers.append(done)

        self.say(f"{root.name} is asked to hand over to {successor}; then {front.name} is cut off")
        root.ask(lambda peers: peers.hand_over(successor, ended))
        yield lambda: bool(answers) or _steps_down(root)
        if _steps_down(root):
            network.impose(trouble)
            self._maker.make(DRILL_CHANGES)
        yield self.within(ANSWER_MS, "it is said what became of the hand-over", lambda: bool(answers))
        yield lambda: self._maker.content
        network.lift(trouble)

    def _behind(self, front: Machine) -> Iterator[Awaited]:
        """A broker that reconnects must not serve before it has received the changes that clients were told meanwhile,
        even if they arrive slowly."""
        network, agenda, trouble = front.network, self.world.agenda, self._trouble(front)
        self.say(f"{front.name} is cut off")
        network.impose(trouble)
        yield self.confirms(DRILL_MESSAGES, f"without {front.name}")
        self._maker.make(DRILL_CHANGES)
        yield lambda: self._maker.content
        narrow = NetworkFault(rates=dict.fromkeys(trouble.cut, DRILL_RATE))
        self.say(f"{front.name} is linked again, and little passes")
        network.impose(narrow)
        network.lift(trouble)
        if self.random.random() < RESET_CHANCE:
            network.reset(trouble.cut)
        wide_ms = agenda.now_ms + NARROW_MS
        agenda.after(NARROW_MS, lambda: None)
        yield lambda: agenda.now_ms >= wide_ms
        network.lift(narrow)

    def _trouble(self, front: Machine) -> NetworkFault:
        others = [name for name in front.network.machines if name != front.name]
        return NetworkFault(cut=frozenset(path for name in others for path in both_ways((front.name, name))))

    def compare(self, machines: Sequence[Machine], root: Machine) -> None:
        for machine in machines:
            for broker in brokers_of(machine):
                self._compare(machine.name, broker)

    def _compare(self, name: str, broker: Broker) -> None:
        exchanges = broker.state.vhosts["/"].router.exchanges
        bound = {binding.routing_key.removesuffix(".*") for binding in exchanges[SOURCE.exchange].bindings()}
        for fact in self._facts.certain():
            found = fact.name in (exchanges if fact.name.startswith(EXCHANGE) else bound)
            assert fact.name.startswith((EXCHANGE, BINDING))
            if found != fact.value:
                raise BrokenPromise(PROMISE, f"{fact.name} is {'there' if found else 'missing'} on {name}")


def _steps_down(root: Machine) -> bool:
    return root.node is None or root.node.peers.life.state is BrokerState.HANDED_OVER

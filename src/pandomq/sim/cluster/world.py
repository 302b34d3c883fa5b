"""One seed's world with several brokers.

faults    clients work, machines die and come back, the network falls apart, people interfere
healing   nothing goes wrong any more: there is a root, and everybody gets what they waited for
counting  the clients leave, all brokers hold the same, the queues are emptied, the checkers look at the whole
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec

from pandomq.journal.faults import StoreFault
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.settings import NodeSettings
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.clients.client import Client
from pandomq.sim.clients.consumer import Consumer
from pandomq.sim.clients.publisher import Publisher
from pandomq.sim.clients.subscriber import Announcer, Subscriber
from pandomq.sim.cluster.checkers import brokers_equal
from pandomq.sim.cluster.checkers.identity import IdentityKept
from pandomq.sim.cluster.checkers.replicas import ReplicasAgree
from pandomq.sim.cluster.checkers.subscriptions import SubscriptionsKept
from pandomq.sim.cluster.checkers.time import TimeGoesOn
from pandomq.sim.cluster.faults import ClusterFaults, member
from pandomq.sim.cluster.secondaries import Secondaries
from pandomq.sim.faults import Faults
from pandomq.sim.files import Loss
from pandomq.sim.machine import Machine
from pandomq.sim.network import Network, Weather
from pandomq.sim.queues import LEASED, PLAIN, REPLICATED_KINDS, QueueKind, draw_kinds
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.trunks import Trunks
from pandomq.sim.world import SETTINGS, World

DRIFT_PERMILLE: Final = 45
"""Two clocks differ by twice as much at most, which is within what a lease allows for."""

SKEWS_MS: Final = (0, 0, -600_000, 5_000, 600_000)
"""What wall clocks show too much when the world begins; less than messages of patient queues live."""
BYTES_CHANCE: Final = 0.4
"""Of brokers to dial each other, rather than to hand messages to the network."""
STRANGERS_CHANCE: Final = 0.5
"""Of those who dial each other to begin with stores that belong to no cluster yet, and to found one."""
PROXY_CHANCE: Final = 0.5
"""Of those who dial each other to serve clients in the root's name."""
SECONDARIES: Final = (0, 0, 1, 2)
"""How many there are where any broker serves, in one seed or another."""
ACKS_SEED_MIN: Final = 500
"""Seeds below it keep the course that once broke something."""
ACKS_SEEDS: Final = 4
"""One of so many, where any broker serves, is about acks and confirms on one channel while roots come and go."""
ROOT_WAIT_MS: Final = 2_000
KEY: Final = b"what all brokers of a simulated cluster know"


def _draw_settings(random: Random) -> ReplicaSettings:
    lease_ms = random.choice((150, 300, 600))
    return ReplicaSettings(
        lease_ms=lease_ms,
        disk_stall_ms=lease_ms,
        min_copies=random.choice((1, 2, 2, 2)),
        last_man_standing=random.random() < 0.15,
    )


def serves_anywhere(seed: int, nodes: int) -> bool:
    """Whether any broker of this world serves, in the root's name if it is not the root."""
    random = Random(f"cluster {seed} {nodes}")
    _draw_settings(random)
    return random.random() < BYTES_CHANCE and Random(f"proxy {seed} {nodes}").random() < PROXY_CHANCE


def settles_through_fronts(seed: int, nodes: int) -> bool:
    """Whether this world is about acks of clients of brokers that are not the root."""
    return seed >= ACKS_SEED_MIN and seed % ACKS_SEEDS == 0 and serves_anywhere(seed, nodes)


class ClusterWorld(World):
    lengths_ms = (400, 900, 1_700)

    def __init__(
        self, seed: int, nodes: int, show: Callable[[str], None] | None = None, *, traced: bool = False
    ) -> None:
        self._nodes = nodes
        random = Random(f"cluster {seed} {nodes}")
        self._random = random
        self._replica_settings = _draw_settings(random)
        self._by_bytes = random.random() < BYTES_CHANCE
        self._founded = not self._by_bytes or random.random() >= STRANGERS_CHANCE
        own = Random(f"proxy {seed} {nodes}")
        self.proxied = self._by_bytes and own.random() < PROXY_CHANCE
        self._secondary_count = 0
        if self.proxied:
            # It takes a while until all fronts have what the root has.
            self.lengths_ms = (900, 2_000, 3_000)
            self._secondary_count = own.choice(SECONDARIES)
        self._settles = settles_through_fronts(seed, nodes)
        if self._settles:
            self.lengths_ms = (3_000, 4_000, 5_000)
        super().__init__(seed, show, traced=traced)
        self._secondaries = Secondaries(self.scene, own)
        self.observer.on_ended = self._ended
        self.scene.proxied = self._order.proxied = self._kinds_kept.proxied = self.proxied
        self._redelivered.proxied = self.proxied

    def _first_random(self) -> Random:
        return self._random

    def _more_checkers(self) -> Sequence[Checker]:
        self.history = LogHistory(self.machines)
        self._subscriptions = SubscriptionsKept(self.ledger, self.agenda)
        return (
            ReplicasAgree(self.ledger, self.history, self._replica_settings),
            IdentityKept(self.ledger),
            self._subscriptions,
            TimeGoesOn(self.ledger, self.agenda, self.machines),
        )

    def _make_machines(self) -> None:
        random = self.random
        weather = Weather(latency_ms=random.choice(((0, 2), (1, 8))))
        own_random = Random(random.getrandbits(64))
        self.network = (
            Trunks(self.agenda, own_random, weather)
            if self._by_bytes
            else Network(self.agenda, own_random, weather, patience_ms=3 * self._replica_settings.lease_ms)
        )
        names = [f"n{number}" for number in range(1, self._nodes + 1)]
        # Some begin outside, and may be made members later.
        first = names[: random.randint(self._nodes - 1, self._nodes)] if self._nodes > 3 else names
        cluster = ClusterSettings(
            primaries=tuple(member(name) for name in first),
            founding=self._founded,
            replica=self._replica_settings,
            key=KEY if self._by_bytes else b"",
            access="proxy" if self.proxied else "redirect",
            root_wait_ms=ROOT_WAIT_MS,
        )
        for name in names:
            own = msgspec.structs.replace(
                cluster, founding=self._founded and name in first, advertise=member(name).address
            )
            settings = msgspec.structs.replace(SETTINGS, cluster=own)
            drift_permille = random.randint(-DRIFT_PERMILLE, DRIFT_PERMILLE)
            self.machines.append(self._place(name, settings, drift_permille))
        for number in range(1, self._secondary_count + 1):
            name = f"s{number}"
            own = msgspec.structs.replace(
                cluster,
                primaries=(),
                founding=False,
                observer=True,
                join=tuple(member(primary).address for primary in first),
                advertise=member(name).address,
            )
            settings = msgspec.structs.replace(SETTINGS, cluster=own)
            self.scene.secondaries.append(self._place(name, settings, random.randint(-DRIFT_PERMILLE, DRIFT_PERMILLE)))

    def _place(self, name: str, settings: NodeSettings, drift_permille: int) -> Machine:
        machine = self._make_machine(name, settings, self.network, drift_permille)
        machine.wall.shift_ms = self.random.choice(SKEWS_MS)
        self.network.stations[name] = machine
        return machine

    def _draw_kinds(self) -> list[QueueKind]:
        return draw_kinds(self.random, REPLICATED_KINDS)

    def _make_clients(self) -> list[Client]:
        clients = super()._make_clients()
        if self.proxied:
            count = self.random.randint(1, 2)
            clients += [Announcer(self.scene, f"announcer-{n}", self.random.randint(10, 60)) for n in range(count)]
            count = self.random.randint(2, 5)
            clients += [Subscriber(self.scene, f"subscriber-{n}", self._subscriptions) for n in range(count)]
        if self._settles:
            clients.append(Publisher(self.scene, "publisher-of-acked", [PLAIN], "", self.random.randint(200, 400)))
            clients += [Consumer(self.scene, f"acker-{n}", PLAIN) for n in range(self.random.randint(1, 3))]
        return clients

    def _make_readers(self) -> list[Client]:
        clients = super()._make_readers()
        if self._settles:
            clients += [Consumer(self.scene, f"acker-of-leased-{n}", LEASED) for n in range(2)]
        return clients

    def _make_faults(self, random: Random) -> Faults:
        faults = ClusterFaults(self.scene, self.clients, random, self.network)
        faults.on_promoted = self._promoted
        if self._settles:
            faults.only_roots_die()
        if self.streams and "promote" in faults.kinds:
            # What was read of a stream may be lost by force, and others take its place.
            faults.kinds = [kind for kind in faults.kinds if kind != "promote"] or ["kill"]
        self._subscriptions.know_faults(faults.kinds)
        settings = self._replica_settings
        always_two = self._nodes > 2 or (settings.min_copies > 1 and "members" not in faults.kinds)
        self._confirmed_kept.in_memories = always_two and not settings.last_man_standing
        return faults

    @property
    def machine(self) -> Machine:
        # Who has handed over lingers for a while, and no longer hears what the others do.
        serving = [machine for machine in self.machines if machine.serving and machine.node is not None]
        in_office = [machine for machine in serving if machine.node and machine.node.peers.lingering is None]
        return (in_office or serving or self.machines)[0]

    def _ended(self, machine: Machine, fault: StoreFault | None) -> None:
        (self._secondaries if machine.secondary else self.faults).ended(machine, fault)

    def _promoted(self, machine: Machine) -> None:
        self.history.promoted(machine)
        self.ledger.begin_epoch()
        self._configuration.begin_epoch()

    # The course of it.

    def _begin(self) -> None:
        settings = self._replica_settings
        links = "dialed" if self._by_bytes else "given"
        self.trace.say(
            "world",
            f"{self._nodes} brokers, lease {settings.lease_ms} ms, copies {settings.min_copies}, links {links}"
            f"{'' if self._founded else ', strangers'}"
            f"{', any broker serves' if self.proxied else ''}"
            f"{f', secondaries {self._secondary_count}' if self._secondary_count else ''}",
        )
        for machine in self.machines:
            self.agenda.after(self.random.randint(0, 30), machine.start)
        self.agenda.at(20, self.network.begin)
        self._secondaries.begin()

    def _heal(self) -> None:
        self._secondaries.end()
        super()._heal()
        subscribers = [client for client in self.clients if isinstance(client, Subscriber)]
        self._await("those who listen", lambda: all(one.listens for one in subscribers))
        for one in subscribers:
            one.begin_anew()
        for client in self.clients:
            if isinstance(client, Announcer):
                client.end_wish()
        self._await("the last words", lambda: all(client.content for client in self.clients))

    def _close(self) -> None:
        self._secondaries.closing = True
        self._shut_down(self.scene.secondaries)
        super()._close()

    def _lose_power(self) -> None:
        for machine in self.machines if self.random.random() < 0.3 else [self.machine]:
            if machine.up:
                machine.crash(Loss.SOME)

    def _compare(self) -> None:
        machines = [*self.machines, *self.scene.secondaries]
        self._await("equal brokers", lambda: brokers_equal.are_level(machines, self.machine))
        brokers_equal.check(machines, self.machine)

"""The world of one seed with several brokers.

faults    clients work, machines die and restart, the network fails, operators act
healing   the faults have ended: there is a root, and every client receives its answers within a bounded time
counting  the clients leave, all brokers hold the same state, the queues are emptied, the checkers inspect the whole
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec

from pandomq.journal.faults import StoreFault
from pandomq.node.broker_state import BrokerState
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.settings import NodeSettings
from pandomq.replica.members import quorum
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.campaigns.reduction import Reduction
from pandomq.sim.checkers import brokers_equal
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.consumer import ConsumingClient
from pandomq.sim.clients.publisher import Publisher
from pandomq.sim.clients.subscriber import Announcer, Subscriber
from pandomq.sim.cluster.checkers.identity import IdentityKept
from pandomq.sim.cluster.checkers.replicas import ReplicasAgree
from pandomq.sim.cluster.checkers.subscriptions import SubscriptionsKept
from pandomq.sim.cluster.checkers.time import TimeGoesOn
from pandomq.sim.cluster.faults import ClusterFaults, member
from pandomq.sim.cluster.secondaries import Secondaries
from pandomq.sim.disks.files import Loss
from pandomq.sim.faults import WorldFaults
from pandomq.sim.machine import Machine
from pandomq.sim.network.byte_network import ByteNetwork, Weather
from pandomq.sim.queues import LEASED, PLAIN, REPLICATED_KINDS, QueueKind, draw_kinds
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.world import SETTINGS, World

DRIFT_PERMILLE: Final = 45
"""Two clocks differ by at most twice as much, which a lease allows for."""

SKEWS_MS: Final = (0, 0, -600_000, 5_000, 600_000)
"""The errors of wall clocks when the world begins; they are smaller than the time to live of messages in patient
queues."""
STRANGERS_CHANCE: Final = 0.5
"""The chance that brokers begin with stores that belong to no cluster yet, and found one."""
PROXY_CHANCE: Final = 0.5
"""The chance that all brokers serve clients, as fronts if they are not the root."""
LONG_CHANCE: Final = 0.08
"""The chance that paths are cut for longer than links may be silent."""
LONG_MS: Final = (6_000, 8_000)
SECONDARIES: Final = (0, 0, 1, 2)
"""The possible numbers of secondaries, in worlds in which any broker serves."""
ACKS_SEEDS: Final = 4
"""One of so many worlds in which any broker serves is about acks and confirms on one channel while roots change."""
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
    """Whether any broker of this world serves, as a front if it is not the root."""
    return Random(f"proxy {seed} {nodes}").random() < PROXY_CHANCE


def settles_through_fronts(seed: int, nodes: int) -> bool:
    """Whether this world is about acks of clients of brokers that are not the root."""
    return seed % ACKS_SEEDS == 0 and serves_anywhere(seed, nodes)


class ClusterWorld(World):
    lengths_ms: tuple[int, ...] = (400, 900, 1_700)

    def __init__(
        self,
        seed: int,
        nodes: int,
        show: Callable[[str], None] | None = None,
        *,
        traced: bool = False,
        reduction: Reduction | None = None,
    ) -> None:
        self.nodes = nodes
        random = Random(f"cluster {seed} {nodes}")
        self._random = random
        self._replica_settings = _draw_settings(random)
        self.founded = random.random() >= STRANGERS_CHANCE
        own = Random(f"proxy {seed} {nodes}")
        self.proxied = own.random() < PROXY_CHANCE
        self._secondary_count = 0
        if self.proxied:
            # All fronts need some time until they have the root's configuration.
            self.lengths_ms = (900, 1_500, 2_500)
            self._secondary_count = own.choice(SECONDARIES)
        self._settles = settles_through_fronts(seed, nodes)
        if self._settles:
            self.lengths_ms = (2_000, 3_000, 4_000)
        self._is_long = own.random() < LONG_CHANCE and not self._settles
        if self._is_long:
            self.lengths_ms = LONG_MS
        super().__init__(seed, show, traced=traced, reduction=reduction)
        self._secondaries = Secondaries(self.scene, own, self.faults.strikes)
        self._secondaries.on_paused = self.subscriptions.paused
        self.observer.on_ended = self._ended
        self.scene.proxied = self._order.proxied = self._kinds_kept.proxied = self.proxied
        self._redelivered.proxied = self.proxied

    def _first_random(self) -> Random:
        return self._random

    def _more_checkers(self) -> Sequence[Checker]:
        self.history = LogHistory(self.machines)
        self.subscriptions = SubscriptionsKept(self.ledger, self.agenda)
        self._time_goes_on = TimeGoesOn(self.ledger, self.agenda, self.machines)
        return (
            ReplicasAgree(self.ledger, self.history, self._replica_settings),
            IdentityKept(self.ledger),
            self.subscriptions,
            self._time_goes_on,
        )

    def _make_machines(self) -> None:
        random = self.random
        weather = Weather(latency_ms=random.choice(((0, 2), (1, 8))))
        self.network = ByteNetwork(self.agenda, Random(random.getrandbits(64)), weather)
        names = [f"n{number}" for number in range(1, self.nodes + 1)]
        # Some brokers begin outside of the cluster, and may become members later.
        first = names[: random.randint(self.nodes - 1, self.nodes)] if self.nodes > 3 else names
        first = [name for name in first if self.scene.reduction.keeps_machine(name)]
        cluster = ClusterSettings(
            primaries=tuple(member(name) for name in first),
            founding=self.founded,
            replica=self._replica_settings,
            key=KEY,
            access="proxy" if self.proxied else "redirect",
            root_wait_ms=ROOT_WAIT_MS,
        )
        for name in names:
            own = msgspec.structs.replace(
                cluster, founding=self.founded and name in first, advertise=member(name).address
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
        self.network.machines[name] = machine
        return machine

    def _leave_out_machines(self) -> None:
        super()._leave_out_machines()
        here = {machine.name for machine in (*self.machines, *self.scene.secondaries)}
        for name in [name for name in self.network.machines if name not in here]:
            del self.network.machines[name]

    def _draw_kinds(self) -> list[QueueKind]:
        return draw_kinds(self.random, REPLICATED_KINDS)

    def _make_clients(self) -> list[SimulatedClient]:
        clients = super()._make_clients()
        if self.proxied:
            count = self.random.randint(1, 2)
            clients += [Announcer(self.scene, f"announcer-{n}", self.random.randint(10, 60)) for n in range(count)]
            count = self.random.randint(2, 5)
            clients += [Subscriber(self.scene, f"subscriber-{n}", self.subscriptions) for n in range(count)]
        if self._settles:
            clients.append(Publisher(self.scene, "publisher-of-acked", [PLAIN], "", self.random.randint(200, 400)))
            clients += [ConsumingClient(self.scene, f"acker-{n}", PLAIN) for n in range(self.random.randint(1, 3))]
        return clients

    def _make_readers(self) -> list[SimulatedClient]:
        clients = super()._make_readers()
        if self._settles:
            clients += [ConsumingClient(self.scene, f"acker-of-leased-{n}", LEASED) for n in range(2)]
        return clients

    def _make_faults(self, random: Random) -> WorldFaults:
        faults = ClusterFaults(self.scene, self.clients, random, self.network)
        faults.on_promoted = self._promoted
        if self._settles:
            faults.only_roots_die()
        if self._is_long:
            faults.cut_for_long()
        if self.streams and "promote" in faults.kinds:
            # After a forced promotion, messages that were read from a stream may be lost and replaced by others.
            faults.kinds = [kind for kind in faults.kinds if kind != "promote"] or ["kill"]
        self.faults_changed(faults)
        return faults

    def faults_changed(self, faults: ClusterFaults) -> None:
        """The promises to subscribers, and those for confirmed messages, depend on the kinds of faults."""
        self.subscriptions.know_faults(faults.kinds, calm=faults.network_is_calm)
        # Changes of members leave at least two primaries, if there are more than two brokers.
        fewest = len(self.machines) if "members" not in faults.kinds else min(2, len(self.machines) - 1)
        self._confirmed_kept.in_memories = self._are_two_asked(fewest)

    def _are_two_asked(self, voters: int) -> bool:
        """Whether, with so many primaries, a message is in two memories before it is confirmed."""
        settings = self._replica_settings
        return not settings.last_man_standing and quorum.commit_need(voters, settings.min_copies) > 1

    @property
    def machine(self) -> Machine:
        # After a hand-over the old root lingers for a while, and no longer receives changes from the others.
        serving = [machine for machine in self.machines if machine.serving and machine.node is not None]
        roots = [one for one in serving if one.node and one.node.peers.life.state is not BrokerState.HANDED_OVER]
        return (roots or serving or self.machines)[0]

    def _ended(self, machine: Machine, fault: StoreFault | None) -> None:
        (self._secondaries if machine.secondary else self.faults).ended(machine, fault)

    def _promoted(self, machine: Machine) -> None:
        assert machine.replica is not None and machine.replica.membership is not None
        self.history.promoted(machine, machine.replica.view().epoch_id)
        self.ledger.begin_epoch()
        # The new epoch has fewer primaries; if there is only one, it confirms messages that only its own memory has.
        self._confirmed_kept.in_memories &= self._are_two_asked(len(machine.replica.membership.names))
        self._configuration.begin_epoch()
        self._time_goes_on.begin_epoch()

    # The course of the world.

    def _begin(self) -> None:
        settings = self._replica_settings
        self.trace.say(
            "world",
            f"{self.nodes} brokers, lease {settings.lease_ms} ms, copies {settings.min_copies}"
            f"{'' if self.founded else ', strangers'}"
            f"{', any broker serves' if self.proxied else ''}"
            f"{f', secondaries {self._secondary_count}' if self._secondary_count else ''}",
        )
        for machine in self.machines:
            self.agenda.after(self.random.randint(0, 30), machine.start)
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
        brokers_equal.check(machines, self.machine, alone_since=self.ledger.alone_since)
        super()._compare()

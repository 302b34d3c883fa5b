"""Several brokers on simulated machines, with a network that a scenario cuts and repairs, and scripted clients.

Time passes only while a client waits. The checkers of all worlds run after each step here, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, cast

import msgspec

from pandomq.broker.broker import Broker
from pandomq.journal.faults import StoreFault
from pandomq.journal.limits import JournalSettings
from pandomq.limits import KIB
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.cluster_settings import Access, ClusterSettings
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from pandomq.node.views.records import PeerLinkView
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.cluster.checkers.identity import IdentityKept
from pandomq.sim.cluster.checkers.replicas import ReplicasAgree
from pandomq.sim.cluster.faults import member
from pandomq.sim.cluster.network_faults import both_ways
from pandomq.sim.cluster.world import KEY
from pandomq.sim.disks.disk import DiskPace, SimDisk
from pandomq.sim.disks.files import Loss
from pandomq.sim.ledger import WorldLedger
from pandomq.sim.machine import Machine
from pandomq.sim.network.byte_network import ByteNetwork, NetworkFault, Weather
from pandomq.sim.network.cable import Cable
from pandomq.sim.network.frames import Heard
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.trace import WorldTrace
from tests.support.client import Address, ClosedByBrokerError, Connection
from tests.support.frames import EndOfStreamError

NOWHERE = Address("in this process", 0)
PATIENCE_MS = 10_000
SMALL = JournalSettings(segment_bytes=64 * KIB, snapshot_log_bytes=128 * KIB, disk_free_bytes_min=0, reserve_bytes=0)


class Socket:
    """A client's end of a connection, without delay."""

    def __init__(self, stage: Stage, machine: Machine) -> None:
        self.stage = stage
        self.machine = machine
        self.written = bytearray()
        self.unread: list[bytes] = []
        self.reading_paused = False
        self.open = True
        self.link: ClientLink | None = None
        machine.connect(self, next(stage.ports))

    # The test's side.

    def sendall(self, data: bytes | bytearray) -> None:
        """Bytes to a paused machine wait there."""
        sent = bytes(data)
        life = self.machine.life
        self.machine.when_running(lambda: self._arrive(sent) if self.machine.life == life else None)

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def recv(self, count: int) -> bytes:
        self.stage.until(lambda: bool(self.written) or not self.open, "an answer")
        piece = bytes(self.written[:count])
        del self.written[:count]
        return piece

    def settimeout(self, _seconds: float) -> None:
        """Does nothing: time passes here only while a client waits."""

    def _arrive(self, data: bytes) -> None:
        if self.reading_paused:
            self.unread.append(data)
        elif self.open:
            self.machine.received(self, data)

    # The machine's side.

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        if self.open:
            self.open = False
            self.machine.disconnected(self)

    abort = close

    def crashed(self, *, heard: bool) -> None:
        self.open = False

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False
        unread, self.unread = self.unread, []
        for data in unread:
            self._arrive(data)


class Stage:
    def __init__(
        self,
        count: int = 3,
        *,
        seed: int = 1,
        lease_ms: int = 400,
        min_copies: int = 2,
        pace: DiskPace | None = None,
        drifts_permille: Iterable[int] = (),
        start: bool = True,
        access: Access = "redirect",
    ) -> None:
        random = Random(seed)
        self.agenda = Agenda()
        self.trace = WorldTrace(self.agenda)
        self.ports = itertools.count(10_000)
        self.network = ByteNetwork(self.agenda, Random(random.getrandbits(64)), Weather(latency_ms=(1, 1)))
        names = [f"n{number}" for number in range(1, count + 1)]
        replica = ReplicaSettings(lease_ms=lease_ms, disk_stall_ms=lease_ms, min_copies=min_copies)
        cluster = ClusterSettings(
            primaries=tuple(map(member, names)), founding=True, replica=replica, key=KEY, access=access
        )
        self.machines: dict[str, Machine] = {}
        held: list[Machine] = []
        ledger = WorldLedger()
        self.history = LogHistory(held)
        self._checkers = (ReplicasAgree(ledger, self.history, replica), IdentityKept(ledger))
        lives = itertools.count(1)
        drifts = itertools.chain(drifts_permille, itertools.repeat(0))
        for name in names:
            disk = SimDisk(Random(random.getrandbits(64)), pace=pace or DiskPace(joined_chance=0.0))
            own = msgspec.structs.replace(cluster, advertise=member(name).address)
            settings = NodeSettings(name=name, cluster=own, password_log_cost=1)
            machine = Machine(
                name,
                self.agenda,
                self.trace,
                Random(random.getrandbits(64)),
                disk,
                settings,
                SMALL,
                self,
                lives,
                self.network,
                drift_permille=next(drifts),
            )
            self.machines[name] = self.network.machines[name] = machine
            held.append(machine)
        if start:
            self.start(*names)

    # Events of machines.

    def emitted(self, cable: Cable, methods: list[Heard]) -> None:
        """Does nothing: only the client reads them."""

    def stepped(self, machine: Machine) -> None:
        for checker in self._checkers:
            checker.stepped(machine)

    def opened(self, machine: Machine) -> None: ...

    def injected(self) -> None: ...

    def left(self, machine: Machine) -> None: ...

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        assert fault is None, fault

    # Time.

    def run(self, elapsed_ms: int) -> None:
        self.agenda.run(self.agenda.now_ms + elapsed_ms)

    def until(self, over: Callable[[], bool], what: str = "that", limit_ms: int = PATIENCE_MS) -> None:
        if not self.agenda.run(self.agenda.now_ms + limit_ms, over):
            raise AssertionError(f"no {what} within {limit_ms} ms:\n" + "\n".join(self.trace.story))

    # Machines.

    def kill(self, name: str, loss: Loss = Loss.NONE) -> None:
        self.machines[name].crash(loss)

    def start(self, *names: str) -> None:
        for name in names:
            self.machines[name].start()

    def node(self, name: str) -> Node:
        node = self.machines[name].node
        assert node is not None
        return node

    def broker(self, name: str) -> Broker:
        return self.node(name).broker

    def links(self, name: str) -> tuple[PeerLinkView, ...]:
        links = self.node(name).peer_links
        assert links is not None
        return links.view()

    def role(self, name: str) -> Role:
        return self.node(name).peers.replica.role

    @property
    def roots(self) -> list[str]:
        """Returns the brokers that serve, or assume that they do."""
        return [name for name, machine in self.machines.items() if machine.serving]

    def elect(self, besides: str = "") -> str:
        """Waits for a root other than `besides`; returns its name."""
        self.until(lambda: any(name != besides for name in self.roots), "root")
        return next(name for name in self.roots if name != besides)

    def others(self, *names: str) -> list[str]:
        return [name for name in self.machines if name not in names]

    def level(self, *names: str) -> None:
        """Waits until all of these have applied what the first one has."""
        last_index = self.machines[names[0]].journal.last_index
        self.until(
            lambda: all(
                machine.replica is not None and machine.replica.commit_index >= last_index
                for machine in (self.machines[name] for name in names)
            ),
            "equal logs",
        )
        self.run(5)

    def promote(self, name: str, *dead: str) -> tuple[bool, str]:
        """Promotes by force; returns whether it was done, and the answer."""
        said: list[tuple[bool, str]] = []
        epoch_id = f"epoch of {name} without {' '.join(dead)}"
        self.machines[name].ask(
            lambda peers: peers.promote(dead, epoch_id, lambda done, text: said.append((done, text)))
        )
        self.until(lambda: bool(said), "end of the promotion")
        return said[0]

    # The network.

    def isolate(self, *names: str) -> None:
        """Cuts all paths to the others, without notice to any broker."""
        self.cut(*((one, other) for one in names for other in self.others(*names)))

    def cut(self, *pairs: tuple[str, str]) -> None:
        """Cuts in both directions."""
        self.network.impose(NetworkFault(cut=frozenset(path for pair in pairs for path in both_ways(pair))))

    def cut_one_way(self, sender: str, receiver: str) -> None:
        self.network.impose(NetworkFault(cut=frozenset(((sender, receiver),))))

    def heal(self) -> None:
        self.network.heal()

    # Clients.

    def client(self, name: str) -> Connection:
        return Connection.opened(NOWHERE, cast(Any, Socket(self, self.machines[name])))

    def publisher(self, name: str, queue: str = "q", **arguments: Any) -> Any:
        """Returns a channel with confirms, and declares a durable queue."""
        channel = self.client(name).channel()
        channel.rpc("queue.declare", queue=queue, durable=True, arguments=arguments)
        channel.rpc("confirm.select")
        return channel


__all__ = ["ClosedByBrokerError", "EndOfStreamError", "Loss", "Role", "Stage"]

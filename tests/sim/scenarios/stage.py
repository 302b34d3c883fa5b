"""Several brokers on simulated machines, with a network that a scenario cuts and mends, and clients that it scripts.

Time passes only while somebody waits. What holds in every world is checked after each step here, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, cast

from pandomq.broker.broker import Broker
from pandomq.journal.faults import StoreFault
from pandomq.journal.limits import JournalSettings
from pandomq.limits import KIB
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.link import Link
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.cable import Cable
from pandomq.sim.cluster.checkers.identity import IdentityKept
from pandomq.sim.cluster.checkers.replicas import ReplicasAgree
from pandomq.sim.cluster.faults import member
from pandomq.sim.disk import DiskPace, SimDisk
from pandomq.sim.files import Loss
from pandomq.sim.frames import Heard
from pandomq.sim.ledger import Ledger
from pandomq.sim.machine import Machine
from pandomq.sim.network import Network, Weather
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.trace import Trace
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
        self.link: Link | None = None
        machine.connect(cast(Cable, self), next(stage.ports))

    # The test's side.

    def sendall(self, data: bytes | bytearray) -> None:
        """What is sent to a machine that does nothing waits there."""
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
        """Time passes here only while somebody waits."""

    def _arrive(self, data: bytes) -> None:
        if self.reading_paused:
            self.unread.append(data)
        elif self.open:
            self.machine.received(cast(Cable, self), data)

    # The machine's side.

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        if self.open:
            self.open = False
            self.machine.lost(cast(Cable, self))

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
    ) -> None:
        random = Random(seed)
        self.agenda = Agenda()
        self.trace = Trace(self.agenda)
        self.ports = itertools.count(10_000)
        self.network = Network(self.agenda, Random(random.getrandbits(64)), Weather(latency_ms=(1, 1)), lease_ms)
        names = [f"n{number}" for number in range(1, count + 1)]
        replica = ReplicaSettings(lease_ms=lease_ms, disk_stall_ms=lease_ms, min_copies=min_copies)
        cluster = ClusterSettings(primaries=tuple(map(member, names)), founding=True, replica=replica)
        self.machines: dict[str, Machine] = {}
        held: list[Machine] = []
        ledger = Ledger()
        self.history = LogHistory(held)
        self._checkers = (ReplicasAgree(ledger, self.history, replica), IdentityKept(ledger))
        lives = itertools.count(1)
        drifts = itertools.chain(drifts_permille, itertools.repeat(0))
        for name in names:
            disk = SimDisk(Random(random.getrandbits(64)), pace=pace or DiskPace(joined_chance=0.0))
            settings = NodeSettings(name=name, cluster=cluster, password_log_cost=1)
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
            self.machines[name] = self.network.stations[name] = machine
            held.append(machine)
        if start:
            self.start(*names)
        self.network.begin()

    # What machines report.

    def emitted(self, cable: Cable, methods: list[Heard]) -> None:
        """Nobody reads it here but the client."""

    def stepped(self, machine: Machine) -> None:
        for checker in self._checkers:
            checker.stepped(machine)

    def opened(self, machine: Machine) -> None: ...

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

    def role(self, name: str) -> Role:
        return self.node(name).peers.replica.role

    @property
    def roots(self) -> list[str]:
        """Those that serve, or believe they do."""
        return [name for name, machine in self.machines.items() if machine.serving]

    def elect(self, besides: str = "") -> str:
        """The name of the one that serves, which is not this one."""
        self.until(lambda: any(name != besides for name in self.roots), "root")
        return next(name for name in self.roots if name != besides)

    def others(self, *names: str) -> list[str]:
        return [name for name in self.machines if name not in names]

    def level(self, *names: str) -> None:
        """Until all of these have applied what the first has."""
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
        """By force; whether it was done, and what was said."""
        said: list[tuple[bool, str]] = []
        epoch_id = f"epoch of {name} without {' '.join(dead)}"
        self.machines[name].ask(
            lambda peers: peers.promote(dead, epoch_id, lambda done, text: said.append((done, text)))
        )
        self.until(lambda: bool(said), "end of the promotion")
        return said[0]

    # The network.

    def isolate(self, *names: str) -> None:
        """From all others; nobody is told."""
        self.cut(*((one, other) for one in names for other in self.others(*names)))

    def cut(self, *pairs: tuple[str, str]) -> None:
        """In both directions."""
        self.network.block([path for one, other in pairs for path in ((one, other), (other, one))])

    def cut_one_way(self, sender: str, receiver: str) -> None:
        self.network.block([(sender, receiver)])

    def heal(self) -> None:
        self.network.heal()

    # Clients.

    def client(self, name: str) -> Connection:
        return Connection.opened(NOWHERE, cast(Any, Socket(self, self.machines[name])))

    def publisher(self, name: str, queue: str = "q", **arguments: Any) -> Any:
        """A channel with confirms, and a durable queue."""
        channel = self.client(name).channel()
        channel.rpc("queue.declare", queue=queue, durable=True, arguments=arguments)
        channel.rpc("confirm.select")
        return channel


__all__ = ["ClosedByBrokerError", "EndOfStreamError", "Loss", "Role", "Stage"]

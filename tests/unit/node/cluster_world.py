"""A few nodes with simulated disks that dial each other over pipes which a test clogs: one clock, no sockets.

It stands where the runtime stands. Every millisecond each node that lives steps, gets what its disk did, and receives
what its peers wrote a millisecond ago. Clients are the tests' own, which speak AMQP byte by byte.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import assert_never

import msgspec

from pandomq.cluster.dialed_connection import Dialed
from pandomq.ids import ClusterId, NodeName
from pandomq.journal.journal import Journal
from pandomq.journal.limits import Fsync
from pandomq.limits import READ_CHUNK_BYTES
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.node import Node
from pandomq.node.output import Abort, Close, Dial, Output, PauseReading, ResumeReading, VerifyPassword
from pandomq.node.settings import NodeSettings
from pandomq.replica.members.membership import Member
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss
from tests.support.client import Address, Connection
from tests.support.frames import EndOfStreamError
from tests.unit.node.link_world import CLUSTER, KEY, SMALL, End, Pipes, turn

NOWHERE = Address("in this process", 0)


class Socket:
    """A client's end: what it reads and sends, and how long it waits."""

    def __init__(self, world: ClusterWorld, machine: Machine, number: int) -> None:
        self.world = world
        self.machine = machine
        self.written = bytearray()
        self.unread: list[bytes] = []
        self.reading_paused = False
        self.open = True
        assert machine.node is not None
        self.link: ClientLink = machine.node.accept(self, ("127.0.0.1", number), world.now_ms)

    def sendall(self, data: bytes | bytearray) -> None:
        self.machine.receive(self, bytes(data))
        self.world.run(self.world.sending_ms)

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def recv(self, count: int) -> bytes:
        for _ in range(3_000):
            if self.written or not self.open:
                break
            self.world.run(1)
        else:
            raise TimeoutError
        piece = bytes(self.written[:count])
        del self.written[:count]
        return piece

    def settimeout(self, _seconds: float) -> None:
        """Time passes here only while somebody waits."""

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.machine.hang_up(self)

    abort = close


class Machine:
    """A disk, and now and then a process."""

    def __init__(self, world: ClusterWorld, name: str, random: Random) -> None:
        self.world = world
        self.name = name
        self.random = random
        self.disk = SimDisk(random)
        self.node: Node | None = None
        self.lives = 0
        self.boot_id = "first"
        self.sockets: dict[Socket, None] = {}
        self.restarts: list[str] = []
        self._buffer = bytearray(READ_CHUNK_BYTES)

    def start(self, settings: ClusterSettings) -> None:
        """A broker without primaries asks all others for theirs."""
        others = tuple(address_of(name) for name in self.world.machines if name != self.name)
        join = () if settings.primaries else others
        settings = msgspec.structs.replace(settings, key=KEY, advertise=address_of(self.name), join=join)
        self._settings = NodeSettings(
            name=self.name, cluster=settings, paging_bytes=self.world.paging_bytes, password_log_cost=4
        )
        self._begin()

    def _begin(self) -> None:
        self.lives += 1
        journal = Journal(
            SMALL.of_secondary()
            if self._settings.cluster.observer
            else msgspec.structs.replace(SMALL, fsync=self.world.fsync),
            node_name=NodeName(self.name),
            new_cluster_id=CLUSTER if self._settings.cluster.founding else ClusterId(""),
            new_store_id=f"{self.random.getrandbits(64):x}",
            boot_id=self.boot_id,
            has_peers=True,
        )
        self.node = Node(self._settings, Random(self.random.getrandbits(64)), self.world.now_ms, journal)
        cluster = msgspec.structs.replace(self._settings.cluster, bootstrap=False)
        self._settings = msgspec.structs.replace(self._settings, cluster=cluster)

    def kill(self, loss: Loss = Loss.NONE) -> None:
        self.node = None
        self.disk.crash(loss)
        for socket in list(self.sockets):
            socket.open = False
        self.sockets.clear()

    def wipe(self) -> None:
        assert self.node is None
        self.disk = SimDisk(self.random)

    def turn(self) -> None:
        if self.node is not None:
            turn(self.node, self.disk, self.world.now_ms, self._carry_out)

    def _carry_out(self, output: Output) -> bool:
        node = self.node
        assert node is not None
        self.disk.submit(list(output.disk), self.world.now_ms)
        for link, data in output.writes:
            link.socket.write(data)
        again = output.more
        for control in output.controls:
            match control:
                case Close(link):
                    link.socket.close()
                case Abort(link):
                    link.socket.abort()
                case Dial(dialed):
                    self.world.dial(self, dialed)
                case PauseReading(held):
                    held.socket.reading_paused = True
                case ResumeReading(held):
                    held.socket.reading_paused = False
                    unread, held.socket.unread = held.socket.unread, []
                    for data in unread:
                        self.receive(held.socket, data)
                    again = again or bool(unread)
                case VerifyPassword(attempt, question):
                    node.verified(attempt, question, fits=question.fits(), now_ms=self.world.now_ms)
                    again = True
                case _:
                    assert_never(control)
        if output.restart is not None:
            self.restarts.append(output.restart)
            self.disk.crash(Loss.NONE)
            self._begin()
        return again and output.restart is None

    def receive(self, socket: Socket | End, data: bytes) -> None:
        if socket.reading_paused:
            socket.unread.append(data)
        elif self.node is not None and socket.open:
            for start in range(0, len(data), len(self._buffer)):
                piece = data[start : start + len(self._buffer)]
                self._buffer[: len(piece)] = piece
                view = memoryview(self._buffer)[: len(piece)]
                if socket.link is not None:
                    self.node.receive(socket.link, view, self.world.now_ms)

    def hang_up(self, socket: Socket) -> None:
        if socket.open:
            socket.open = False
            self.sockets.pop(socket, None)
            if self.node is not None:
                self.node.disconnected(socket.link, self.world.now_ms)


class ClusterWorld(Pipes):
    def __init__(
        self,
        count: int = 3,
        seed: int = 1,
        paging_bytes: int = 0,
        replica: ReplicaSettings | None = None,
        *,
        founding: bool = True,
        fsync: Fsync = Fsync.ALWAYS,
    ) -> None:
        """Unless it is `founding`, the brokers have to find each other before there is a cluster; none is started."""
        super().__init__()
        random = Random(seed)
        self.paging_bytes = paging_bytes
        self.sending_ms = 2
        """The time that passes while a client sends."""
        self.fsync = fsync
        self.machines = {
            name: Machine(self, name, Random(random.getrandbits(64))) for name in (f"n{i + 1}" for i in range(count))
        }
        self._ports = itertools.count(10_000)
        members = tuple(member(name) for name in self.machines)
        self.settings = ClusterSettings(primaries=members, founding=founding, replica=replica or ReplicaSettings())
        for machine in self.machines.values() if founding else ():
            machine.start(self.settings)

    # Time.

    def run(self, elapsed_ms: int) -> None:
        for _ in range(elapsed_ms):
            self.now_ms += 1
            self.move()
            for machine in self.machines.values():
                machine.turn()

    def until(self, fulfilled: Callable[[], bool], limit_ms: int = 20_000) -> None:
        for _ in range(limit_ms):
            if fulfilled():
                return
            self.run(1)
        raise AssertionError("it did not come to that")

    # Links.

    def dial(self, machine: Machine, dialed: Dialed) -> None:
        self.reach(machine, dialed, self.machines.get(dialed.address.split(".")[0]))

    def kill(self, name: str, loss: Loss = Loss.NONE) -> None:
        self.machines[name].kill(loss)
        # With its machine goes what was not on the wire yet.
        self.hang_up_all(self.machines[name], with_machine=loss is not Loss.NONE)

    def found(self, founding: bool) -> None:
        """Whether brokers that start from now on may begin a cluster."""
        self.settings = msgspec.structs.replace(self.settings, founding=founding)

    def start(self, name: str, *, bootstrap: bool = False) -> None:
        self.machines[name].start(msgspec.structs.replace(self.settings, bootstrap=bootstrap))

    def isolate(self, name: str) -> None:
        """Nothing gets through, and nobody is told."""
        self.clogged |= {frozenset((name, peer)) for peer in self.machines if peer != name}

    def mend(self) -> None:
        self.clogged.clear()

    # Roles.

    @property
    def root(self) -> str | None:
        """The one that serves."""
        names = [name for name, machine in self.machines.items() if machine.node is not None and machine.node.ready]
        return names[0] if len(names) == 1 else None

    def node(self, name: str) -> Node:
        node = self.machines[name].node
        assert node is not None
        return node

    def role(self, name: str) -> Role:
        return self.node(name).peers.replica.role

    def elect(self) -> str:
        self.until(lambda: self.root is not None)
        assert self.root is not None
        return self.root

    def socket(self, name: str) -> Socket:
        machine = self.machines[name]
        socket = Socket(self, machine, next(self._ports))
        machine.sockets[socket] = None
        return socket

    def client(self, name: str) -> Connection:
        return Connection.opened(NOWHERE, self.socket(name))


def address_of(name: str) -> str:
    return f"{name}.example:5672"


def member(name: str) -> Member:
    return Member(NodeName(name), address_of(name))


__all__ = ["CLUSTER", "NOWHERE", "ClusterWorld", "Connection", "EndOfStreamError", "Loss"]

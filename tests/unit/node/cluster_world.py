"""A few nodes with simulated disks, and links between them that a test cuts and mends: one clock, no sockets.

It stands where the runtime stands. Every millisecond each node that lives steps, gets what its disk did, and hears what
its peers sent a millisecond ago. Clients are the tests' own, which speak AMQP byte by byte.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import assert_never

import msgspec

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.journal import Journal
from pandomq.journal.limits import Fsync, JournalSettings
from pandomq.limits import READ_CHUNK_BYTES
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.link import Link
from pandomq.node.node import Node
from pandomq.node.output import Abort, Close, Output, PauseReading, ResumeReading, VerifyPassword
from pandomq.node.settings import NodeSettings
from pandomq.replica.membership import Member
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.disk import SimDisk
from pandomq.sim.files import Loss
from tests.support.client import Address, Connection
from tests.support.frames import EndOfStreamError

CLUSTER = ClusterId("00000000-0000-4000-8000-000000000003")
SMALL = JournalSettings(segment_bytes=64 * 1024, snapshot_log_bytes=128 * 1024, disk_free_bytes_min=0, reserve_bytes=0)
NOWHERE = Address("in this process", 0)
START_MS = 1_700_000_000_000


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
        self.link: Link = machine.node.accept(self, ("127.0.0.1", number), world.now_ms)

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

    def close(self) -> None:
        self.machine.hang_up(self)


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
        for peer in self.world.linked_to(self.name):
            self.node.peer_connected(peer)

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
        node, now_ms = self.node, self.world.now_ms
        if node is None:
            return
        completions = self.disk.take_completions(now_ms)
        if completions:
            node.disk_completed(completions, now_ms)
        if node.next_deadline_ms <= now_ms:
            node.tick(now_ms)
        for _ in range(1_000):
            if not self._carry_out(node, node.step(now_ms)):
                return
        raise AssertionError("it still has work after a thousand steps")

    def _carry_out(self, node: Node, output: Output) -> bool:
        self.disk.submit(list(output.disk), self.world.now_ms)
        for peer, data in output.sends:
            self.world.post(self.name, peer, data)
        for peer, data in node.foundation.take_sends():
            self.world.post(self.name, peer, data, founding=True)
        for link, data in output.writes:
            link.socket.written += data
        again = output.more
        for control in output.controls:
            match control:
                case Close(link) | Abort(link):
                    self.hang_up(link.socket)
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

    def receive(self, socket: Socket, data: bytes) -> None:
        if socket.reading_paused:
            socket.unread.append(data)
        elif self.node is not None and socket.open:
            for start in range(0, len(data), len(self._buffer)):
                piece = data[start : start + len(self._buffer)]
                self._buffer[: len(piece)] = piece
                self.node.receive(socket.link, memoryview(self._buffer)[: len(piece)], self.world.now_ms)

    def hang_up(self, socket: Socket) -> None:
        if socket.open:
            socket.open = False
            self.sockets.pop(socket, None)
            if self.node is not None:
                self.node.lost(socket.link, self.world.now_ms)


class ClusterWorld:
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
        random = Random(seed)
        self.paging_bytes = paging_bytes
        self.sending_ms = 2
        """What passes while a client sends something."""
        self.fsync = fsync
        self.now_ms = START_MS
        self.machines = {
            name: Machine(self, name, Random(random.getrandbits(64))) for name in (f"n{i + 1}" for i in range(count))
        }
        self.cut: set[frozenset[str]] = set()
        self.posted_bytes: Counter[str] = Counter()
        """To each of them, by the others."""
        self._mail: list[tuple[str, str, bytes, int, bool]] = []
        self._ports = itertools.count(10_000)
        members = tuple(Member(NodeName(name), f"{name}.example:5672") for name in self.machines)
        self.settings = ClusterSettings(primaries=members, founding=founding, replica=replica or ReplicaSettings())
        for machine in self.machines.values() if founding else ():
            machine.start(self.settings)

    # Time.

    def run(self, elapsed_ms: int) -> None:
        for _ in range(elapsed_ms):
            self.now_ms += 1
            mail, self._mail = self._mail, []
            for sender, receiver, data, life, founding in mail:
                machine = self.machines[receiver]
                if machine.node is None or machine.lives != life or not self._linked(sender, receiver):
                    continue
                if founding:
                    machine.node.foundation.received(sender, data)
                else:
                    machine.node.peer_received(sender, data, self.now_ms)
            for machine in self.machines.values():
                machine.turn()

    def until(self, fulfilled: Callable[[], bool], limit_ms: int = 20_000) -> None:
        for _ in range(limit_ms):
            if fulfilled():
                return
            self.run(1)
        raise AssertionError("it did not come to that")

    # Links.

    def _linked(self, one: str, other: str) -> bool:
        return frozenset((one, other)) not in self.cut

    def linked_to(self, name: str) -> Iterable[str]:
        for peer, machine in self.machines.items():
            if peer != name and machine.node is not None and self._linked(name, peer):
                machine.node.peer_connected(name)
                yield peer

    def post(self, sender: str, receiver: str, data: bytes, *, founding: bool = False) -> None:
        if self._linked(sender, receiver):
            self.posted_bytes[receiver] += len(data)
            self._mail.append((sender, receiver, data, self.machines[receiver].lives, founding))

    def kill(self, name: str, loss: Loss = Loss.NONE) -> None:
        self.machines[name].kill(loss)
        if loss is not Loss.NONE:
            # With its machine goes what was not on the wire yet.
            self._mail = [letter for letter in self._mail if letter[0] != name]
        for peer, machine in self.machines.items():
            if peer != name and machine.node is not None and self._linked(name, peer):
                machine.node.peer_lost(name, by_peer=True)

    def found(self, founding: bool) -> None:
        """Whether brokers that start from now on may begin a cluster."""
        self.settings = msgspec.structs.replace(self.settings, founding=founding)

    def start(self, name: str, *, bootstrap: bool = False) -> None:
        self.machines[name].start(msgspec.structs.replace(self.settings, bootstrap=bootstrap))

    def isolate(self, name: str) -> None:
        """Nothing gets through, and nobody is told."""
        self.cut |= {frozenset((name, peer)) for peer in self.machines if peer != name}

    def mend(self) -> None:
        self.cut.clear()
        for machine in self.machines.values():
            if machine.node is not None:
                for peer in self.linked_to(machine.name):
                    machine.node.peer_connected(peer)

    # Who is who.

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


__all__ = ["CLUSTER", "NOWHERE", "ClusterWorld", "Connection", "EndOfStreamError", "Loss"]

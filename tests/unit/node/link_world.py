"""Nodes that dial each other: their connections are pipes in memory, on one clock, that a test clogs and cuts.

It stands where the runtime stands, and knows nothing of what brokers say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

import msgspec

from pandomq.cluster.dialed_connection import Dialed
from pandomq.ids import ClusterId, NodeName
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.limits import READ_CHUNK_BYTES
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.node import Node
from pandomq.node.output import Abort, AnyLink, Close, Dial, Output, VerifyPassword
from pandomq.node.settings import NodeSettings
from pandomq.node.views.records import PeerLinkView
from pandomq.replica.members.membership import Member
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss

CLUSTER = ClusterId("00000000-0000-4000-8000-000000000003")
SMALL = JournalSettings(segment_bytes=64 * 1024, snapshot_log_bytes=128 * 1024, disk_free_bytes_min=0, reserve_bytes=0)
KEY = b"a key of thirty-two octets, or so"
START_MS = 1_700_000_000_000


class Process(Protocol):
    """A machine, as its connections see it."""

    name: str
    node: Node | None

    def receive(self, end: Any, data: bytes) -> None: ...


class End:
    """One end of a connection."""

    def __init__(self, pipes: Pipes, machine: Process | None) -> None:
        self._pipes = pipes
        self.machine: Process | None = None
        self.node: Node | None = None
        """Of the process that has it."""
        if machine is not None:
            self.belong_to(machine)
        self.other: End
        self.link: AnyLink | None = None
        self.sent: list[bytes] = []
        """On its way to the other end."""
        self.taken = 0
        """Octets that came."""
        self.reading_paused = False
        self.unread: list[bytes] = []
        self.open = True
        self.ending = False
        self.dead = False
        """Its machine has lost power since."""

    def belong_to(self, machine: Process) -> None:
        self.machine, self.node = machine, machine.node

    def write(self, data: bytes | memoryview) -> None:
        if self.open:
            self.sent.append(bytes(data))

    def close(self) -> None:
        """Once the other end has what was written."""
        self.ending = True

    def abort(self) -> None:
        self.sent.clear()
        self.ending = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def take(self, data: bytes) -> None:
        self.taken += len(data)
        if self.machine is not None and self.machine.node is not None and self.machine.node is self.node:
            self.machine.receive(self, data)

    def lost(self) -> None:
        if not self.open:
            return
        self.open = False
        if self.machine is None or self.node is None or self.machine.node is not self.node:
            return
        if self.link is not None:
            self.node.disconnected(self.link, self._pipes.now_ms)


class Pipes:
    """Connections between machines, each of which carries everything within a millisecond, or nothing."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.ends: list[End] = []
        self.clogged: set[frozenset[str]] = set()
        """Pairs of machines between which nothing gets through."""
        self.carried_bytes: Counter[str] = Counter()
        """To each machine."""

    def move(self) -> None:
        for end in list(self.ends):
            self._move(end)
        self.ends = [end for end in self.ends if end.open or end.other.open]

    def _move(self, end: End) -> None:
        machines = (end.machine, end.other.machine)
        if frozenset(machine.name for machine in machines if machine is not None) in self.clogged:
            return
        sent, end.sent = end.sent, []
        for data in sent:
            if end.other.dead:
                self._reset(end)
            elif end.other.open:
                end.other.take(data)
                if end.other.machine is not None:
                    self.carried_bytes[end.other.machine.name] += len(data)
        if end.ending and end.open:
            end.other.lost()
            end.lost()

    def _reset(self, end: End) -> None:
        """Something was sent to a machine that has lost power: once it is up again it does not know the connection."""
        machine = end.other.machine
        if machine is not None and machine.node is not None:
            end.lost()
            end.other.open = False

    def reach(self, machine: Process, dialed: Dialed, target: Process | None) -> None:
        """At once, or not at all: who is clogged gets no answer, and hears so when it has waited."""
        assert machine.node is not None
        if target is None or target.node is None or not target.node.following:
            # A process listens once its node has what its store had, and serves or says who does.
            machine.node.not_dialed(dialed, "connection refused", self.now_ms)
            return
        if frozenset((machine.name, target.name)) in self.clogged:
            machine.node.not_dialed(dialed, "no answer", self.now_ms)
            return
        near = self.connect(target)
        near.belong_to(machine)
        near.link = dialed
        dialed.socket = near
        machine.node.dialed(dialed, self.now_ms)

    def connect(self, target: Process) -> End:
        """The near end, which is nobody's so far."""
        near, far = End(self, None), End(self, target)
        near.other, far.other = far, near
        assert target.node is not None
        far.link = target.node.accept(far, ("10.0.0.1", 1000 + len(self.ends)), self.now_ms)
        self.ends += (near, far)
        return near

    def hang_up_all(self, machine: Process, *, with_machine: bool = False) -> None:
        """As the system does for a process that has ended; `with_machine`: what it had not sent is lost."""
        for end in self.ends:
            if end.machine is machine:
                if with_machine:
                    end.sent.clear()
                end.ending = True


def turn(node: Node, disk: SimDisk, now_ms: int, carry_out: Callable[[Output], bool]) -> None:
    """The work of a process in a millisecond: `carry_out` returns whether there is more to do."""
    completions = disk.take_completions(now_ms)
    if completions:
        node.disk_completed(completions, now_ms)
    if node.next_deadline_ms <= now_ms:
        node.tick(now_ms)
    for _ in range(1_000):
        if not carry_out(node.step(now_ms)):
            return
    raise AssertionError("it still has work after a thousand steps")


class Machine:
    def __init__(self, world: LinkWorld, name: str, settings: ClusterSettings, cluster_id: ClusterId) -> None:
        self.world = world
        self.name = name
        self.settings = NodeSettings(name=name, cluster=settings, password_log_cost=4, loopback_only_users=())
        self.cluster_id = cluster_id
        self.disk = SimDisk(Random(name))
        self.node: Node | None = None
        self.restarts: list[str] = []
        self._buffer = bytearray(READ_CHUNK_BYTES)
        self.start()

    def start(self) -> None:
        journal = Journal(SMALL, node_name=NodeName(self.name), new_cluster_id=self.cluster_id)
        self.node = Node(self.settings, Random(f"{self.name} {self.world.now_ms}"), self.world.now_ms, journal)

    @property
    def links(self) -> dict[str, PeerLinkView]:
        assert self.node is not None and self.node.peer_links is not None
        return {view.name: view for view in self.node.peer_links.view()}

    def turn(self) -> None:
        if self.node is not None:
            turn(self.node, self.disk, self.world.now_ms, self._carry_out)

    def _carry_out(self, output: Output) -> bool:
        self.disk.submit(list(output.disk), self.world.now_ms)
        for link, data in output.writes:
            link.socket.write(data)
        for control in output.controls:
            if isinstance(control, Close):
                control.link.socket.close()
            elif isinstance(control, Abort):
                control.link.socket.abort()
            elif isinstance(control, VerifyPassword):
                attempt, question = control
                now_ms = self.world.now_ms
                self.world.node(self.name).verified(attempt, question, fits=question.fits(), now_ms=now_ms)
            elif isinstance(control, Dial):
                self.world.dial(self, control.dialed)
        if output.restart is not None:
            self.restarts.append(output.restart)
            self.disk.crash(Loss.NONE)
            self.start()
        return output.more and output.restart is None

    def receive(self, end: End, data: bytes) -> None:
        assert self.node is not None
        for start in range(0, len(data), len(self._buffer)):
            piece = data[start : start + len(self._buffer)]
            self._buffer[: len(piece)] = piece
            view = memoryview(self._buffer)[: len(piece)]
            if end.link is not None:
                self.node.receive(end.link, view, self.world.now_ms)


class LinkWorld(Pipes):
    def __init__(self, count: int = 3, **changes: dict[str, Any]) -> None:
        """`changes`: of the settings of one broker, by its name."""
        super().__init__()
        names = [f"n{number + 1}" for number in range(count)]
        members = tuple(Member(NodeName(name), f"{name}.example:5672") for name in names)
        settings = ClusterSettings(primaries=members, founding=True, key=KEY)
        self.machines: dict[str, Machine] = {}
        for name in names:
            changed = dict(changes.get(name, {}))
            cluster_id = ClusterId(changed.pop("cluster_id", CLUSTER))
            own = msgspec.structs.replace(settings, advertise=f"{name}.example:5672", **changed)
            self.machines[name] = Machine(self, name, own, cluster_id)

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

    def dial(self, machine: Machine, dialed: Dialed) -> None:
        self.reach(machine, dialed, self.machines.get(dialed.address.split(".")[0]))

    def kill(self, name: str) -> None:
        """The system hangs up for it."""
        machine = self.machines[name]
        machine.node = None
        machine.disk.crash(Loss.NONE)
        self.hang_up_all(machine)

    def lose_power(self, name: str) -> None:
        """Nobody hangs up for it."""
        machine = self.machines[name]
        machine.node = None
        machine.disk.crash(Loss.ALL)
        for end in self.ends:
            if end.machine is machine:
                end.dead = True
                end.sent.clear()

    def start(self, name: str) -> None:
        self.machines[name].start()

    # Roles.

    def is_linked(self, one: str, other: str) -> bool:
        links = self.machines[one].links
        return other in links and links[other].linked

    def all_linked(self) -> bool:
        alive = [name for name, machine in self.machines.items() if machine.node is not None]
        return all(self.is_linked(one, other) for one in alive for other in alive if one != other)

    @property
    def root(self) -> str | None:
        ready = [name for name, machine in self.machines.items() if machine.node is not None and machine.node.ready]
        return ready[0] if len(ready) == 1 else None

    def node(self, name: str) -> Node:
        node = self.machines[name].node
        assert node is not None
        return node

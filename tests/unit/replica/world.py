"""Several replicas in one thread: a network of queues, disks that wait to be told, one clock, and checks after each
step.

Nothing happens by itself. A test delivers messages, lets disks work and time pass, in the order it likes; `settle` does
all that can be done without time, `advance` lets time pass and does it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.completions import HandOverPrepared
from pandomq.replica.effects import (
    Alarm,
    ChangeEnded,
    Committed,
    Effect,
    MembersChanged,
    PrepareHandOver,
    Received,
    RoleChanged,
    Send,
    Serve,
    SteppedDown,
)
from pandomq.replica.members.membership import Member
from pandomq.replica.protocol.excerpts import Excerpts
from pandomq.replica.protocol.messages import ReplicaMessage, decode, encode
from pandomq.replica.replica import Replica, first_state
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from tests.unit.replica.checkers import Checkers
from tests.unit.replica.store import Store

TICK_MS = 20
STEPS_MAX = 20_000


class Node:
    def __init__(self, world: World, name: NodeName, settings: ReplicaSettings, *, observer: bool = False) -> None:
        self.world = world
        self.name = name
        self.settings = settings
        self.observer = observer
        self.store = Store()
        self.up = False
        self.paused = False
        self.disk_works = True
        self.inbox: deque[tuple[NodeName, bytes]] = deque()
        self.told: list[Effect] = []
        self.payload: bytes | None = b"unacked"
        self.replica: Replica

    def start(self) -> None:
        self.up = True
        self.paused = False
        settings, chance, excerpts = self.settings, self.world.chance, self.world.excerpts
        self.replica = Replica(self.name, settings, self.store, chance, observer=self.observer, excerpts=excerpts)
        self.replica.recovered(self.store.facts(), self.world.now_ms)
        self.do_effects()
        self.world.link_all(self.name)

    def crash(self) -> None:
        """The process dies; its disk keeps what it has done."""
        self.up = False
        self.inbox.clear()
        self.store.crash()
        for other in self.world.nodes.values():
            if other is not self and other.up and self.world.is_linked(self.name, other.name):
                other.replica.disconnected(self.name, by_peer=True)
                other.do_effects()

    def do_effects(self) -> None:
        for effect in self.replica.take_effects():
            match effect:
                case Send(peer, message):
                    self.world.send(self.name, peer, message)
                case Committed() | Received() | RoleChanged() | Serve() | SteppedDown() | Alarm():
                    self.told.append(effect)
                    self.world.checkers.told(self, effect)
                case MembersChanged() | ChangeEnded():
                    self.told.append(effect)
                case PrepareHandOver():
                    self.told.append(effect)
                    self.store.answers.append(HandOverPrepared(self.payload))
                case _:
                    self.store.carry_out(effect)
        self.replica.check()
        self.world.checkers.check()

    def disk_step(self) -> bool:
        if not self.up or self.paused:
            return False
        if self.store.answers:
            completion = self.store.answers.pop(0)
        elif self.store.queue and self.disk_works:
            done = self.store.step()
            if done is None:
                return True
            completion = done
        else:
            return False
        self.replica.completed(completion)
        self.do_effects()
        return True

    def receive(self) -> bool:
        if not self.up or self.paused or not self.inbox:
            return False
        sender, data = self.inbox.popleft()
        self.replica.step(sender, decode(data))
        self.do_effects()
        return True

    def tick(self) -> None:
        if self.up and not self.paused:
            self.replica.tick(self.world.now_ms)
            self.do_effects()

    def propose(self, *payloads: bytes, prompt: bool = False) -> LogIndex:
        index = self.replica.propose(payloads, prompt=prompt)
        self.do_effects()
        return index

    @property
    def role(self) -> Role | None:
        return self.replica.role if self.up else None

    def plays(self, role: Role) -> bool:
        return self.role is role

    def take_told(self, kind: type[Effect]) -> list[Effect]:
        taken = [effect for effect in self.told if isinstance(effect, kind)]
        self.told = [effect for effect in self.told if not isinstance(effect, kind)]
        return taken


class World:
    def __init__(
        self,
        names: str | Sequence[str],
        *,
        settings: ReplicaSettings | None = None,
        seed: int = 1,
        voters: Iterable[str] | None = None,
        excerpts: Excerpts | None = None,
    ) -> None:
        self.now_ms = 1_000
        self.excerpts = excerpts
        self.chance = random.Random(seed)
        self.checkers = Checkers(self)
        self.cut_links: set[tuple[str, str]] = set()
        self.settings = settings or ReplicaSettings()
        self.nodes: dict[NodeName, Node] = {}
        members = self.members(names if voters is None else voters)
        for name in names:
            node = self.add(name)
            if any(member.name == name for member in members):
                node.store.durable.state = first_state(members)
                node.store.crash()
        for node in self.nodes.values():
            node.start()

    @staticmethod
    def members(names: Iterable[str]) -> list[Member]:
        return [Member(NodeName(name)) for name in names]

    def add(self, name: str, *, observer: bool = False) -> Node:
        node = Node(self, NodeName(name), self.settings, observer=observer)
        self.nodes[node.name] = node
        return node

    def __getitem__(self, name: str) -> Node:
        return self.nodes[NodeName(name)]

    # The network.

    def is_linked(self, one: str, other: str) -> bool:
        """In both directions: a link that is cut in one has no answers, but is there."""
        return (one, other) not in self.cut_links or (other, one) not in self.cut_links

    def link_all(self, name: NodeName) -> None:
        for other in self.nodes.values():
            if other.name != name and other.up and self.is_linked(name, other.name):
                for node, peer in ((self[name], other.name), (other, name)):
                    node.replica.connected(peer)
                    node.do_effects()

    def send(self, sender: NodeName, peer: NodeName, message: ReplicaMessage) -> None:
        node = self.nodes.get(peer)
        if node is not None and node.up and (sender, peer) not in self.cut_links:
            node.inbox.append((sender, encode(message)))

    def cut(self, one: str, other: str, *, one_way: bool = False, noticed: bool = False) -> None:
        self.cut_links.add((one, other))
        if not one_way:
            self.cut_links.add((other, one))
        if noticed:
            for name, peer in ((one, other), (other, one)):
                if self[name].up:
                    self[name].replica.disconnected(NodeName(peer), by_peer=False)
                    self[name].do_effects()

    def isolate(self, *names: str, noticed: bool = False) -> None:
        for name in names:
            for other in self.nodes:
                if other not in names:
                    self.cut(name, other, noticed=noticed)

    def heal(self) -> None:
        self.cut_links.clear()
        for node in self.nodes.values():
            if node.up:
                self.link_all(node.name)

    # Time.

    def settle(self) -> None:
        """All that can happen without time."""
        for _ in range(STEPS_MAX):
            moved = [node.disk_step() or node.receive() for node in self.nodes.values()]
            if not any(moved):
                return
        raise AssertionError("it never comes to rest")

    def advance(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            # From one deadline to the next, in whole steps.
            awake = [node.replica.next_tick_ms for node in self.nodes.values() if node.up and not node.paused]
            self.now_ms = min(max(min(awake, default=end_ms), self.now_ms + TICK_MS), end_ms)
            for node in self.nodes.values():
                node.tick()
            self.settle()

    # The state.

    @property
    def roots(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.role is Role.ROOT]

    def until_root(self) -> Node:
        """Goes on one small step at a time until there is a root, and stops there."""
        for _ in range(STEPS_MAX):
            for node in self.nodes.values():
                if node.role is Role.ROOT:
                    return node
                if node.disk_step() or node.receive():
                    break
            else:
                self.now_ms += TICK_MS
                for node in self.nodes.values():
                    node.tick()
        raise AssertionError("no root")

    def step_down(self) -> None:
        root = self.roots[0]
        root.replica.step_down("asked to")
        root.do_effects()

    def elect(self, name: str | None = None) -> Node:
        """Lets time pass until there is a root that serves."""
        for _ in range(300):
            self.settle()
            for node in self.roots:
                if node.replica.serving and name in (None, node.name):
                    return node
            self.advance(TICK_MS)
        raise AssertionError(f"no root: {[(node.name, node.role) for node in self.nodes.values()]}")

    def elect_among(self, names: str) -> Node:
        for _ in range(300):
            self.advance(TICK_MS)
            for node in self.roots:
                if node.name in names and node.replica.serving:
                    return node
        raise AssertionError(f"no root among {names}")

    def roles(self) -> str:
        return " ".join(f"{node.name}={node.role.value if node.role else 'down'}" for node in self.nodes.values())

    def log(self, name: str) -> list[bytes]:
        """Returns the payloads that the brokers wrote, on this disk."""
        return [entry.payload for entry in self[name].store.durable.entries if entry.payload[:1] < b"\x80"]

    def committed(self, name: str) -> list[bytes]:
        node = self[name]
        entries = node.store.memory.entries[: node.replica.commit_index]
        return [entry.payload for entry in entries if entry.payload[:1] < b"\x80"]

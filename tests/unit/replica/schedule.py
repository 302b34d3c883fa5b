"""The possible events of a cluster, in small steps, so that chance can put them into any order."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable

from pandomq.ids import NodeName
from pandomq.replica.members.membership import Member
from pandomq.replica.replica import NotRoot
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.world import Node, World


class Kind(enum.Enum):
    DELIVER = "deliver"
    DELIVER_LATER = "deliver later"
    LOSE = "lose"
    DOUBLE = "double"
    DISK = "disk"
    TIME = "time"
    SETTLE = "settle"
    ADVANCE = "advance"
    PROPOSE = "propose"
    CRASH = "crash"
    START = "start"
    WIPE = "wipe"
    PAUSE = "pause"
    CUT = "cut"
    CUT_ONE_WAY = "cut one way"
    ISOLATE = "isolate"
    HEAL = "heal"
    STALL = "stall"
    COMPACT = "compact"
    HAND_OVER = "hand over"
    STEP_DOWN = "step down"
    CHANGE = "change"
    PROMOTE = "promote"


Action = tuple[Kind, int, int]


class Schedule:
    def __init__(self, world: World) -> None:
        self.world = world
        self._count = 0

    def run(self, actions: Iterable[Action]) -> None:
        for kind, which, number in actions:
            nodes = list(self.world.nodes.values())
            self._act(kind, nodes[which % len(nodes)], nodes[number % len(nodes)], number)

    def _act(self, kind: Kind, node: Node, other: Node, number: int) -> None:
        match kind:
            case Kind.DELIVER | Kind.DELIVER_LATER | Kind.LOSE | Kind.DOUBLE:
                self._act_on_messages(kind, node, number)
            case Kind.TIME | Kind.SETTLE | Kind.ADVANCE:
                self._act_on_time(kind, number)
            case Kind.PROPOSE:
                self._propose()
            case Kind.CUT | Kind.CUT_ONE_WAY if node is not other:
                self.world.cut(node.name, other.name, one_way=kind is Kind.CUT_ONE_WAY, noticed=number % 2 == 0)
            case Kind.ISOLATE:
                self.world.isolate(node.name, noticed=number % 3 == 0)
            case Kind.HEAL:
                self.world.heal()
            case Kind.CHANGE:
                self._change(number)
            case _:
                self._act_on(kind, node, number)

    def _act_on_messages(self, kind: Kind, node: Node, number: int) -> None:
        match kind:
            case Kind.DELIVER:
                for _ in range(1 + number % 4):
                    node.receive()
            case Kind.DELIVER_LATER:
                node.inbox.rotate(-1)
            case Kind.LOSE if node.inbox:
                node.inbox.popleft()
            case Kind.DOUBLE if node.inbox:
                node.inbox.append(node.inbox[number % len(node.inbox)])
            case _:
                pass

    def _act_on_time(self, kind: Kind, number: int) -> None:
        match kind:
            case Kind.TIME:
                self.world.now_ms += 5 + number % 400
                for each in self.world.nodes.values():
                    each.tick()
            case Kind.ADVANCE:
                self.world.advance(100 + number * 2)
            case _:
                self.world.settle()

    def _act_on(self, kind: Kind, node: Node, number: int) -> None:
        match kind:
            case Kind.DISK:
                for _ in range(1 + number % 4):
                    node.disk_step()
            case Kind.CRASH if node.up:
                node.crash()
            case Kind.START if not node.up:
                node.start()
            case Kind.WIPE if not node.up:
                self._wipe(node)
            case Kind.PAUSE if node.up:
                node.paused = not node.paused
                node.tick()
            case Kind.STALL:
                node.disk_works = not node.disk_works
                node.store.stalled_since_ms = None if node.disk_works else self.world.now_ms
            case Kind.COMPACT if node.up and not node.replica.view().joining:
                node.store.compact(node.replica.commit_index)
            case Kind.HAND_OVER if node.role is Role.ROOT and not node.paused:
                node.replica.hand_over()
                node.do_effects()
            case Kind.PROMOTE if node.up and not node.paused:
                self._promote(node, number)
            case Kind.STEP_DOWN if node.role is Role.ROOT and not node.paused:
                node.replica.step_down("asked to")
                node.do_effects()
            case _:
                pass

    def _propose(self) -> None:
        for node in self.world.roots:
            root = node.replica
            if not node.paused and not root.holds_back:
                self._count += 1
                with contextlib.suppress(NotRoot):
                    node.propose(f"{node.name}{self._count}".encode(), prompt=self._count % 3 == 0)

    def _wipe(self, node: Node) -> None:
        """A disk is lost only while all others are whole: more is not survived, and not promised."""
        others = [each for each in self.world.nodes.values() if each is not node]
        voters = len(self.world.nodes)
        if voters < 3 or any(each.store.memory.state.membership == b"" for each in others):
            return
        if any(each.name in self.world.checkers.wiped for each in others):
            return
        node.store.wipe()
        self.world.checkers.wiped |= {node.name}

    def _change(self, number: int) -> None:
        names = sorted(self.world.nodes)
        wanted = [name for place, name in enumerate(names) if number >> place & 1] or names
        for node in self.world.roots:
            if not node.paused:
                node.replica.change_members([Member(NodeName(name)) for name in wanted])
                node.do_effects()

    def _promote(self, node: Node, number: int) -> None:
        """By somebody who may be wrong about who is dead."""
        self._count += 1
        dead = [
            name for place, name in enumerate(sorted(self.world.nodes)) if number >> place & 1 and name != node.name
        ]
        node.replica.promote(dead, f"by {node.name} {self._count}")
        node.do_effects()

    def end(self) -> None:
        """The faults are over."""
        self.world.heal()
        for node in self.world.nodes.values():
            node.disk_works = True
            node.store.stalled_since_ms = None
            if not node.up:
                node.start()
            node.paused = False
            node.tick()
        self.world.settle()

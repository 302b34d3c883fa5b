"""Laws that hold at every moment of every schedule, each stated over the whole world at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.effects import Committed, Effect, RoleChanged, Serve
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.protocol.excerpts import FullExcerpts, excerpt_of
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from tests.unit.replica.world import Node, World


class Checkers:
    def __init__(self, world: World) -> None:
        self._world = world
        self._roots: dict[tuple[int, str, int], NodeName] = {}
        self.committed: dict[str, list[LogEntry]] = {"": []}
        """By epoch, the longest log that anybody took for committed."""
        self.wiped: frozenset[NodeName] = frozenset()
        """Brokers that lost their disk, until a root admits them again."""

    def told(self, node: Node, effect: Effect) -> None:
        match effect:
            case RoleChanged(Role.ROOT, term):
                view = node.replica.view()
                other = self._roots.setdefault((view.epoch, view.epoch_id, term), node.name)
                assert other == node.name, f"{other} and {node.name} are both root in term {term}"
            case Committed(index):
                self._committed(node, index)
            case Serve():
                self._has_all(node)
            case _:
                pass

    def _committed(self, node: Node, index: LogIndex) -> None:
        """Committed logs agree, and what a root commits is on enough disks at that moment."""
        view = node.replica.view()
        log = self.committed.setdefault(view.epoch_id, [])
        entries = node.store.memory.entries[:index]
        shared = min(len(log), index)
        if node.observer:
            excerpts = self._world.excerpts or FullExcerpts()
            # The root commits first.
            assert shared == index and entries == [excerpt_of(excerpts, entry) for entry in log[:index]], node.name
            return
        assert log[:shared] == entries[:shared], f"{node.name} commits other entries up to {index}"
        if index > len(log):
            self.committed[view.epoch_id] = entries
            if view.role is Role.ROOT:
                self._is_on_disks(node, index)

    def _is_on_disks(self, node: Node, index: LogIndex) -> None:
        entries = node.store.memory.entries[:index]
        membership = node.replica.view().membership
        assert membership is not None
        for names in membership.sets:
            copies = sum(
                name in self._world.nodes and self._world.nodes[name].store.durable.entries[:index] == entries
                for name in names
            )
            need = (len(names) + 1) // 2
            if not node.settings.last_man_standing:
                need = max(need, min(len(names), node.settings.min_copies))
            assert copies + self._forgiven(names) >= need, f"{node.name} commits {index} with {copies} copies of {need}"

    def _forgiven(self, names: tuple[NodeName, ...]) -> int:
        """Disks that were lost after they had acknowledged; the world says which."""
        return sum(name in self.wiped for name in names)

    def _has_all(self, node: Node) -> None:
        """A root that serves has everything that was ever committed in its epoch."""
        view = node.replica.view()
        log = self.committed.get(view.epoch_id, [])
        assert node.store.memory.entries[: len(log)] == log, f"{node.name} serves without committed entries"

    def check(self) -> None:
        self.wiped = frozenset(name for name in self.wiped if self._is_in_doubt(self._world.nodes[name]))
        serving = [
            node.name for node in self._world.nodes.values() if node.up and not node.paused and node.replica.serving
        ]
        epochs = {self._world.nodes[name].replica.view().epoch_id for name in serving}
        assert len(serving) == len(epochs), f"{serving} serve at the same time"

    def _is_in_doubt(self, node: Node) -> bool:
        return not node.up or node.replica.view().joining

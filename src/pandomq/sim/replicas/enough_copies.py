"""A root commits only what enough disks hold (P2, P6): so a minority commits nothing."""

from __future__ import annotations

from collections.abc import Iterable

from pandomq.ids import NodeName
from pandomq.replica.membership import Membership
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.replicas.holder import Holder

PROMISE = "the minority confirms nothing"


class EnoughCopies:
    def __init__(self, history: LogHistory, settings: ReplicaSettings) -> None:
        self._history = history
        self._settings = settings
        self._before: dict[int, Membership] = {}
        """By life: the members after the last step."""

    def stepped(self, holder: Holder, places: list[tuple[int, int]]) -> None:
        """`places` are newly committed."""
        replica = holder.replica
        if replica is None or replica.role is not Role.ROOT:
            return
        membership = replica._core.membership
        before = self._before.get(holder.life, membership)
        self._before[holder.life] = membership
        if not places:
            return
        index, chain = places[-1]
        holders = self._history.copies.get((index, chain), set())
        # What was committed before a change began, in the same step, needed the old members only.
        lacking = self._lacking(membership.sets, holders)
        if lacking and self._lacking(before.sets, holders):
            raise BrokenPromise(PROMISE, f"{holder.name} commits entry {index} with {lacking}")

    def _lacking(self, sets: Iterable[tuple[NodeName, ...]], holders: set[str]) -> str:
        for names in sets:
            need = -(-len(names) // 2)
            if not self._settings.last_man_standing:
                need = max(need, min(self._settings.min_copies, len(names)))
            have = sum(name in holders for name in names)
            if have < need:
                return f"{have} copies, not {need}"
        return ""

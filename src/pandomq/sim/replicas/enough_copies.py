"""A root commits only entries that enough disks hold (P2, P6), so a minority commits nothing."""

from __future__ import annotations

from collections.abc import Iterable

from pandomq.ids import NodeName
from pandomq.replica.members.membership import Membership
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.history import LogHistory, Place
from pandomq.sim.replicas.holder import ReplicaHolder

PROMISE = "the minority confirms nothing"


class EnoughCopies:
    def __init__(self, history: LogHistory, settings: ReplicaSettings) -> None:
        self._history = history
        self._settings = settings
        self._before: dict[int, Membership] = {}
        """By life: the members after the last step."""

    def stepped(self, holder: ReplicaHolder, places: list[Place]) -> None:
        """The machine has committed these in this step."""
        replica = holder.replica
        if replica is None or replica.role is not Role.ROOT:
            return
        membership = replica._core.membership
        before = self._before.get(holder.life, membership)
        self._before[holder.life] = membership
        if places:
            # An entry that was committed before a change of members began, in the same step, needed only the old
            # members.
            self.check(holder, places[-1], "commits", membership, before)

    def check(self, holder: ReplicaHolder, place: Place, does: str, *memberships: Membership) -> None:
        """Enough disks have the entry, for one of the memberships."""
        holders = self._history.copies.get(place, set())
        lacking = [self._lacking(membership.sets, holders) for membership in memberships]
        if all(lacking):
            raise BrokenPromise(PROMISE, f"{holder.name} {does} entry {place[0]} with {lacking[0]}")

    def _lacking(self, sets: Iterable[tuple[NodeName, ...]], holders: set[str]) -> str:
        for names in sets:
            need = -(-len(names) // 2)
            if not self._settings.last_man_standing:
                need = max(need, min(self._settings.min_copies, len(names)))
            have = sum(name in holders for name in names)
            if have < need:
                return f"{have} copies, not {need}"
        return ""

"""A root commits an entry only when enough disks hold it (P2, P6): so a minority commits nothing."""

from __future__ import annotations

from pandomq.ids import LogIndex
from pandomq.replica.effects import Committed, Effect
from pandomq.replica.entries import LogEntry
from pandomq.replica.roles.transitions import Role
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.machine import LogMachine

PROMISE = "the minority confirms nothing"


class EnoughCopies(LogChecker):
    def told(self, machine: LogMachine, effect: Effect) -> None:
        keeper = machine.keeper
        assert keeper is not None
        if isinstance(effect, Committed) and keeper.replica.role is Role.ROOT:
            self.history.note_synced(machine)
            self._check(machine, effect.index, keeper.entries[effect.index - 1], "commits")

    def confirmed(self, machine: LogMachine, index: LogIndex, entry: LogEntry) -> None:
        self._check(machine, index, entry, "confirms")

    def _check(self, machine: LogMachine, index: LogIndex, entry: LogEntry, does: str) -> None:
        assert machine.keeper is not None
        membership = machine.keeper.replica.membership
        assert membership is not None
        holders = self.history.copies.get((index, entry), set())
        for names in membership.sets:
            need = -(-len(names) // 2)
            if not machine.settings.last_man_standing:
                need = max(need, min(machine.settings.min_copies, len(names)))
            have = sum(name in holders for name in names)
            if have < need:
                raise BrokenPromise(PROMISE, f"{machine.name} {does} entry {index} with {have} copies, not {need}")

"""A root commits an entry only when enough disks hold it (P2, P6): so a minority commits nothing."""

from __future__ import annotations

from pandomq.ids import LogIndex
from pandomq.replica.entries import LogEntry
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.machine import LogMachine

PROMISE = "the minority confirms nothing"


class EnoughCopies(LogChecker):
    def confirmed(self, machine: LogMachine, index: LogIndex, entry: LogEntry) -> None:
        assert machine.keeper is not None
        membership = machine.keeper.replica.view().membership
        assert membership is not None
        holders = self.history.copies.get((index, entry), set())
        for names in membership.sets:
            need = -(-len(names) // 2)
            if not machine.settings.last_man_standing:
                need = max(need, min(machine.settings.min_copies, len(names)))
            have = sum(name in holders for name in names)
            if have < need:
                raise BrokenPromise(PROMISE, f"{machine.name} confirms entry {index} with {have} copies, not {need}")

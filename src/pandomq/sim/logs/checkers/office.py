"""A root that does not hear from half, or whose disk does not answer, gives up its office by itself (P1)."""

from __future__ import annotations

from pandomq.replica.roles.transitions import Role
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.history import History
from pandomq.sim.logs.keeper import Keeper
from pandomq.sim.logs.machine import LogMachine

PROMISE = "a root resigns in time"


class ResignsInTime(LogChecker):
    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._overdue: dict[tuple[str, int], int] = {}
        """By machine and life: since when it ought to have resigned."""

    def stepped(self, machine: LogMachine) -> None:
        keeper = machine.keeper
        assert keeper is not None
        life = (machine.name, machine.life)
        why = self._why(machine, keeper) if keeper.replica.role is Role.ROOT else None
        if why is None:
            self._overdue.pop(life, None)
        elif keeper.now_ms > self._overdue.setdefault(life, keeper.now_ms):
            # It has been told the time since.
            raise BrokenPromise(PROMISE, f"{machine.name} is root though {why}")

    def _why(self, machine: LogMachine, keeper: Keeper) -> str | None:
        left_ms = keeper.replica.lease_left_ms
        if left_ms is not None and left_ms <= 0:
            return f"its lease ended {-left_ms} ms ago"
        waiting_since_ms = keeper.journal.waiting_since_ms
        # Who has no lease to lose is alone, and waits for its disk.
        if waiting_since_ms is not None and left_ms is not None:
            late_ms = keeper.now_ms - waiting_since_ms - machine.settings.disk_stall_ms
            if late_ms > 0:
                return f"its disk is {late_ms} ms late"
        return None

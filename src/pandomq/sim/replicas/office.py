"""A root that does not hear from half, or whose disk does not answer, gives up its office by itself (P1)."""

from __future__ import annotations

from pandomq.replica.replica import Replica
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.holder import Holder

PROMISE = "a root resigns in time"


class ResignsInTime:
    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._overdue: dict[int, int] = {}
        """By life: since when, by the replica's clock, it ought to have resigned."""

    def stepped(self, holder: Holder) -> None:
        replica = holder.replica
        if replica is None or replica.role is not Role.ROOT:
            return
        now_ms = replica._core.now_ms
        why = self._why(holder, replica, now_ms)
        if why is None:
            self._overdue.pop(holder.life, None)
        elif now_ms > self._overdue.setdefault(holder.life, now_ms):
            # It has been told the time since.
            raise BrokenPromise(PROMISE, f"{holder.name} is root though {why}")

    def _why(self, holder: Holder, replica: Replica, now_ms: int) -> str | None:
        view = replica.view()
        if view.lease_left_ms is not None and view.lease_left_ms <= 0:
            return f"its lease ended {-view.lease_left_ms} ms ago"
        waiting_since_ms = holder.journal.waiting_since_ms
        alone = view.membership is not None and len(view.membership.names) == 1
        if waiting_since_ms is not None and not alone:
            late_ms = now_ms - waiting_since_ms - self._settings.disk_stall_ms
            if late_ms > 0:
                return f"its disk is {late_ms} ms late"
        return None

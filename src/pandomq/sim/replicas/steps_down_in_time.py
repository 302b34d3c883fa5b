"""A root steps down by itself if it does not receive from half of the primaries, or its disk does not answer (P1)."""

from __future__ import annotations

from pandomq.replica.replica import Replica
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.holder import ReplicaHolder

PROMISE = "a root steps down in time"


class StepsDownInTime:
    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._overdue: dict[int, int] = {}
        """By life: the time, by the replica's clock, since which the root ought to have stepped down."""

    def stepped(self, holder: ReplicaHolder) -> None:
        replica = holder.replica
        if replica is None or replica.role is not Role.ROOT:
            return
        now_ms = replica._core.now_ms
        why = self._why(holder, replica, now_ms)
        if why is None:
            self._overdue.pop(holder.life, None)
        elif now_ms > self._overdue.setdefault(holder.life, now_ms):
            # The replica has been given the time since.
            raise BrokenPromise(PROMISE, f"{holder.name} is root though {why}")

    def _why(self, holder: ReplicaHolder, replica: Replica, now_ms: int) -> str | None:
        left_ms = replica.lease_left_ms
        if left_ms is not None and left_ms <= 0:
            return f"its lease ended {-left_ms} ms ago"
        waiting_since_ms = holder.journal.waiting_since_ms
        if waiting_since_ms is not None and not _is_alone(replica):
            late_ms = now_ms - waiting_since_ms - self._settings.disk_stall_ms
            if late_ms > 0:
                return f"its disk is {late_ms} ms late"
        return None


def _is_alone(replica: Replica) -> bool:
    membership = replica.membership
    return membership is not None and len(membership.names) == 1

"""What one machine calls committed is what all others call committed (P8)."""

from __future__ import annotations

from pandomq.ids import LogIndex
from pandomq.replica.replica import Replica
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.replicas.holder import Holder

PROMISE = "committed logs agree"


class LogsAgree:
    def __init__(self, history: LogHistory) -> None:
        self._history = history

    def stepped(self, holder: Holder, places: list[tuple[int, int]]) -> None:
        """`places` are newly committed."""
        replica = holder.replica
        for index, chain in places:
            assert replica is not None
            known = self._history.committed.setdefault((epoch_of(replica, index), index), chain)
            if known != chain:
                raise BrokenPromise(PROMISE, f"{holder.name} has another log up to entry {index} than was committed")


def epoch_of(replica: Replica, index: int) -> str:
    """In which this entry was written."""
    return replica._core.epoch_id_at(LogIndex(index))

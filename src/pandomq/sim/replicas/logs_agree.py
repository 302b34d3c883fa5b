"""Checks that all machines have the same log up to an entry that one machine reports as committed (P8)."""

from __future__ import annotations

from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.history import LogHistory, Place, epoch_of
from pandomq.sim.replicas.holder import ReplicaHolder

PROMISE = "committed logs agree"


class LogsAgree:
    def __init__(self, history: LogHistory) -> None:
        self._history = history

    def committed(self, holder: ReplicaHolder, places: list[Place]) -> None:
        """The machine newly reports these as committed."""
        if not places:
            return
        assert holder.replica is not None
        epoch_id = epoch_of(holder.replica, places[-1][0])
        for index, chain in places:
            if self._history.committed.setdefault((epoch_id, index), chain) != chain:
                raise BrokenPromise(PROMISE, f"{holder.name} has another log up to entry {index} than was committed")

"""The invariants of a replica after every step, and those between a replica and its journal."""

from __future__ import annotations

from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.history import History
from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.replicas.history import epoch_of

PROMISE = "invariants"
STEPS_BETWEEN = 16


class ReplicaInvariants(LogChecker):
    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._steps = 0

    def stepped(self, machine: LogMachine) -> None:
        keeper = machine.keeper
        assert keeper is not None
        if not keeper.runs_replica:
            return
        keeper.replica.check()
        self._steps += 1
        if self._steps % STEPS_BETWEEN:
            return
        view = keeper.replica.view()
        if view.last_index != len(keeper.entries) or view.last_index != keeper.journal.last_index:
            raise BrokenPromise(PROMISE, f"{machine.name}'s replica and journal end at different entries")
        if epoch_of(keeper.replica, view.last_index) != (keeper.epochs[-1][1] if keeper.epochs else ""):
            raise BrokenPromise(PROMISE, f"{machine.name}'s replica assigns its last entry to another epoch")

"""A root that hands over has committed its whole log, and its successor has it on disk (R37)."""

from __future__ import annotations

from pandomq.replica.effects import Effect, SteppedDown
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.machine import LogMachine

PROMISE = "a hand-over is complete"


class HandOverWhole(LogChecker):
    def told(self, machine: LogMachine, effect: Effect) -> None:
        if not isinstance(effect, SteppedDown) or effect.successor is None:
            return
        keeper, successor = machine.keeper, effect.successor
        assert keeper is not None
        last = len(keeper.entries)
        if keeper.replica.commit_index < last:
            count = last - keeper.replica.commit_index
            raise BrokenPromise(PROMISE, f"{machine.name} stepped down with {count} entries that are not committed")
        if successor not in self.history.copies.get((last, keeper.chains[-1]), ()):
            raise BrokenPromise(PROMISE, f"{successor} lacks what {machine.name} has handed over")

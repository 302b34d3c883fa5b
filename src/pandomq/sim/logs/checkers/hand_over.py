"""Who hands over has everything committed, and its successor has it on disk (R37)."""

from __future__ import annotations

from pandomq.replica.effects import ChangeEnded, Effect
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.machine import LogMachine

PROMISE = "a hand-over is whole"
HANDED = "handed over to "


class HandOverWhole(LogChecker):
    def told(self, machine: LogMachine, effect: Effect) -> None:
        if not isinstance(effect, ChangeEnded) or not effect.done or not effect.text.startswith(HANDED):
            return
        keeper, successor = machine.keeper, effect.text.removeprefix(HANDED)
        assert keeper is not None
        last = len(keeper.entries)
        if keeper.replica.commit_index < last:
            raise BrokenPromise(PROMISE, f"{machine.name} goes with {last - keeper.replica.commit_index} entries open")
        if successor not in self.history.copies.get((last, keeper.entries[-1]), ()):
            raise BrokenPromise(PROMISE, f"{successor} lacks what {machine.name} has handed over")

"""What one machine calls committed is what all others call committed: the same entries, the same chain (P8)."""

from __future__ import annotations

from pandomq.ids import LogIndex
from pandomq.replica.effects import Committed, Effect
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.history import History
from pandomq.sim.logs.machine import LogMachine

PROMISE = "committed logs agree"


class LogsAgree(LogChecker):
    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._checked: dict[tuple[str, int], LogIndex] = {}
        self._chains: dict[tuple[str, LogIndex], int] = {}

    def told(self, machine: LogMachine, effect: Effect) -> None:
        if not isinstance(effect, Committed):
            return
        keeper = machine.keeper
        assert keeper is not None
        epoch_id = self.history.epoch_of(machine, effect.index)
        log = self.history.committed.setdefault(epoch_id, [])
        life = (machine.name, machine.life)
        for index in range(self._checked.get(life, 0) + 1, effect.index + 1):
            entry = keeper.entries[index - 1]
            log.extend([None] * (index - len(log)))
            known = log[index - 1]
            if known is None:
                log[index - 1] = entry
            elif known != entry:
                raise BrokenPromise(
                    PROMISE,
                    f"{machine.name} has another entry {index} ({entry.term}) than was committed ({known.term})",
                )
        self._checked[life] = effect.index
        chain = keeper.journal.chain_at(effect.index)
        if chain is not None and self._chains.setdefault((epoch_id, effect.index), chain) != chain:
            raise BrokenPromise(PROMISE, f"{machine.name} has another chain of checksums up to {effect.index}")

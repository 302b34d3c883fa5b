"""Every entry that a client was told to be committed is in every log when all faults are over (P2)."""

from __future__ import annotations

from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.proposer import name_of

PROMISE = "nothing committed is lost"


class NothingLost(LogChecker):
    def finished(self) -> None:
        for machine in self.history.machines:
            keeper = machine.keeper
            assert keeper is not None
            if keeper.replica.view().membership is None:
                continue
            there = {entry.payload for entry in keeper.entries[: keeper.replica.commit_index]}
            for payload in self.history.confirmed:
                if payload not in there:
                    raise BrokenPromise(
                        PROMISE, f"{name_of(payload)} was confirmed, and {machine.name} does not have it"
                    )

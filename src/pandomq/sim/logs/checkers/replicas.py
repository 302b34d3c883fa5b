"""Elections and logs, checked with each effect that reports an election or a commit, and after each step: see
`sim.replicas`."""

from __future__ import annotations

from pandomq.ids import LogIndex
from pandomq.replica.effects import Committed, Effect, RoleChanged
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.history import History
from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.replicas import logs_agree
from pandomq.sim.replicas.enough_copies import EnoughCopies
from pandomq.sim.replicas.logs_agree import LogsAgree
from pandomq.sim.replicas.one_root import OneRoot
from pandomq.sim.replicas.steps_down_in_time import StepsDownInTime


class LogReplicasAgree(LogChecker):
    def __init__(self, history: History, settings: ReplicaSettings) -> None:
        super().__init__(history)
        self._logs_agree = LogsAgree(history)
        self._enough_copies = EnoughCopies(history, settings)
        self._one_root = OneRoot(history)
        self._steps_down_in_time = StepsDownInTime(settings)

    def told(self, machine: LogMachine, effect: Effect) -> None:
        if isinstance(effect, RoleChanged) and effect.role is Role.ROOT:
            self._one_root.elected(machine, effect.term)
        elif isinstance(effect, Committed):
            self._logs_agree.committed(machine, self.history.newly_committed(machine, effect.index))
            self._check_journal(machine, effect.index)
            assert machine.replica is not None
            if machine.replica.role is Role.ROOT:
                self.history.note_synced(machine)
                self._check_copies(machine, effect.index, "commits")

    def _check_journal(self, machine: LogMachine, index: LogIndex) -> None:
        """The keeper's content may come from a snapshot."""
        assert machine.keeper is not None
        chain = machine.journal.chain_at(index)
        if chain is not None and chain != machine.keeper.chains[index - 1]:
            text = f"{machine.name}'s journal has another log up to entry {index} than its keeper"
            raise BrokenPromise(logs_agree.PROMISE, text)

    def confirmed(self, machine: LogMachine, index: LogIndex, entry: LogEntry) -> None:
        self._check_copies(machine, index, "confirms")

    def _check_copies(self, machine: LogMachine, index: LogIndex, does: str) -> None:
        assert machine.keeper is not None
        membership = machine.keeper.replica.membership
        assert membership is not None
        self._enough_copies.check(machine, (index, machine.keeper.chains[index - 1]), does, membership)

    def stepped(self, machine: LogMachine) -> None:
        self._one_root.stepped(machine)
        self._steps_down_in_time.stepped(machine)

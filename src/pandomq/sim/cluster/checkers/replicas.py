"""Elections and logs, checked after each step of each broker: see `sim.replicas`."""

from __future__ import annotations

from typing import Final

from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import WorldLedger
from pandomq.sim.machine import Machine
from pandomq.sim.replicas.enough_copies import EnoughCopies
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.replicas.logs_agree import LogsAgree
from pandomq.sim.replicas.one_root import OneRoot
from pandomq.sim.replicas.steps_down_in_time import StepsDownInTime

ROOT_STEPS_BETWEEN: Final = 4
STEPS_BETWEEN: Final = 16
"""The number of steps between two checks while nothing has changed: of a root, whose lease may end meanwhile, and of
others."""


class ReplicasAgree(Checker):
    def __init__(self, ledger: WorldLedger, history: LogHistory, settings: ReplicaSettings) -> None:
        super().__init__(ledger)
        self.history = history
        self._logs_agree = LogsAgree(history)
        self._enough_copies = EnoughCopies(history, settings)
        self._one_root = OneRoot(history)
        self._steps_down_in_time = StepsDownInTime(settings)
        self._looked: dict[int, object] = {}
        """By life: the state at the last check."""

    def stepped(self, machine: Machine) -> None:
        replica = machine.replica
        if replica is None:
            return
        role = replica.role
        looked = (replica.commit_index, machine.journal.synced_index, role, replica.root)
        between = ROOT_STEPS_BETWEEN if role is Role.ROOT else STEPS_BETWEEN
        if machine.steps % between and looked == self._looked.get(machine.life):
            return
        self._looked[machine.life] = looked
        replica.check()
        self.history.note_synced(machine)
        committed = self.history.newly_committed(machine, replica.commit_index)
        self._logs_agree.committed(machine, committed)
        self._enough_copies.stepped(machine, committed)
        self._one_root.stepped(machine)
        self._steps_down_in_time.stepped(machine)
        if machine.wounded:
            self._note_recovery(machine)

    def _note_recovery(self, machine: Machine) -> None:
        assert machine.replica is not None
        view = machine.replica.view()
        if (
            not view.joining
            and not view.repairing
            and min(view.synced_index, view.commit_index) >= self.history.longest
        ):
            machine.wounded = False

"""Elections and logs, looked at after each step of each broker: see `sim.replicas`."""

from __future__ import annotations

from typing import Final

from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import Ledger
from pandomq.sim.machine import Machine
from pandomq.sim.replicas.enough_copies import EnoughCopies
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.replicas.logs_agree import LogsAgree
from pandomq.sim.replicas.office import ResignsInTime
from pandomq.sim.replicas.one_root import OneRoot

STEPS_BETWEEN: Final = 4
"""Looks, where nothing has changed."""


class ReplicasAgree(Checker):
    def __init__(self, ledger: Ledger, history: LogHistory, settings: ReplicaSettings) -> None:
        super().__init__(ledger)
        self.history = history
        self._logs_agree = LogsAgree(history)
        self._enough_copies = EnoughCopies(history, settings)
        self._one_root = OneRoot(history)
        self._office = ResignsInTime(settings)
        self._looked: dict[int, object] = {}
        """By life: what there was to see the last time."""

    def stepped(self, machine: Machine) -> None:
        replica = machine.replica
        if replica is None:
            return
        looked = (replica.commit_index, machine.journal.synced_index, replica.role, replica.root)
        news = looked != self._looked.get(machine.life)
        if not news and machine.steps % STEPS_BETWEEN:
            return
        self._looked[machine.life] = looked
        replica.check()
        self.history.note_synced(machine)
        committed = self.history.newly_committed(machine)
        self._logs_agree.stepped(machine, committed)
        self._enough_copies.stepped(machine, committed)
        self._one_root.stepped(machine)
        self._office.stepped(machine)
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

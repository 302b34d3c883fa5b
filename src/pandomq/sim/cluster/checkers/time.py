"""The cluster's time goes on as time does, whoever is root and whatever its wall clock says (D8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pandomq.sim.agenda import Agenda
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Ledger
from pandomq.sim.machine import Machine

PROMISE: Final = "time goes on"
SLACK_MS: Final = 2_000
"""By so much a new root may be ahead: clocks drift, and it knows of the last entry later than it was written."""


class TimeGoesOn(Checker):
    def __init__(self, ledger: Ledger, agenda: Agenda, machines: Sequence[Machine]) -> None:
        super().__init__(ledger)
        self._agenda = agenda
        self._machines = machines
        self._gone: set[str] = set()
        """Whose process has ended since a root last did something."""
        self._last: tuple[int, int] | None = None
        """The world's time and the cluster's, when a root last did something."""

    def stepped(self, machine: Machine) -> None:
        if machine.serving:
            self._last = (self._agenda.now_ms, machine.broker_ms)
            self._gone.clear()

    def ended(self, machine: Machine) -> None:
        if machine.renewing:
            # Its process lives on, and knows what time it is.
            return
        self._gone.add(machine.name)
        if len(self._gone) == len(self._machines):
            # Nobody knows how long it has been: the next root goes by its own clock, even if it never gets to serve.
            self._last = None

    def opened(self, machine: Machine) -> None:
        node, last = machine.node, self._last
        if node is None or last is None or not node.peers.notices.followed:
            return
        gone_ms, cluster_ms = self._agenda.now_ms - last[0], machine.broker_ms - last[1]
        if cluster_ms > gone_ms * 11 // 10 + SLACK_MS:
            raise BrokenPromise(PROMISE, f"within {gone_ms} ms the cluster's time went on by {cluster_ms} ms")

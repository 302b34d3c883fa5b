"""The cluster's time keeps up with the world's, and messages and queues with a time to live expire.

While any process lives that knows the cluster's time, the time of a new root is late by at most the allowed drift of
clocks. (A broker that applies entries which may have been delayed, because it was suspended, corrects its older
knowledge by that delay.) Nothing is promised if all processes that knew the time have ended, since wall clocks may have
been set back.
"""

from __future__ import annotations

from typing import Final

from pandomq.node.log.cluster_time import DRIFT_DIVISOR
from pandomq.sim.agenda import Agenda
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.cluster.checkers.time import knows_time
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger
from pandomq.sim.machine import Machine

PROMISE: Final = "the cluster's time advances through standstills"
LATE: Final = "what has a time to live goes"
SLACK_MS: Final = 5_000


class HoursPass(Checker):
    def __init__(self, ledger: WorldLedger, agenda: Agenda, machines: list[Machine]) -> None:
        super().__init__(ledger)
        self._agenda = agenda
        self._machines = machines
        self._confirmed_ms: dict[SentMessage, int] = {}
        """The cluster's time at which a client knew that the message was in the queue."""
        self._gone: set[str] = set()
        self._longest_ms = 0
        """The longest standstill."""
        self._last: tuple[int, int] | None = None
        """The world's time and the cluster's time at the last step of a root; None after all processes have ended."""

    def confirmed(self, message: SentMessage, machine: Machine) -> None:
        root = next((one for one in self._machines if one.serving), None)
        if root is not None:
            self._confirmed_ms[message] = root.broker_ms

    def leapt(self, span_ms: int) -> None:
        self._longest_ms = max(self._longest_ms, span_ms)

    def stepped(self, machine: Machine) -> None:
        if machine.serving:
            self._last = (self._agenda.now_ms, machine.broker_ms)
            self._gone.clear()

    def ended(self, machine: Machine) -> None:
        if not machine.renewing:
            self._gone.add(machine.name)
            if not any(one.name not in self._gone and knows_time(one) for one in self._machines):
                self._last = None

    def opened(self, machine: Machine) -> None:
        if self._last is None:
            return
        gone_ms, cluster_ms = self._agenda.now_ms - self._last[0], machine.broker_ms - self._last[1]
        drift_ms = (gone_ms + self._longest_ms) // DRIFT_DIVISOR
        if cluster_ms < gone_ms - drift_ms - SLACK_MS:
            raise BrokenPromise(PROMISE, f"within {gone_ms} ms the cluster's time went on by {cluster_ms} ms only")

    def finished(self, machine: Machine) -> None:
        for queue, messages in self.ledger.left.items():
            ttl_ms = self.ledger.kinds[queue].ttl_ms
            for message in messages if ttl_ms else ():
                due_ms = self._confirmed_ms.get(message, machine.broker_ms) + ttl_ms
                if machine.broker_ms > due_ms + SLACK_MS:
                    raise BrokenPromise(
                        LATE, f"{message} is in {queue}, {machine.broker_ms - due_ms} ms after its time"
                    )

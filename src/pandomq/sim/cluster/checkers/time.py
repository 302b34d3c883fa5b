"""The cluster's time advances with the world's, whichever broker is root and whatever its wall clock shows (D8).

While any broker that knows the time is linked with others, wall clocks do not count at all: a new root is ahead of the
last one by no more than the drift of monotonic clocks since the last entry. After a restart of all brokers, or of all
but one that reads its store while the others elect a root, the new root measures the elapsed time with its own wall
clock; the time may be wrong by as much as that clock has jumped ahead. In no case is the
time of a new root before the last entry of its log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pandomq.node.log.cluster_time import DRIFT_DIVISOR
from pandomq.sim.agenda import Agenda
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, WorldLedger
from pandomq.sim.machine import Machine

PROMISE: Final = "the cluster's time advances"
BACK: Final = "time does not go back"
SLACK_MS: Final = 100
"""The largest lead of a new root, beyond the drift of clocks."""
FORGOTTEN_SLACK_MS: Final = 3_000
"""The same if no broker has told it the time: brokers save the lead of their clocks only if it has changed by a second,
and clocks drift until then."""


def knows_time(machine: Machine) -> bool:
    """Whether its process can tell others the cluster's time. A process that has started recently, has followed no root
    yet, and was not told the time by another broker, cannot."""
    disk = None if machine.node is None else machine.node._disk
    if machine.renewing or disk is None:
        # Between two lives a process keeps its knowledge.
        return machine.renewing
    return disk.time.last_ahead_ms is not None or disk.replication.replica.told_ahead_ms is not None


class _Anchor(NamedTuple):
    world_ms: int
    running_ms: int
    """The world's time without leaps: clocks drift apart only while events happen."""
    cluster_ms: int

    def late_ms(self, earlier: _Anchor) -> int:
        """Returns by how much less the cluster's time has advanced than the world's."""
        return self.world_ms - earlier.world_ms - (self.cluster_ms - earlier.cluster_ms)

    def drift_ms(self, earlier: _Anchor) -> int:
        return (self.running_ms - earlier.running_ms) // DRIFT_DIVISOR


class TimeGoesOn(Checker):
    def __init__(self, ledger: WorldLedger, agenda: Agenda, machines: Sequence[Machine]) -> None:
        super().__init__(ledger)
        self._agenda = agenda
        self._machines = machines
        self._gone: set[str] = set()
        """Machines whose process has ended since the last step of a root."""
        self._away: set[str] = set()
        """Machines that have restarted their state since then, in the same process."""
        self._last: _Anchor | None = None
        """The last step of a root that was not late. A root that knows only an old entry may be late, until another
        broker with better knowledge is root."""
        self._forgotten = False
        """Whether every process that knew the time has ended since then."""

    def stepped(self, machine: Machine) -> None:
        if machine.serving:
            now = self._now(machine)
            if self._last is None or now.late_ms(self._last) <= now.drift_ms(self._last):
                self._last = now
            self._gone.clear()
            self._away.clear()
            self._forgotten = False

    def ended(self, machine: Machine) -> None:
        if machine.renewing:
            # Its process lives on, and knows the time; but it reads its store, and tells nobody meanwhile.
            self._away.add(machine.name)
        else:
            self._gone.add(machine.name)
        if not any(one.name not in self._gone | self._away and knows_time(one) for one in self._machines):
            # The next root may be elected by brokers that do not know how much time has passed: it uses its own clock,
            # even if it never serves.
            self._forgotten = True

    def begin_epoch(self) -> None:
        """A broker was promoted by force; it may lack all earlier knowledge."""
        self._last = None

    def _now(self, machine: Machine) -> _Anchor:
        now_ms = self._agenda.now_ms
        return _Anchor(now_ms, now_ms - self.ledger.leapt_ms, machine.broker_ms)

    def _entry_ms(self, machine: Machine) -> int:
        """Returns the time of the last entry that it has from another root."""
        assert machine.node is not None
        return machine.node.last_ms

    def opened(self, machine: Machine) -> None:
        if machine.broker_ms < self._entry_ms(machine):
            back_ms = self._entry_ms(machine) - machine.broker_ms
            raise BrokenPromise(BACK, f"the new root {machine.name} is {back_ms} ms behind the last entry of its log")
        last = self._last
        if last is None:
            return
        now = self._now(machine)
        if self._forgotten:
            # The broker that took the time from its wall clock need not be the one that serves later.
            slack_ms = max(one.wall.leaps_ms for one in self._machines) + FORGOTTEN_SLACK_MS
        else:
            # Since the last entry that it knows, it has used its own clock.
            entry_age_ms = max(0, min(last.cluster_ms - self._entry_ms(machine), last.running_ms))
            slack_ms = entry_age_ms // DRIFT_DIVISOR + SLACK_MS
        if -now.late_ms(last) > now.drift_ms(last) + slack_ms:
            gone_ms, cluster_ms = now.world_ms - last.world_ms, now.cluster_ms - last.cluster_ms
            raise BrokenPromise(PROMISE, f"within {gone_ms} ms the cluster's time went on by {cluster_ms} ms")

"""The times that the simulator's checkers of the cluster's time accept from a new root."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.sim.agenda import Agenda
from pandomq.sim.checkers.confirmed_kept import WRITTEN_MS, ConfirmedKept
from pandomq.sim.checkers.hours import HoursPass
from pandomq.sim.cluster.checkers.time import FORGOTTEN_SLACK_MS, SLACK_MS, TimeGoesOn
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger
from pandomq.sim.queues import KINDS, PLAIN

BEGIN_MS = 1_000_000
HOUR_MS = 3_600_000


class Cluster:
    """Two brokers; `n1` is root and writes its last entry at the beginning."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.ledger = WorldLedger()
        self.machines = [self._machine(name) for name in ("n1", "n2")]
        self.goes_on = TimeGoesOn(self.ledger, self.agenda, self.machines)
        self.passes = HoursPass(self.ledger, self.agenda, self.machines)
        self.step("n1", BEGIN_MS)

    def _machine(self, name: str) -> Any:
        replica = SimpleNamespace(told_ahead_ms=None)
        time = SimpleNamespace(last_ahead_ms=0)
        disk = SimpleNamespace(time=time, replication=SimpleNamespace(replica=replica))
        node = SimpleNamespace(_disk=disk, last_ms=BEGIN_MS)
        wall = SimpleNamespace(leaps_ms=0)
        return SimpleNamespace(name=name, node=node, renewing=False, serving=False, broker_ms=0, wall=wall)

    def __getitem__(self, name: str) -> Any:
        return next(machine for machine in self.machines if machine.name == name)

    def step(self, name: str, cluster_ms: int) -> None:
        self[name].serving, self[name].broker_ms = True, cluster_ms
        self.goes_on.stepped(self[name])
        self.passes.stepped(self[name])

    def end(self, name: str) -> None:
        self[name].serving = False
        self.goes_on.ended(self[name])
        self.passes.ended(self[name])

    def leap(self, span_ms: int) -> None:
        self.agenda.leap(span_ms)
        self.ledger.leapt_ms += span_ms
        self.passes.leapt(span_ms)

    def open(self, name: str, cluster_ms: int) -> None:
        self[name].broker_ms = cluster_ms
        self.goes_on.opened(self[name])
        self.passes.opened(self[name])
        self.step(name, cluster_ms)


def test_a_new_root_is_ahead_by_no_more_than_clocks_drift() -> None:
    cluster = Cluster()
    cluster.agenda.run(2_000)
    cluster.end("n1")
    cluster.open("n2", BEGIN_MS + 2_000 + 200 + SLACK_MS)
    with pytest.raises(BrokenPromise, match="the cluster's time advances"):
        cluster.open("n1", BEGIN_MS + 3_000)


def test_clocks_do_not_drift_while_time_leaps() -> None:
    cluster = Cluster()
    cluster.leap(HOUR_MS)
    with pytest.raises(BrokenPromise, match="the cluster's time advances"):
        cluster.open("n2", BEGIN_MS + HOUR_MS + SLACK_MS + 1)


def test_a_root_without_the_time_of_others_may_be_ahead_by_the_unsaved_lead() -> None:
    cluster = Cluster()
    cluster.end("n1")
    cluster.end("n2")
    cluster.open("n2", BEGIN_MS + FORGOTTEN_SLACK_MS)


def test_a_broker_that_reads_its_store_cannot_tell_the_time_to_the_next_root() -> None:
    """Brokers that know no time elect a root meanwhile, which has only its wall clock."""
    cluster = Cluster()
    cluster.agenda.run(2_000)
    cluster["n2"].wall.leaps_ms = HOUR_MS
    cluster.end("n2")
    cluster["n1"].renewing = True
    cluster.end("n1")
    cluster.open("n2", BEGIN_MS + 2_000 + HOUR_MS)


def test_a_root_after_one_that_was_late_may_know_better() -> None:
    """The first one was suspended, and took an old entry to be no older than clocks may drift."""
    cluster = Cluster()
    cluster.leap(HOUR_MS)
    cluster.open("n1", BEGIN_MS + HOUR_MS * 9 // 10)
    cluster.open("n2", BEGIN_MS + HOUR_MS)
    with pytest.raises(BrokenPromise, match="the cluster's time advances"):
        cluster.open("n1", BEGIN_MS + HOUR_MS + SLACK_MS + 1)


def test_time_does_not_go_back_before_the_last_entry() -> None:
    cluster = Cluster()
    cluster.end("n1")
    cluster.end("n2")
    with pytest.raises(BrokenPromise, match="time does not go back"):
        cluster.open("n2", BEGIN_MS - 1)


@pytest.mark.parametrize("told", [False, True])
def test_time_does_not_stand_still_while_a_broker_runs_that_received_it(told: bool) -> None:
    cluster = Cluster()
    cluster["n2"].node._disk.time.last_ahead_ms = None
    cluster["n2"].node._disk.replication.replica.told_ahead_ms = 0 if told else None
    cluster.leap(HOUR_MS)
    cluster.step("n1", BEGIN_MS + HOUR_MS)
    cluster.end("n1")
    cluster.leap(HOUR_MS)
    if told:
        with pytest.raises(BrokenPromise, match="the cluster's time advances through standstills"):
            cluster.open("n2", BEGIN_MS + HOUR_MS)
    else:
        cluster.open("n2", BEGIN_MS + HOUR_MS)


@pytest.mark.parametrize(("age_ms", "legal"), [(HOUR_MS // 2, False), (2 * HOUR_MS, True)])
def test_a_confirmed_message_may_be_gone_after_a_leap_only_if_its_time_is_over(age_ms: int, legal: bool) -> None:
    ledger = WorldLedger()
    ledger.kinds["patient"] = next(kind for kind in KINDS if kind.name == "patient")
    ledger.leapt_ms = 3 * HOUR_MS
    message = SentMessage(1, 1, ("patient",), True, 0, None, 1, BEGIN_MS, confirmed=True)
    ledger.messages[b"1:1"] = message
    root: Any = SimpleNamespace(life=1, broker_ms=BEGIN_MS + age_ms)
    if legal:
        ConfirmedKept(ledger).finished(root)
    else:
        with pytest.raises(BrokenPromise, match="no confirmed loss"):
            ConfirmedKept(ledger).finished(root)


@pytest.mark.parametrize(("awake_ms", "legal"), [(WRITTEN_MS, True), (WRITTEN_MS + 1, False)])
def test_a_transient_message_is_on_disks_only_after_a_time_in_which_the_world_did_not_stand_still(
    awake_ms: int, legal: bool
) -> None:
    """All brokers are killed after a standstill; their disks did not work during it."""
    ledger = WorldLedger()
    ledger.kinds["plain"] = PLAIN
    message = SentMessage(1, 1, ("plain",), False, 0, None, 1, 900, confirmed=True, confirmed_life=1, confirmed_ms=1000)
    ledger.messages[b"1:1"] = message
    ledger.leaps.append((1010 + HOUR_MS, HOUR_MS))
    ledger.ends_ms = [1000 + HOUR_MS + awake_ms] * 3
    checker = ConfirmedKept(ledger)
    checker.in_memories = True
    root: Any = SimpleNamespace(life=2, broker_ms=BEGIN_MS)
    if legal:
        checker.finished(root)
    else:
        with pytest.raises(BrokenPromise, match="no confirmed loss"):
            checker.finished(root)

"""A broker knows after a restart by how much its clock was ahead of the cluster's time."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

from pandomq.ids import LogIndex, NodeName
from pandomq.journal.hard_state import decode_copy
from pandomq.journal.names import STATE
from pandomq.kernel.records import ENTRY_START, VERSION
from pandomq.node.broker_state import BrokerLife
from pandomq.node.log.clock_lead import LOWERED_MS, TOLERANCE_MS, ClockLead
from pandomq.node.log.cluster_time import ClusterTime
from pandomq.replica.protocol.entries import TermBegins, encode_entry
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss
from tests.unit.node.lives import Life

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
HOUR_MS = 3_600_000


class Known:
    """The lead of a broker whose clock shows `NOW_MS`, and the disk that keeps it."""

    def __init__(self) -> None:
        self.life = Life(SimDisk(Random(1)), NOW_MS)
        self.lead = ClockLead(self.life.journal)
        self.monotonic_ms = 5_000
        self.pass_time(0)

    def pass_time(self, milliseconds: int) -> None:
        self.monotonic_ms += milliseconds
        self.lead.clock_ms, self.lead.monotonic_ms = NOW_MS, self.monotonic_ms


def entry(at_ms: int) -> bytes:
    return ENTRY_START.pack(VERSION, at_ms, 0)


def test_a_clock_that_is_right_is_not_worth_a_save() -> None:
    known = Known()
    for at_ms in (NOW_MS, NOW_MS - TOLERANCE_MS, NOW_MS + DAY_MS):
        known.lead.received([entry(at_ms)])
    assert not known.lead.unsaved and known.lead.saved_ms == 0


def test_a_larger_lead_is_saved_at_once_and_a_smaller_one_after_a_while() -> None:
    known = Known()
    known.lead.received([entry(NOW_MS - DAY_MS)])
    assert known.lead.saved_ms == DAY_MS
    known.lead.received([entry(NOW_MS - 2 * DAY_MS)])
    assert known.lead.saved_ms == 2 * DAY_MS
    known.pass_time(LOWERED_MS - 1)
    known.lead.received([entry(NOW_MS)])
    assert known.lead.saved_ms == 2 * DAY_MS
    known.pass_time(1)
    known.lead.received([entry(NOW_MS)])
    assert known.lead.saved_ms == 0


def test_the_newest_entry_counts_and_entries_of_the_replica_have_no_time() -> None:
    known = Known()
    own = encode_entry(TermBegins(NodeName("n1")))
    known.lead.received([own])
    known.lead.received([entry(NOW_MS - DAY_MS), entry(NOW_MS), own])
    assert known.lead.saved_ms == 0


def test_nothing_is_acknowledged_before_the_lead_is_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(SimDisk(Random(1)), NOW_MS)
    disk_log = life.node._disk
    assert disk_log is not None
    lead, replicated = disk_log.time.lead, disk_log.replication.log
    durable = replicated.durable
    told: list[tuple[int, bool]] = []

    def note(index: LogIndex) -> None:
        told.append((index, lead.unsaved))
        durable(index)

    monkeypatch.setattr(replicated, "durable", note)
    # The entry is on its way to the disk before the lead is.
    index = replicated.propose(entry(NOW_MS), prompt=False)
    life.turn()
    lead.compare(NOW_MS - DAY_MS)
    assert lead.unsaved
    life.until(lambda: told)
    assert told == [(index, False)]
    life.disk.crash(Loss.ALL)
    copy = decode_copy(life.disk.content(STATE))
    assert copy is not None and copy[1].clock_ahead_ms >= DAY_MS


class _Entries:
    """Stands for what was applied last."""

    last_ms = 0


def follow(time: ClusterTime, entries: _Entries) -> None:
    """A root has sent that entry, and it is committed at once."""
    time.received([entry(entries.last_ms)])
    time.applied()


@pytest.mark.parametrize("hours", [1, 25])
def test_an_entry_that_was_under_way_for_hours_does_not_set_the_time_back(hours: int) -> None:
    entries = _Entries()
    time = ClusterTime(None, entries, Life(SimDisk(Random(1)), NOW_MS).journal)  # type: ignore[arg-type]
    span_ms = hours * 3_600_000
    for at_ms, monotonic_ms in ((NOW_MS, 5_000), (NOW_MS + 10, 5_000 + span_ms)):
        entries.last_ms = at_ms
        time.note_time(NOW_MS, monotonic_ms)
        follow(time, entries)
    ahead_ms = time.ahead_ms(followed=True)
    assert ahead_ms is not None
    # The clocks of the brokers drift: it may be a tenth less than passed, and is never more.
    assert NOW_MS + span_ms - span_ms // 10 <= 5_000 + span_ms + ahead_ms <= NOW_MS + span_ms


@pytest.mark.parametrize("every_ms", [1, 7, 40, 3_000])
def test_a_fast_clock_comes_back_to_what_the_root_writes(every_ms: int) -> None:
    """The root may write at any rate. The clock of the follower is faster by 9 %, and it was ahead when it began."""
    entries = _Entries()
    time = make_time(entries)
    time.last_ahead_ms = NOW_MS + 500
    for passed_ms in range(0, 60_000, every_ms):
        entries.last_ms = NOW_MS + passed_ms
        time.note_time(NOW_MS, passed_ms + passed_ms * 9 // 100)
        follow(time, entries)
    ahead_ms = time.ahead_ms(followed=True)
    assert ahead_ms is not None
    assert 0 <= time.monotonic_ms + ahead_ms - entries.last_ms <= 100


def test_an_entry_that_waited_to_be_committed_takes_nothing_from_the_time() -> None:
    """There was no root for a minute, and the next one commits what the last one had written."""
    entries = _Entries()
    time = make_time(entries)
    time.note_time(NOW_MS, 5_000)
    time.received([entry(NOW_MS)])
    entries.last_ms = NOW_MS
    time.note_time(NOW_MS, 65_000)
    time.applied()
    assert time.ahead_ms(followed=True) == NOW_MS - 5_000


class _Replica:
    """Stands for the replica of a broker that was told the time, and has followed no root."""

    told_ahead_ms: int | None = 7_000
    known_ms: int | None = None

    def know_time(self, ahead_ms: int | None) -> None:
        self.known_ms = ahead_ms


def test_a_broker_that_received_the_time_passes_it_on() -> None:
    time = ClusterTime(None, _Entries(), Life(SimDisk(Random(1)), NOW_MS).journal)  # type: ignore[arg-type]
    replica = _Replica()
    replication = SimpleNamespace(life=BrokerLife(), replica=replica)
    time.exchange(replication, has_news=False)  # type: ignore[arg-type]
    assert replica.known_ms == 7_000


def make_time(entries: _Entries, broker: object = None) -> ClusterTime:
    return ClusterTime(broker, entries, Life(SimDisk(Random(1)), NOW_MS).journal)  # type: ignore[arg-type]


def test_an_old_entry_does_not_set_back_the_time_that_a_process_had_before_it_restarted() -> None:
    """It was root, and then follows one that has only the entries of the last root to send."""
    entries = _Entries()
    time = make_time(entries)
    time.last_ahead_ms = NOW_MS
    time.note_time(NOW_MS + HOUR_MS, HOUR_MS)
    entries.last_ms = NOW_MS + 10
    follow(time, entries)
    assert time.ahead_ms(followed=True) == NOW_MS


def test_an_old_entry_does_not_set_back_the_time_that_a_newly_started_broker_received() -> None:
    entries = _Entries()
    time = make_time(entries)
    # The time in its own log takes precedence.
    entries.last_ms = NOW_MS
    time.note_time(NOW_MS + HOUR_MS, HOUR_MS)
    time.applied()
    assert time.ahead_ms(followed=False) is None
    time.told(NOW_MS, followed=False)
    time.told(NOW_MS - HOUR_MS, followed=False)
    entries.last_ms = NOW_MS + 10
    follow(time, entries)
    assert time.ahead_ms(followed=True) == NOW_MS


def test_the_times_of_other_brokers_do_not_change_that_of_a_follower() -> None:
    entries = _Entries()
    time = make_time(entries)
    entries.last_ms = NOW_MS
    time.note_time(NOW_MS, 5_000)
    follow(time, entries)
    time.told(NOW_MS + HOUR_MS, followed=True)
    assert time.ahead_ms(followed=True) == NOW_MS - 5_000


@pytest.mark.parametrize("has_news", [False, True])
def test_a_broker_that_has_applied_entries_of_its_own_store_only_believes_others(has_news: bool) -> None:
    """It was down for an hour, and its root has written nothing since, or has."""
    entries = _Entries()
    time = make_time(entries)
    entries.last_ms = NOW_MS
    time.note_time(NOW_MS + HOUR_MS, 5_000)
    follow(time, entries)
    replica = _Replica()
    replica.told_ahead_ms = NOW_MS + HOUR_MS - 5_000
    replication = SimpleNamespace(life=BrokerLife(), replica=replica)
    time.exchange(replication, has_news=has_news)  # type: ignore[arg-type]
    assert replica.known_ms == NOW_MS - 5_000 + (0 if has_news else HOUR_MS)
    # Of two that were told one after the other the later counts, unless they hardly differ.
    for ahead_ms in (NOW_MS, NOW_MS + HOUR_MS - 6_000):
        time.told(ahead_ms, followed=False)
    assert time.ahead_ms(followed=True) == NOW_MS + HOUR_MS - 6_000


@pytest.mark.parametrize(("later_ms", "counts"), [(1_000, False), (HOUR_MS, True)])
def test_a_new_root_that_followed_the_last_one_goes_by_its_entries(later_ms: int, counts: bool) -> None:
    """The clock of another broker, which received nothing from the root for longer, is fast. But if that one is ahead
    by an hour, the entries were under way for so long."""
    entries = _Entries()
    broker = SimpleNamespace(clock_ahead_ms=0)
    time = make_time(entries, broker)
    entries.last_ms = NOW_MS
    time.note_time(NOW_MS, 5_000)
    follow(time, entries)
    taken_ms = time.take_over(NOW_MS, NOW_MS - 5_000 + later_ms, followed=True)
    assert taken_ms == NOW_MS + (later_ms if counts else 0)


def test_the_time_of_a_new_root_is_not_before_its_last_entry() -> None:
    """Another running broker received an older time."""
    entries = _Entries()
    broker = SimpleNamespace(clock_ahead_ms=0)
    time = make_time(entries, broker)
    time.note_time(NOW_MS + HOUR_MS, HOUR_MS)
    entries.last_ms = NOW_MS + HOUR_MS - 10
    assert time.take_over(NOW_MS + HOUR_MS, NOW_MS - 2 * HOUR_MS, followed=False) == NOW_MS + HOUR_MS - 10
    assert broker.clock_ahead_ms == 10

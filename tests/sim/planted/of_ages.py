"""Bugs of eviction and expiration, and of the time that they depend on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Any, Final

from pandomq.broker.leases.expiry import LeaseExpiry
from pandomq.broker.log.commands import DecideBatch, FinishBatch, NoteSequences
from pandomq.broker.log.revival import Revival
from pandomq.broker.publishing.deduplication import Deduplication
from pandomq.broker.publishing.named_producers import Key, NamedProducers
from pandomq.broker.staging.decisions import Decisions
from pandomq.broker.staging.staging import Staging
from pandomq.node.log.cluster_time import ClusterTime
from tests.sim.planted.planted_bug import Patch, PlantedBug


def _forget_unlogged(patch: Patch) -> None:
    apply = NamedProducers.apply

    def keep(table: NamedProducers, command: NoteSequences) -> None:
        apply(table, NoteSequences(command.now_ms, command.notes, []))

    patch.set(NamedProducers, "apply", keep)


def _never_forget(patch: Patch) -> None:
    patch.set(Deduplication, "_forget", lambda deduplication, now_ms, users: [])


def _forget_one_early(patch: Patch) -> None:
    forget = Deduplication._forget

    def hasty(deduplication: Deduplication, now_ms: int, users: Collection[str]) -> list[Key]:
        forgotten = forget(deduplication, now_ms, users)
        table, limits = deduplication._broker.state.named_producers, deduplication._broker.limits
        while len(table) >= limits.producers_max:
            first = table.first()
            table.forget(*first.key)
            forgotten.append(first.key)
        return forgotten

    patch.set(Deduplication, "_forget", hasty)


def _restored_now(patch: Patch) -> None:
    """A snapshot restores the ages of producers as if they were noted at its end."""
    finish = Revival.finish

    def renew(revival: Revival, now_ms: int, **more: Any) -> None:
        finish(revival, now_ms, **more)
        for producer in revival._broker.state.named_producers:
            producer.noted_ms = now_ms

    patch.set(Revival, "finish", renew)


def _queries_by_insertion(patch: Patch) -> None:
    apply = Decisions.apply

    def stay(decisions: Decisions, command: DecideBatch | FinishBatch) -> None:
        order = list(decisions._last)
        apply(decisions, command)
        rows = decisions._last
        kept = [key for key in order if key in rows] + [key for key in rows if key not in order]
        decisions._last = OrderedDict((key, rows[key]) for key in kept)

    patch.set(Decisions, "apply", stay)


def _queries_never_forgotten(patch: Patch) -> None:
    patch.set(Staging, "_forgotten", lambda staging, query: [])


def _no_lease_timer_after_takeover(patch: Patch) -> None:
    def begin_serving(expiry: LeaseExpiry) -> None:
        for lease in expiry._table:
            if lease.ending:
                expiry._read(lease)

    patch.set(LeaseExpiry, "begin_serving", begin_serving)


def _late_entry_sets_back(patch: Patch) -> None:
    def received(time: ClusterTime, payloads: Sequence[bytes]) -> None:
        entry_ms = time.lead.received(payloads)
        if entry_ms is not None:
            time._known_ms, time._heard_ms = entry_ms, time.monotonic_ms

    def applied(time: ClusterTime) -> None:
        if time._revival.last_ms != time._entry_ms:
            time._entry_ms = time._revival.last_ms
            time._known_ms, time._heard_ms = time._entry_ms, time.monotonic_ms

    patch.set(ClusterTime, "received", received)
    patch.set(ClusterTime, "applied", applied)


def _time_from_last_entry(patch: Patch) -> None:
    """A new root continues from the time of the last entry, however old that is."""
    take_over = ClusterTime.take_over

    def stand_still(time: ClusterTime, now_ms: int, told_ahead_ms: int | None, *, followed: bool) -> int:
        known_ms = take_over(time, now_ms, told_ahead_ms, followed=followed)
        last_ms = time._revival.last_ms
        if last_ms:
            time._broker.clock_ahead_ms += known_ms - last_ms
            time._known_ms = last_ms
            return int(last_ms)
        return known_ms

    patch.set(ClusterTime, "take_over", stand_still)


PLANTED_BUGS: Final = (
    PlantedBug("forget-unlogged", "Backups keep the producers that the root forgets.", _forget_unlogged, nodes=0),
    PlantedBug("producers-for-ever", "The broker never forgets a producer.", _never_forget, nodes=0),
    PlantedBug(
        "evict-one-early", "The broker remembers one producer less than it promises.", _forget_one_early, nodes=0
    ),
    PlantedBug(
        "restored-now", "After a restart all producers count as if they had just published.", _restored_now, nodes=0
    ),
    PlantedBug(
        "queries-by-insertion",
        "A query that commits remains the next one to be forgotten.",
        _queries_by_insertion,
        nodes=0,
    ),
    PlantedBug("queries-for-ever", "The broker never forgets a query.", _queries_never_forgotten, nodes=0),
    PlantedBug(
        "lease-timer-lost",
        "A new root does not check the leases that it finds for expiry.",
        _no_lease_timer_after_takeover,
        nodes=0,
    ),
    PlantedBug(
        "late-entry-sets-back",
        "An entry that arrives hours late sets the cluster's time back.",
        _late_entry_sets_back,
        nodes=0,
    ),
    PlantedBug(
        "time-from-last-entry",
        "A new root continues the cluster's time from the time of the last entry.",
        _time_from_last_entry,
        nodes=0,
    ),
)

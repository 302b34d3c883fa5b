"""Runs an audit: surveys all files, compares the logs, decodes the one log, and compares it with the ledgers.

Results for a file that will not change any more may be saved (`Notes`), so that an interrupted audit does not read it
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pandomq.pipeline.audit import spans
from pandomq.pipeline.audit.aside import BadAside, cut_entries, messages_in
from pandomq.pipeline.audit.chains import check_chains
from pandomq.pipeline.audit.findings import CutOff, Findings, Promise, Violation
from pandomq.pipeline.audit.limits import NAMED_MAX, TASK_BYTES, TOLERANCE_MS
from pandomq.pipeline.audit.logs import (
    Logs,
    Piece,
    arrange,
    compare_blocks,
    compare_entries,
    count_compared,
    wanted_exactly,
)
from pandomq.pipeline.audit.message_scan import Breach, MessageContents, exits_of, rows, scan_messages
from pandomq.pipeline.audit.notes import Notes
from pandomq.pipeline.audit.promises import JudgedRange, Promises
from pandomq.pipeline.audit.queues import QueueCatalogue
from pandomq.pipeline.audit.segment_scan import Exact, SegmentContents, SegmentPlace, exact, scan_segment
from pandomq.pipeline.audit.stores import StoreFiles, commands_in, has_grown, list_stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

Advance = Callable[[int], None]


@dataclass(frozen=True)
class AuditOptions:
    directories: Sequence[Path]
    ledgers: Sequence[Path] = ()
    first_ms: int | None = None
    end_ms: int | None = None
    tolerance_ms: int = TOLERANCE_MS
    notes: Path | None = None
    """Where to save results, to continue from there."""


@dataclass
class AuditCounts:
    """The data that was examined."""

    entries: int = 0
    bytes_read: int = 0
    messages: int = 0
    entered: int = 0
    left: int = 0
    lines: dict[str, int] = field(default_factory=dict)
    index_span: tuple[int, int] = (0, 0)
    time_span: tuple[int, int] = (0, 0)
    judged: tuple[int, int] = (0, 0)
    """Lines of ledgers are judged from the first time on, and before the second."""
    gaps: list[spans.Span] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """The duration of each part."""
    segments: list[SegmentContents] = field(default_factory=list)


class Audit:
    def __init__(self, session: SparkSession, options: AuditOptions, advance: Advance = lambda _: None) -> None:
        """Raises NoStore."""
        self._session = session
        self._options = options
        self._advance = advance
        self._begun_ms = round(time.time() * 1000)
        self._clock_s = time.monotonic()
        self.findings = Findings()
        self.account = AuditCounts()
        self.stores = list_stores(list(options.directories))
        self.catalogue = QueueCatalogue()

    def run(self) -> None:
        logs = self._compare()
        self._lap("survey and comparison")
        pieces = logs.plan()
        self._scan_messages(logs, pieces)
        self._lap("examination")
        cut_off, surplus = self._beside(logs)
        if self._options.ledgers:
            self._hold_against(logs, pieces, cut_off, surplus)
            self._lap("ledgers")
        else:
            for promise in (Promise.CONFIRMED, Promise.ACKED, Promise.ORDER):
                self.findings.of(promise).left_out("no ledger was given: it is not known what clients were told")

    def _lap(self, name: str) -> None:
        now_s = time.monotonic()
        self.account.seconds[name] = round(now_s - self._clock_s, 2)
        self._clock_s = now_s

    # The logs.

    def _compare(self) -> Logs:
        findings, account = self.findings, self.account
        places = [place for store in self.stores if not store.excerpts for place in store.places]
        notes = Notes(self._options.notes)
        known = {place: found for place in places if (found := notes.find(place)) is not None}
        scanned = list(known.values())
        self._advance(len(scanned))
        for one in self._spread(scan_segment, [place for place in places if place not in known], _size):
            notes.keep(one)
            scanned.append(one)
            self._advance(1)
        account.segments = scanned
        account.entries = sum(one.entries for one in scanned)
        account.bytes_read = sum(one.bytes_read for one in scanned)
        logs = arrange(self.stores, scanned, findings)
        compare_blocks(logs)
        wanted = wanted_exactly(logs, findings)
        compare_entries(logs, list(self._spread(_exact, wanted, lambda one: _size(one[0]))), findings)
        check_chains(logs, findings)
        count_compared(logs, findings)
        return logs

    def _spread(self, work: Callable[[T], R], items: Sequence[T], size: Callable[[T], int]) -> Iterator[R]:
        """Runs on executors, several small items in one task; yields results as they arrive."""
        if not items:
            return
        context = self._session.sparkContext
        # Two tasks for each core at least: otherwise the last one delays the others.
        task_bytes = min(TASK_BYTES, sum(map(size, items)) // (2 * context.defaultParallelism))
        groups: list[list[T]] = [[]]
        filled = 0
        for item in items:
            if filled and filled + size(item) > task_bytes:
                groups.append([])
                filled = 0
            groups[-1].append(item)
            filled += size(item)

        def run(parts: Iterable[list[T]]) -> Iterator[R]:
            return (work(item) for part in parts for item in part)

        yield from context.parallelize(groups, len(groups)).mapPartitions(run).toLocalIterator(prefetchPartitions=True)

    # The contents of the log.

    def _scan_messages(self, logs: Logs, pieces: Sequence[Piece]) -> None:
        account = self.account
        account.gaps = logs.gaps(list(pieces))
        found = list(self._spread(scan_messages, pieces, _size_of_piece))
        for one in found:
            if one.fault:
                self.findings.notes.append(f"{one.path}: {one.fault}")
                self._not_judged("files that could not be read again")
            if one.unknown:
                self.findings.notes.append(f"{one.path}: entries {list(one.unknown[:5])} have an unknown version")
                self._not_judged("entries of an unknown version", len(one.unknown))
        account.messages = sum(one.messages for one in found)
        account.entered = sum(one.entered for one in found)
        account.left = sum(one.left for one in found)
        covered = spans.joined(span for piece in pieces for span in piece.spans)
        account.index_span = (covered[0][0], covered[-1][1]) if covered else (0, 0)
        times = [ms for one in account.segments for ms in (one.first_ms, one.last_ms) if ms]
        account.time_span = (min(times), max(times)) if times else (0, 0)
        self._learn_queues(found)
        self._judge_numbers(pieces, found)
        if account.gaps:
            self._not_judged(f"entries {spans.words(account.gaps)} were deleted or are unreadable")
        if not logs.enough():
            self._not_judged("too few voters' logs were given: entries may be committed elsewhere")

    def _not_judged(self, reason: str, count: int = 0) -> None:
        for promise in (Promise.CONFIRMED, Promise.ACKED, Promise.ORDER):
            self.findings.of(promise).left_out(reason, count)

    def _learn_queues(self, found: Sequence[MessageContents]) -> None:
        if self.account.gaps:
            # Earlier declarations are in a snapshot.
            for store in self.stores:
                commands = next(filter(None, (commands_in(Path(path)) for path in store.snapshots)), None)
                if commands is not None:
                    self.catalogue.take(commands)
                    break
        self.catalogue.take(command for _, command in sorted(pair for one in found for pair in one.commands))
        self.catalogue.apply_policies()

    def _judge_numbers(self, pieces: Sequence[Piece], found: Sequence[MessageContents]) -> None:
        """Numbers of a queue only increase: within each file that is checked already; here from file to file."""
        highest: dict[int, int] = {}
        breaches = [breach for one in found for breach in one.breaches]
        count = sum(one.breach_count for one in found)
        for piece, one in zip(pieces, found, strict=True):
            floors = {span.queue_id: highest.get(span.queue_id, -1) for span in one.queues}
            if any(span.lowest <= floors[span.queue_id] for span in one.queues):
                (again,) = self._spread(partial(scan_messages, floors=floors), [piece], _size_of_piece)
                breaches = [breach for breach in breaches if breach not in one.breaches] + list(again.breaches)
                count += again.breach_count - one.breach_count
            for span in one.queues:
                highest[span.queue_id] = max(highest.get(span.queue_id, -1), span.highest)
        order, acked = self.findings.of(Promise.ORDER), self.findings.of(Promise.ACKED)
        order.judged += self.account.entered
        acked.judged += self.account.left
        if not count:
            return
        left = self._left_before(pieces, breaches)
        for breach in breaches:
            exit_index = left.get((breach.queue_id, breach.sequence), breach.index)
            if exit_index < breach.index:
                text = f"left the queue with entry {exit_index}, and entered it again with entry {breach.index}"
                acked.breaks(self._of(breach, Promise.ACKED, text, "no entry that brings it back"))
            else:
                text = f"entered the queue after one with offset {breach.highest}"
                order.breaks(self._of(breach, Promise.ORDER, text, f"an offset above {breach.highest}"))
        order.count += count - len(breaches)

    def _left_before(self, pieces: Sequence[Piece], breaches: Sequence[Breach]) -> dict[tuple[int, int], int]:
        wanted: dict[int, list[int]] = {}
        for breach in breaches:
            wanted.setdefault(breach.queue_id, []).append(breach.sequence)
        left: dict[tuple[int, int], int] = {}
        for part in self._spread(partial(exits_of, wanted=wanted), pieces, _size_of_piece):
            for queue_id, sequence, index in part:
                left[queue_id, sequence] = min(index, left.get((queue_id, sequence), index))
        return left

    def _of(self, breach: Breach, promise: Promise, text: str, expected: str) -> Violation:
        queue = self.catalogue.name(breach.queue_id)
        return Violation(promise, text, expected, breach.message, queue, breach.sequence, breach.index)

    # Messages that are not in the log.

    def _beside(self, logs: Logs) -> tuple[set[str], dict[str, str]]:
        """Ids of messages that were cut off by force, and of those that a broker has outside of the log."""
        cut_off: set[str] = set()
        for store in self.stores:
            for path in store.asides:
                self._read_aside(store, Path(path), cut_off)
        surplus: dict[str, str] = {}
        epochs = {log.name: log.files.epoch for log in logs.brokers}
        newest = max(epochs.values(), default=0)
        for piece in logs.surplus():
            broker = piece.place.broker
            forced = epochs[broker] < newest
            for batch in rows(piece):
                for row in batch.to_pylist():
                    if row["leaves"]:
                        continue
                    message = row["message_id"] or ""
                    if forced:
                        cut_off.add(message)
                        queue = self.catalogue.name(row["queue_id"])
                        self.findings.cuts(
                            CutOff(piece.place.path, broker, row["index"], queue, row["sequence"], message)
                        )
                    elif len(surplus) < NAMED_MAX:
                        surplus[message] = broker
            if not forced:
                words = spans.words(list(piece.spans))
                self.findings.notes.append(f"{broker}: entries {words} were never committed, and are not in the log")
        return cut_off - {""}, surplus

    def _read_aside(self, store: StoreFiles, path: Path, cut_off: set[str]) -> None:
        try:
            for index, payload in cut_entries(path):
                for queue_id, sequence, message in messages_in(payload):
                    cut_off.add(message)
                    queue = self.catalogue.name(queue_id)
                    self.findings.cuts(CutOff(str(path), store.broker, index, queue, sequence, message))
        except (BadAside, OSError) as error:
            self.findings.notes.append(f"{store.broker}: {path}: {error}")
            self._not_judged("a side file of a forced promotion is unreadable")

    # The ledgers.

    def _hold_against(self, logs: Logs, pieces: Sequence[Piece], cut_off: set[str], surplus: dict[str, str]) -> None:
        paths = [str(path.resolve()) for path in self._options.ledgers]
        promises = Promises(self._session, pieces, paths, self.catalogue, self.findings)
        try:
            self.account.lines = promises.read_ledgers()
            judged = self._range(pieces)
            self.account.judged = (judged.first_ms, judged.end_ms)
            promises.judge(judged)
            promises.check_confirmed(cut_off, surplus, logs.enough())
            promises.check_acked()
            promises.check_order()
        finally:
            promises.close()

    def _range(self, pieces: Sequence[Piece]) -> JudgedRange:
        """Events in the ledgers from after the reading of the logs are not judged."""
        options = self._options
        first_ms = options.first_ms if options.first_ms is not None else 0
        end_ms = options.end_ms if options.end_ms is not None else self._begun_ms
        if any(map(has_grown, self.stores)):
            # Brokers continue to run, and so do their clients, whose clocks may be behind.
            end_ms = min(end_ms, self._begun_ms - options.tolerance_ms)
        return JudgedRange(first_ms, end_ms, options.tolerance_ms, self._gap_times(pieces))

    def _gap_times(self, pieces: Sequence[Piece]) -> list[tuple[int, int]]:
        """When the entries were written that no broker has or can read: between the entries around them."""
        told = sorted((one.first_index, one.first_ms, one.last_index, one.last_ms) for one in self.account.segments)
        times = []
        for first, last in self.account.gaps:
            before = [last_ms for _, _, last_index, last_ms in told if last_ms and last_index < first]
            after = [first_ms for first_index, first_ms, _, _ in told if first_ms and first_index > last]
            times.append((max(before, default=0), min(after, default=2**62)))
        return times


def _exact(wanted: tuple[SegmentPlace, frozenset[int]]) -> Exact:
    return exact(*wanted)


def _size(place: SegmentPlace) -> int:
    return place.size_bytes


def _size_of_piece(piece: Piece) -> int:
    return piece.place.size_bytes

"""Compares the brokers' logs: where they agree, where they must agree and do not, and which of them is the log.

Logs compare by epoch, then term, then index (docs/replication.md). The highest holds everything that was ever
committed, if enough of the voters are there; so it is *the log*, and others replace unreadable parts of it. Another log
may end in entries that the log does not have: its broker wrote them, but they were not committed as far as it knew.
They are a *surplus*, and harmless unless they were confirmed. Any other difference is a violation: two entries of one
index and term are one entry, and logs that agree on one agree on all before it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pandomq.pipeline.audit import spans
from pandomq.pipeline.audit.findings import Findings, Promise, Violation
from pandomq.pipeline.audit.limits import BLOCK_ENTRIES, EXACT_BLOCKS_MAX, NAMED_MAX
from pandomq.pipeline.audit.segment_scan import Exact, SegmentContents, SegmentPlace, blocks_of
from pandomq.pipeline.audit.spans import Span
from pandomq.pipeline.audit.stores import StoreFiles
from pandomq.pipeline.audit.views import Numbers
from pandomq.replica.members.quorum import half, reached_by

AGREE = "the same checksum on every broker"
NEVER = 2**62
_NO_ROWS: Final[Numbers] = np.zeros((0, 3), np.int64)


@dataclass
class BrokerLog:
    files: StoreFiles
    segments: list[SegmentContents]
    """Segments with entries, in the order of their indexes."""
    surplus_from: int = NEVER
    """Entries from here on are not in the log."""

    @property
    def name(self) -> str:
        return self.files.broker

    @property
    def rank(self) -> tuple[int, int, int]:
        if not self.segments:
            return self.files.epoch, 0, 0
        last = self.segments[-1]
        return self.files.epoch, last.terms[-1][1] if last.terms else 0, last.last_index

    def readable(self) -> list[Span]:
        """Complete entries, whether they are in the log or not."""
        held = spans.joined((segment.first_index, segment.last_index) for segment in self.segments)
        broken = [(damage.first_index, damage.last_index) for segment in self.segments for damage in segment.damages]
        return spans.without(held, spans.joined(broken))


@dataclass(frozen=True)
class Piece:
    """Entries of one file to decode."""

    place: SegmentPlace
    spans: tuple[Span, ...]


@dataclass
class Logs:
    brokers: list[BrokerLog]
    """Brokers, the highest log first."""
    differing: set[int] = field(default_factory=set)
    """Blocks that must be compared entry by entry."""

    @property
    def last_index(self) -> int:
        return max((log.segments[-1].last_index for log in self.brokers[:1] if log.segments), default=0)

    def enough(self) -> bool:
        """Every committed entry is in at least one of these logs."""
        voters = set(self.brokers[0].files.voters) if self.brokers else set()
        if not voters:
            return False
        missing = voters - {log.name for log in self.brokers if log.segments}
        return len(missing) < half(len(voters))

    # The parts of the log.

    def plan(self) -> list[Piece]:
        """Each entry of the log once, from the highest broker that has it; in the order of the log."""
        covered: list[Span] = []
        pieces: list[tuple[int, Piece]] = []
        for log in self.brokers:
            for segment in log.segments:
                last_index = min(segment.last_index, log.surplus_from - 1)
                broken = spans.joined((damage.first_index, damage.last_index) for damage in segment.damages)
                whole = spans.without([(segment.first_index, last_index)], broken)
                left = spans.without(whole, covered)
                if left:
                    pieces.append((left[0][0], Piece(segment.place, tuple(left))))
                    covered = spans.joined([*covered, *left])
        return [piece for _, piece in sorted(pieces, key=lambda pair: pair[0])]

    def surplus(self) -> list[Piece]:
        """Entries that are not in the log."""
        return [
            Piece(segment.place, ((max(segment.first_index, log.surplus_from), segment.last_index),))
            for log in self.brokers
            for segment in log.segments
            if segment.last_index >= log.surplus_from
        ]

    def gaps(self, pieces: list[Piece]) -> list[Span]:
        """Entries of the log that no broker has or can read."""
        return spans.without([(1, self.last_index)], spans.joined(span for piece in pieces for span in piece.spans))


def arrange(stores: list[StoreFiles], scanned: list[SegmentContents], findings: Findings) -> Logs:
    by_broker: dict[str, list[SegmentContents]] = defaultdict(list)
    for one in scanned:
        if one.fault:
            findings.notes.append(f"{one.place.broker}: {one.place.path}: {one.fault}")
            findings.of(Promise.REPLICAS).left_out(f"{one.place.broker} has unreadable files")
        elif not one.empty:
            by_broker[one.place.broker].append(one)
        for damage in one.damages:
            where = spans.words([(damage.first_index, damage.last_index)])
            findings.notes.append(f"{one.place.broker}: {one.place.path}: entries {where}: {damage.text}")
    logs = [
        BrokerLog(files, sorted(by_broker[files.broker], key=lambda one: (one.first_index, one.place.number)))
        for files in stores
        if not files.excerpts
    ]
    for files in stores:
        if files.excerpts:
            findings.notes.append(f"{files.broker} is a secondary: its log is incomplete, and was not audited")
    return Logs(sorted(logs, key=lambda log: (log.rank, log.name), reverse=True))


def compare_blocks(logs: Logs) -> None:
    """Finds the blocks that differ, or are not complete everywhere."""
    found: dict[int, dict[str, list[int]]] = defaultdict(dict)
    for log in logs.brokers:
        for segment in log.segments:
            for number, count, digest in blocks_of(segment):
                known = found[number].setdefault(log.name, [0, 0])
                known[0] += count
                known[1] = (known[1] + digest) % 2**64
    logs.differing = {number for number, by in found.items() if len({tuple(value) for value in by.values()}) > 1}


def wanted_exactly(logs: Logs, findings: Findings) -> list[tuple[SegmentPlace, frozenset[int]]]:
    """Files and blocks of them that must be compared entry by entry."""
    chosen = sorted(logs.differing)
    if len(chosen) > EXACT_BLOCKS_MAX:
        entries = (len(chosen) - EXACT_BLOCKS_MAX) * BLOCK_ENTRIES
        findings.of(Promise.REPLICAS).left_out("logs differ in more blocks than are compared entry by entry", entries)
        chosen = chosen[:EXACT_BLOCKS_MAX]
    wanted = []
    for log in logs.brokers:
        for segment in log.segments:
            first, last = segment.first_index // BLOCK_ENTRIES, segment.last_index // BLOCK_ENTRIES
            blocks = frozenset(block for block in chosen if first <= block <= last)
            if blocks:
                wanted.append((segment.place, blocks))
    return wanted


def compare_entries(logs: Logs, exacts: list[Exact], findings: Findings) -> None:
    """Compares each log entry by entry with the higher ones. An entry that differs is one violation, however many
    brokers have it."""
    known: dict[int, tuple[int, int]] = {}
    """Index: term and checksum on the highest broker that has it."""
    rows = _rows_by_broker(exacts)
    disagreeing: set[int] = set()
    for log in logs.brokers:
        entries = {index: (term, checksum) for index, term, checksum in rows.get(log.name, _NO_ROWS).tolist()}
        common = sorted(index for index in entries if index in known)
        differing = [index for index in common if entries[index] != known[index]]
        agreed_to = max((index for index in common if entries[index] == known[index]), default=0)
        agreed_to = max(agreed_to, _agreed_block_end(logs, log))
        for index in differing:
            if index > agreed_to and entries[index][0] != known[index][0]:
                log.surplus_from = min(log.surplus_from, index)
            elif index < log.surplus_from:
                disagreeing.add(index)
        for index, entry in entries.items():
            if index < log.surplus_from:
                known.setdefault(index, entry)
    statement = findings.of(Promise.REPLICAS)
    chosen = sorted(disagreeing)[:NAMED_MAX]
    for index, versions in _versions(logs, rows, chosen).items():
        statement.breaks(_disagreement(index, versions))
    statement.count += len(disagreeing) - len(chosen)


def _rows_by_broker(exacts: list[Exact]) -> dict[str, Numbers]:
    """Index, term and checksum of each entry."""
    parts: dict[str, list[Numbers]] = defaultdict(list)
    for one in exacts:
        parts[one.broker].append(one.entries())
    return {name: np.concatenate(of_broker) for name, of_broker in parts.items()}


Versions = dict[tuple[int, int], list[str]]
"""Term and checksum of an entry: the brokers that have this version."""


def _versions(logs: Logs, rows: dict[str, Numbers], indexes: list[int]) -> dict[int, Versions]:
    found: dict[int, Versions] = {index: defaultdict(list) for index in indexes}
    for log in logs.brokers:
        of_broker = rows.get(log.name, _NO_ROWS)
        for index, term, checksum in of_broker[np.isin(of_broker[:, 0], indexes)].tolist():
            if index < log.surplus_from:
                found[index][term, checksum].append(log.name)
    return found


def _disagreement(index: int, versions: Versions) -> Violation:
    said = "; ".join(
        f"term {term}, checksum {checksum:08x} on {', '.join(names)}" for (term, checksum), names in versions.items()
    )
    brokers = "; ".join(", ".join(names) for names in versions.values())
    return Violation(
        Promise.REPLICAS, f"entry {index} differs between brokers: {said}", AGREE, index=index, brokers=brokers
    )


def _agreed_block_end(logs: Logs, log: BrokerLog) -> int:
    """The last index of a block on which this log agrees with all others that have it."""
    blocks = {number for segment in log.segments for number, _, _ in blocks_of(segment)} - logs.differing
    others = {
        number
        for one in logs.brokers
        if one is not log
        for segment in one.segments
        for number, _, _ in blocks_of(segment)
    }
    shared = blocks & others
    return (max(shared) + 1) * BLOCK_ENTRIES - 1 if shared else 0


def count_compared(logs: Logs, findings: Findings) -> None:
    """Counts the entries that at least two brokers have, and those that only one has."""
    statement = findings.of(Promise.REPLICAS)
    once: list[Span] = []
    twice: list[Span] = []
    for log in logs.brokers:
        readable = [(first, min(last, log.surplus_from - 1)) for first, last in log.readable()]
        readable = [span for span in readable if span[0] <= span[1]]
        fresh = spans.without(readable, once)
        twice = spans.joined([*twice, *spans.without(readable, spans.joined(fresh))])
        once = spans.joined([*once, *fresh])
    voters = logs.brokers[0].files.voters if logs.brokers else ()
    if len(voters) == 1:
        # There is no other log to compare; its chain shows whether the log itself is as it was written.
        statement.judged += spans.size(once)
        return
    statement.judged += spans.size(twice)
    alone = spans.without(once, spans.joined([*twice, (_committed_to(logs) + 1, NEVER)]))
    if alone:
        statement.left_out(f"entries {spans.words(alone)} can be read on only one broker", spans.size(alone))


def _committed_to(logs: Logs) -> int:
    """Entries after this index need not be on any other broker yet."""
    ends = [min(log.segments[-1].last_index, log.surplus_from - 1) if log.segments else 0 for log in logs.brokers]
    need = max(2, half(len(logs.brokers[0].files.voters)))
    return max(reached_by(ends, need), 0)

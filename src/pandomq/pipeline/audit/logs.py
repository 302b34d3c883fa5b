"""The brokers' logs side by side: where they agree, where they must and do not, and which of them is the log.

Logs compare by epoch, then term, then index (docs/replication.md). The highest holds all that was ever committed, as
long as enough of the voters are there; so it is *the log*, and others stand in where it cannot be read. Another log may
end in entries that the log does not have: its broker wrote them and never heard that they were committed. That is a
*surplus*, and harmless unless somebody was told of them. Anything else that differs is a violation: two entries of one
index and term are one entry, and logs that agree on one agree on all before it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pandomq.pipeline.audit import spans
from pandomq.pipeline.audit.findings import Findings, Promise, Violation
from pandomq.pipeline.audit.limits import BLOCK_ENTRIES, EXACT_BLOCKS_MAX
from pandomq.pipeline.audit.spans import Span
from pandomq.pipeline.audit.stores import StoreFiles
from pandomq.pipeline.audit.survey import Exact, SegmentPlace, Surveyed, blocks_of
from pandomq.replica.quorum import half, reached_by

AGREE = "the same checksum on every broker"
NEVER = 2**62


@dataclass
class BrokerLog:
    files: StoreFiles
    segments: list[Surveyed]
    """Those that hold entries, in the order of their indexes."""
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
        """Of entries that are whole, whether they are in the log or not."""
        held = spans.joined((segment.first_index, segment.last_index) for segment in self.segments)
        broken = [(damage.first_index, damage.last_index) for segment in self.segments for damage in segment.damages]
        return spans.without(held, spans.joined(broken))


@dataclass(frozen=True)
class Piece:
    """Entries of one file that are decoded."""

    place: SegmentPlace
    spans: tuple[Span, ...]


@dataclass
class Logs:
    brokers: list[BrokerLog]
    """The highest first."""
    differing: set[int] = field(default_factory=set)
    """Blocks that must be looked at entry by entry."""

    @property
    def last_index(self) -> int:
        return max((log.segments[-1].last_index for log in self.brokers[:1] if log.segments), default=0)

    def enough(self) -> bool:
        """Whatever was committed is in one of these logs at least."""
        voters = set(self.brokers[0].files.voters) if self.brokers else set()
        if not voters:
            return False
        missing = voters - {log.name for log in self.brokers if log.segments}
        return len(missing) < half(len(voters))

    # What is the log.

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
        """Entries of the log that nobody has any more, or nobody can read."""
        return spans.without([(1, self.last_index)], spans.joined(span for piece in pieces for span in piece.spans))


def arrange(stores: list[StoreFiles], surveyed: list[Surveyed], findings: Findings) -> Logs:
    by_broker: dict[str, list[Surveyed]] = defaultdict(list)
    for one in surveyed:
        if one.fault:
            findings.notes.append(f"{one.place.broker}: {one.place.path}: {one.fault}")
            findings.of(Promise.REPLICAS).left_out(f"{one.place.broker} has files that cannot be read")
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
            findings.notes.append(f"{files.broker} is a secondary: its log holds excerpts, and was not looked at")
    return Logs(sorted(logs, key=lambda log: (log.rank, log.name), reverse=True))


def compare_blocks(logs: Logs) -> None:
    """Which blocks differ, or are not whole everywhere."""
    found: dict[int, dict[str, list[int]]] = defaultdict(dict)
    for log in logs.brokers:
        for segment in log.segments:
            for number, count, digest in blocks_of(segment):
                known = found[number].setdefault(log.name, [0, 0])
                known[0] += count
                known[1] = (known[1] + digest) % 2**64
    logs.differing = {number for number, by in found.items() if len({tuple(value) for value in by.values()}) > 1}


def wanted_exactly(logs: Logs, findings: Findings) -> list[tuple[SegmentPlace, frozenset[int]]]:
    """Files and blocks of them that are to be compared entry by entry."""
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
    """Entry by entry, each log with what the higher ones say."""
    known: dict[int, tuple[int, int, str]] = {}
    """Index: term, checksum, and the first broker that has it so."""
    by_broker: dict[str, list[np.ndarray[Any, np.dtype[np.int64]]]] = defaultdict(list)
    for one in exacts:
        by_broker[one.broker].append(one.entries())
    for log in logs.brokers:
        rows = np.concatenate(by_broker[log.name]) if log.name in by_broker else np.zeros((0, 3), np.int64)
        entries = {index: (term, checksum) for index, term, checksum in rows.tolist()}
        common = sorted(index for index in entries if index in known)
        differing = [index for index in common if entries[index] != known[index][:2]]
        agreed_to = max((index for index in common if entries[index] == known[index][:2]), default=0)
        agreed_to = max(agreed_to, _agreed_block_end(logs, log))
        for index in differing:
            term, checksum = entries[index]
            other_term, other_checksum, other = known[index]
            if index > agreed_to and term != other_term:
                log.surplus_from = min(log.surplus_from, index)
            elif index < log.surplus_from:
                _disagree(findings, index, (log.name, term, checksum), (other, other_term, other_checksum))
        for index, (term, checksum) in entries.items():
            if index < log.surplus_from:
                known.setdefault(index, (term, checksum, log.name))


def _agreed_block_end(logs: Logs, log: BrokerLog) -> int:
    """The last index of a block that this log has as all others have it, who have it at all."""
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


def _disagree(findings: Findings, index: int, one: tuple[str, int, int], other: tuple[str, int, int]) -> None:
    said = "; ".join(f"{name} has term {term}, checksum {checksum:08x}" for name, term, checksum in (other, one))
    text = f"entry {index} is not the same on {other[0]} and {one[0]}: {said}"
    findings.of(Promise.REPLICAS).breaks(
        Violation(Promise.REPLICAS, text, AGREE, index=index, brokers=f"{other[0]}, {one[0]}")
    )


def count_compared(logs: Logs, findings: Findings) -> None:
    """How many entries two brokers or more have, and which one alone has."""
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
        # There is nobody to agree with; that the log is in itself as it was written its chain tells.
        statement.judged += spans.size(once)
        return
    statement.judged += spans.size(twice)
    alone = spans.without(once, spans.joined([*twice, (_committed_to(logs) + 1, NEVER)]))
    if alone:
        statement.left_out(f"entries {spans.words(alone)} can be read on one broker alone", spans.size(alone))


def _committed_to(logs: Logs) -> int:
    """What lies behind this index need not be on any other broker yet."""
    ends = [min(log.segments[-1].last_index, log.surplus_from - 1) if log.segments else 0 for log in logs.brokers]
    need = max(2, half(len(logs.brokers[0].files.voters)))
    return max(reached_by(ends, need), 0)

"""Splits ranges of offsets into partitions: pieces of about equal size, cut between chunks where that is close enough.

A cut within a chunk makes two tasks fetch it, each for its own rows. Pure; sizes come from the stream's index.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from pandomq.data_client.records import IndexedChunk

ALIGN_SHARE: Final = 4
"""A cut moves to the end of a chunk if that is not farther than a piece divided by this."""


class OffsetRange(NamedTuple):
    stream: str
    first: int
    end: int


class Weighed(NamedTuple):
    """A range, and the chunks that hold it."""

    range: OffsetRange
    chunks: Sequence[IndexedChunk]

    @property
    def size_bytes(self) -> int:
        return sum(_within(row, self.range.first, self.range.end) for row in self.chunks)


def split(weighed: Sequence[Weighed], pieces_min: int, piece_bytes: int) -> list[OffsetRange]:
    """At least `pieces_min` pieces if there are as many messages, none much larger than `piece_bytes`; in the order of
    offsets."""
    sizes = [one.size_bytes for one in weighed]
    total = max(1, sum(sizes))
    found: list[OffsetRange] = []
    for one, size in zip(weighed, sizes, strict=True):
        share = -(-pieces_min * size // total)
        found += _split_one(one, max(1, share, -(-size // piece_bytes)))
    return found


def _split_one(weighed: Weighed, pieces: int) -> list[OffsetRange]:
    stream, first, end = weighed.range
    if first >= end:
        return []
    cuts = sorted({first, end, *_cuts(weighed, min(pieces, end - first))})
    return [OffsetRange(stream, begin, stop) for begin, stop in pairwise(cuts)]


def _cuts(weighed: Weighed, pieces: int) -> list[int]:
    _, first, end = weighed.range
    rows = [row for row in weighed.chunks if row.last_offset >= first and row.first_offset < end]
    if not rows:
        return [first + (end - first) * piece // pieces for piece in range(1, pieces)]
    before = [0]
    for row in rows:
        before.append(before[-1] + _within(row, first, end))
    total = before[-1]
    near = total // pieces // ALIGN_SHARE
    cuts = []
    for piece in range(1, pieces):
        at = total * piece // pieces
        place = min(bisect_right(before, at) - 1, len(rows) - 1)
        row = rows[place]
        if at - before[place] <= min(near, before[place + 1] - at):
            cut = row.first_offset
        elif before[place + 1] - at <= near:
            cut = row.last_offset + 1
        else:
            begin, stop = max(row.first_offset, first), min(row.last_offset + 1, end)
            cut = begin + (stop - begin) * (at - before[place]) // max(1, before[place + 1] - before[place])
        if first < cut < end:
            cuts.append(cut)
    return cuts


def _within(row: IndexedChunk, first: int, end: int) -> int:
    """An estimate of the bytes of a chunk that belong to the range."""
    span = row.last_offset + 1 - row.first_offset
    overlap = min(row.last_offset + 1, end) - max(row.first_offset, first)
    return row.size_bytes * max(0, overlap) // span

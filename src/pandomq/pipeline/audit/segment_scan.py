"""The first pass over the files, one task for some of them: their contents, damage, and digests.

Digests are sums over entries, so the digests of one block add up even if it spans files; brokers divide the same log in
different ways. Only where sums differ are entries compared one by one (`Exact`).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from pandomq.kernel.records import ENTRY_START, VERSION
from pandomq.pipeline.audit.limits import BLOCK_ENTRIES
from pandomq.pipeline.audit.segment_image import BadSegment, SegmentImage, UnreadableEntries
from pandomq.pipeline.audit.views import Numbers

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class SegmentPlace(msgspec.Struct, frozen=True):
    """A file with a part of a broker's log. It may be put aside in the meantime: then it has its second name."""

    broker: str
    path: str
    other_path: str
    number: int
    size_bytes: int
    changed_ns: int

    def open(self) -> SegmentImage:
        """Raises BadSegment, also if it is gone."""
        for path in (self.path, self.other_path):
            try:
                return SegmentImage(Path(path))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise BadSegment(f"it is unreadable: {error.strerror or error}") from error
        raise BadSegment("it was deleted during the audit")


class SegmentContents(msgspec.Struct, frozen=True):
    """The contents of a file; for an unreadable one, the reason."""

    place: SegmentPlace
    fault: str = ""
    first_index: int = 0
    last_index: int = -1
    entries: int = 0
    bytes_read: int = 0
    damages: tuple[UnreadableEntries, ...] = ()
    chain_before: int | None = None
    chain_after: int | None = None
    chain_sealed: int | None = None
    first_ms: int = 0
    last_ms: int = 0
    """By the cluster's clock, of the first and last entry with a time; 0 if none has one."""
    terms: tuple[tuple[int, int], ...] = ()
    """The first index of each term."""
    blocks: bytes = b""
    """Number, count and digest of each block that has entries in it, as i8, i8, u8."""

    @property
    def empty(self) -> bool:
        return self.last_index < self.first_index


def scan_segment(place: SegmentPlace) -> SegmentContents:
    try:
        image = place.open()
    except BadSegment as bad:
        return SegmentContents(place, fault=str(bad))
    if image.last_index < image.first_index:
        return SegmentContents(place)
    times = _times(image)
    return SegmentContents(
        place,
        "",
        image.first_index,
        image.last_index,
        len(image.index),
        image.size_bytes,
        tuple(image.damages),
        image.chain_before,
        image.chain_after(),
        image.chain_sealed,
        times[0],
        times[-1],
        _terms(image),
        _digests(image),
    )


def _times(image: SegmentImage) -> list[int]:
    """The times of entries with a time: those of the broker."""
    told = (image.length >= ENTRY_START.size) & (image.views.octets_at(image.at) == VERSION)
    rows = np.flatnonzero(told)
    if not len(rows):
        return [0]
    ends = rows[[0, -1]]
    found: list[int] = image.views.numbers("<u8", image.at[ends] + 1).tolist()
    return found


def _terms(image: SegmentImage) -> tuple[tuple[int, int], ...]:
    rows = np.flatnonzero(np.diff(image.term, prepend=-1))
    return tuple(zip(image.index[rows].tolist(), image.term[rows].tolist(), strict=True))


def _digests(image: SegmentImage) -> bytes:
    mixed = image.index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= image.term.astype(np.uint64) << np.uint64(32)
    mixed ^= image.checksum.astype(np.uint64)
    for factor in _MIX:
        mixed = (mixed ^ (mixed >> np.uint64(29))) * factor
    blocks = image.index // BLOCK_ENTRIES
    numbers, starts, counts = np.unique(blocks, return_index=True, return_counts=True)
    rows = np.empty((len(numbers), 3), np.int64)
    rows[:, 0], rows[:, 1] = numbers, counts
    rows[:, 2] = (np.add.reduceat(mixed, starts) if len(starts) else mixed).view(np.int64)
    return rows.tobytes()


def blocks_of(scanned: SegmentContents) -> list[list[int]]:
    rows: list[list[int]] = np.frombuffer(scanned.blocks, np.int64).reshape(-1, 3).tolist()
    return rows


class Exact(msgspec.Struct, frozen=True):
    """Entries of some blocks, one by one: index, term and checksum."""

    broker: str
    path: str
    rows: bytes

    def entries(self) -> Numbers:
        found: Numbers = np.frombuffer(self.rows, np.int64).reshape(-1, 3)
        return found


def exact(place: SegmentPlace, blocks: frozenset[int]) -> Exact:
    try:
        image = place.open()
    except BadSegment:
        return Exact(place.broker, place.path, b"")
    wanted = np.isin(image.index // BLOCK_ENTRIES, np.array(sorted(blocks), np.int64))
    rows = np.stack([image.index[wanted], image.term[wanted], image.checksum[wanted]], axis=1)
    return Exact(place.broker, place.path, rows.tobytes())

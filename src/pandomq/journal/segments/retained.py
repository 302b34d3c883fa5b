"""Segments that are not needed any more, kept aside for an audit instead of deleted, within limits of size and age.

They get another name, so that a restart ignores them, and are never written again. The oldest are deleted when all
together are larger than `retain_bytes`, or when they have been kept for longer than `retain_ms`, counted from when they
were put aside or the store was opened, whichever is later. When the disk is nearly full all of them are deleted, and
none is kept: blocking publishers would be worse than losing an audit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from pandomq.journal.effects import Delete, Effect, FileName, Rename
from pandomq.journal.limits import JournalSettings
from pandomq.journal.names import retained_file, retained_number
from pandomq.journal.segments.segment import Segment
from pandomq.journal.space import Space


class _Kept(NamedTuple):
    file: FileName
    size_bytes: int
    since_ms: int


class Retained:
    __slots__ = ("_kept", "_now_ms", "_opened_ms", "_settings", "_size_bytes", "_space")

    def __init__(self, settings: JournalSettings, space: Space, sizes: Mapping[FileName, int]) -> None:
        """`sizes`: the files of the store; those that were put aside before are among them."""
        self._settings = settings
        self._space = space
        found = sorted(file for file in sizes if retained_number(file) is not None)
        self._kept = deque(_Kept(file, sizes[file], 0) for file in found)
        self._size_bytes = sum(kept.size_bytes for kept in self._kept)
        self._opened_ms: int | None = None
        self._now_ms = 0

    def tick(self, now_ms: int) -> None:
        if self._opened_ms is None:
            self._opened_ms = now_ms
        self._now_ms = now_ms

    def put_away(self, segment: Segment) -> Effect:
        """The effect for a segment that may be deleted."""
        if self._space.low or segment.size_bytes > self._settings.retain_bytes:
            return Delete(segment.file)
        kept = _Kept(retained_file(segment.number), segment.size_bytes, self._now_ms)
        self._kept.append(kept)
        self._size_bytes += kept.size_bytes
        return Rename(segment.file, kept.file)

    def take_overdue(self) -> list[FileName]:
        """The files to delete now."""
        overdue = []
        while self._kept and self._is_overdue(self._kept[0]):
            kept = self._kept.popleft()
            self._size_bytes -= kept.size_bytes
            overdue.append(kept.file)
        return overdue

    def _is_overdue(self, kept: _Kept) -> bool:
        if self._space.low or self._size_bytes > self._settings.retain_bytes:
            return True
        if not self._settings.retain_ms or self._opened_ms is None:
            return False
        return self._now_ms - max(kept.since_ms, self._opened_ms) >= self._settings.retain_ms

"""Cuts the end off the log, so that a crash at any moment leaves either the old end or the new one.

The intention is noted in the hard state first; the next opening of the store carries it out if it is still noted. Then
whole files are deleted, from the last one backwards, and the one that keeps its beginning is shortened.

The removed bytes can be kept in another file, in the form of a snapshot: the first piece holds the reason, pieces of
kind 1 name a file and a place in it, pieces of kind 2 are the bytes from there on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from pandomq.journal.effects import Create, Delete, FileName, Rename, Resize, SyncDirectory, SyncFile, Write
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.names import unfinished
from pandomq.journal.segments.layout import (
    BLANK,
    MARK_SECTORS,
    SEAL_SECTOR,
    SLOT_BYTES,
    TABLE_OFFSET,
    Identity,
    align,
    encode_sector,
)
from pandomq.journal.snapshots.snapshot import encode_end, encode_piece
from pandomq.journal.work import Work, perform, read

ASIDE_MAGIC: Final = b"PANDOASD"
KIND_WHY: Final = 0
KIND_PLACE: Final = 1
KIND_BYTES: Final = 2
COPY_BYTES: Final = 1024 * 1024


class SegmentRange(NamedTuple):
    """A part of a file, from this offset to this end."""

    file: FileName
    offset: int
    end: int


class CutPlan(NamedTuple):
    shortened: SegmentRange | None
    """The part to remove from the file that keeps its beginning."""
    slot_first: int
    slot_end: int
    """The range of its table slots to remove."""
    deleted: list[SegmentRange]
    """Files to delete as a whole, in the order of the log; each part is the file's body."""


def shorten(cut: CutPlan) -> Work[None]:
    """Carries out the cut. Once begun it must be finished, see above."""
    for part in reversed(cut.deleted):
        # One by one: recovery would take a gap in the log for a lost file.
        yield from perform(Delete(part.file), SyncDirectory())
    if cut.shortened is None:
        return
    file = cut.shortened.file
    slots = bytes((cut.slot_end - cut.slot_first) * SLOT_BYTES)
    heads = [Write(file, sector * SECTOR_BYTES, (BLANK,)) for sector in (*MARK_SECTORS, SEAL_SECTOR)]
    yield from perform(
        Write(file, TABLE_OFFSET + cut.slot_first * SLOT_BYTES, (slots,)),
        *heads,
        # Twice, so that the last sector is zeros from there on.
        Resize(file, cut.shortened.offset),
        Resize(file, align(cut.shortened.offset)),
        SyncFile(file),
    )


def keep_aside(cut: CutPlan, identity: Identity, file: FileName, reason: str) -> Work[None]:
    """Copies the bytes that will be cut off to this file."""
    target = unfinished(file)
    why = {"cluster": identity.cluster_id, "node": identity.node_name, "reason": reason}
    yield from perform(Create(target), Write(target, 0, (encode_sector(ASIDE_MAGIC),)))
    pieces = _Pieces(target)
    yield from pieces.put(KIND_WHY, msgspec.json.encode(why))
    for part in [*([cut.shortened] if cut.shortened else []), *cut.deleted]:
        yield from pieces.put(KIND_PLACE, msgspec.json.encode({"file": part.file, "offset": part.offset}))
        for offset in range(part.offset, part.end, COPY_BYTES):
            data = yield from read(part.file, offset, min(COPY_BYTES, part.end - offset))
            yield from pieces.put(KIND_BYTES, data)
    yield from pieces.end()
    yield from perform(SyncFile(target), Rename(target, file), SyncDirectory())


class _Pieces:
    __slots__ = ("_file", "_number", "_position")

    def __init__(self, file: FileName) -> None:
        self._file = file
        self._position = SECTOR_BYTES
        self._number = 0

    def put(self, kind: int, data: bytes) -> Work[None]:
        chunks = encode_piece(kind, self._number, data)
        yield from perform(Write(self._file, self._position, chunks))
        self._position += sum(map(len, chunks))
        self._number += 1

    def end(self) -> Work[None]:
        yield from perform(Write(self._file, self._position, encode_end(self._number, self._position)))

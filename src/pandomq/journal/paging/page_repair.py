"""Repairs a store with damaged pages: their bytes are kept in another file, and snapshots no longer refer to them.

The owner defines its snapshots' references to pages: `prune` makes the owner's pieces anew, without those pages. A
crash in between leaves the old snapshot or the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pandomq.journal.effects import Create, FileName, Rename, SyncDirectory, SyncFile, Write
from pandomq.journal.limits import SECTOR_BYTES, SNAPSHOT_PIECE_BYTES_MAX
from pandomq.journal.names import aside_file, page_file, unfinished
from pandomq.journal.paging.page_file import PLACE, PagePlace
from pandomq.journal.segments.cutting import CutPlan, SegmentRange, keep_aside
from pandomq.journal.segments.layout import Identity
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.snapshot import (
    KIND_PAGES,
    OWN_KINDS,
    SnapshotHead,
    encode_end,
    encode_piece,
    encode_places,
    read_pieces,
)
from pandomq.journal.work import Work, perform

Prune = Callable[[bytes, frozenset[PagePlace]], bytes]
"""The owner's stream of pieces without what refers to these pages."""


def forget_pages(
    snapshots: Sequence[tuple[SnapshotHead, int]],
    damaged: frozenset[PagePlace],
    identity: Identity,
    number: int,
    prune: Prune,
) -> Work[FileName]:
    """For snapshots with their sizes. Returns the file that keeps the bytes; `number` distinguishes that file from
    others."""
    aside = aside_file(max(head.last_index for head, _ in snapshots), number)
    parts = [SegmentRange(page_file(place.number), place.offset, place.end) for place in sorted(damaged)]
    yield from keep_aside(CutPlan(None, 0, 0, parts), identity, aside, "pages of messages were damaged")
    for head, size_bytes in snapshots:
        yield from _rewrite(head, size_bytes, damaged, prune)
    return aside


def _rewrite(head: SnapshotHead, size_bytes: int, damaged: frozenset[PagePlace], prune: Prune) -> Work[None]:
    window = ReadWindow(head.file, size_bytes, SNAPSHOT_PIECE_BYTES_MAX)
    pieces: list[tuple[int, bytes]] = []

    def take(kind: int, data: bytes) -> bool:
        pieces.append((kind, data))
        return True

    first_sector = yield from window.look(0, SECTOR_BYTES)
    yield from read_pieces(window, take)
    places = [PagePlace(*place) for kind, data in pieces if kind == KIND_PAGES for place in PLACE.iter_unpack(data)]
    if not damaged.intersection(places):
        return
    own = [(kind, data) for kind, data in pieces if kind >= OWN_KINDS and kind != KIND_PAGES]
    own += [(KIND_PAGES, data) for data in encode_places([place for place in places if place not in damaged])]
    stream = prune(b"".join(data for kind, data in pieces if kind < OWN_KINDS), damaged)
    owner_kind = next((kind for kind, _ in pieces if kind < OWN_KINDS), 0)
    for start in range(0, len(stream), SNAPSHOT_PIECE_BYTES_MAX):
        own.append((owner_kind, stream[start : start + SNAPSHOT_PIECE_BYTES_MAX]))
    target = unfinished(head.file)
    yield from perform(Create(target), Write(target, 0, (first_sector,)))
    position = SECTOR_BYTES
    for number, (kind, data) in enumerate(own):
        chunks = encode_piece(kind, number, data)
        yield from perform(Write(target, position, chunks))
        position += sum(map(len, chunks))
    yield from perform(Write(target, position, encode_end(len(own), position)), SyncFile(target))
    yield from perform(Rename(target, head.file), SyncDirectory())

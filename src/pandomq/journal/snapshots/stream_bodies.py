"""Finds the bodies of messages in a snapshot's file that lie within one piece of it."""

from __future__ import annotations

from collections.abc import Callable

from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.recipe import Bodies
from pandomq.journal.snapshots.snapshot import OWN_KINDS, PIECE, read_pieces
from pandomq.journal.work import Work

OnBody = Callable[[int, memoryview], None]
"""The body's offset in the file, and the body."""


def walk_bodies(window: ReadWindow, bodies: Bodies, on_body: OnBody) -> Work[None]:
    """Raises SnapshotBad."""
    finder = bodies.in_stream()
    place = [SECTOR_BYTES, 0]
    """The offset of the next piece in the file, and of its data in the owner's stream."""

    def take(kind: int, data: bytes) -> bool:
        at, stream_at = place[0] + PIECE.size, place[1]
        place[0] = at + len(data)
        if kind < OWN_KINDS:
            place[1] += len(data)
            view = memoryview(data)
            for offset, length in finder(data):
                if offset >= stream_at:
                    start = offset - stream_at
                    on_body(at + start, view[start : start + length])
        return True

    yield from read_pieces(window, take)

"""Snapshots of a keeper. Its whole state is the log itself, so a snapshot has every entry, and a machine that starts
with one has the same state as a machine that has read the log.

A snapshot is taken when the journal reports that it is due, one piece with each tick, as a broker does it between
batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from pandomq.ids import LogIndex, Term
from pandomq.journal.journal import Journal
from pandomq.journal.snapshots.snapshot_writer import SnapshotWriter
from pandomq.replica.protocol.entries import LogEntry

PIECE_KIND: Final = 1
PIECE_ENTRIES: Final = 40
FOLDED_MAX: Final = 4096

_decoder = msgspec.msgpack.Decoder(list[tuple[int, bytes, int]])


def encode_piece(entries: Sequence[LogEntry]) -> bytes:
    """Encodes entries. The end of a client's entry repeats one byte, which is stored once."""
    return msgspec.msgpack.encode([(entry.term, *_fold(entry.payload)) for entry in entries])


# An entry is in all later snapshots, and on all machines.
@lru_cache(FOLDED_MAX)
def _fold(payload: bytes) -> tuple[bytes, int]:
    last = payload[-1:]
    return payload.rstrip(last) + last, len(payload)


def decode_piece(data: bytes) -> list[LogEntry]:
    return [LogEntry(Term(term), kept.ljust(size_bytes, kept[-1:])) for term, kept, size_bytes in _decoder.decode(data)]


class KeeperSnapshots:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._writer: SnapshotWriter | None = None
        self._pieces: Iterator[bytes] | None = None
        self.last_index = 0
        """The last index of the newest snapshot."""

    def work(self, entries: Sequence[LogEntry], commit_index: LogIndex) -> None:
        """Does a bounded part of the pending work."""
        if self._writer is None:
            if self._journal.snapshot_due and commit_index > self.last_index:
                self._begin(entries[:commit_index], commit_index)
        elif self._pieces is not None:
            piece = next(self._pieces, None)
            if piece is None:
                self._pieces = None
                self._writer.finish()
            else:
                self._writer.add(PIECE_KIND, piece)

    def _begin(self, entries: Sequence[LogEntry], index: LogIndex) -> None:
        self._writer = self._journal.begin_snapshot(index)
        starts = range(0, len(entries), PIECE_ENTRIES)
        self._pieces = (encode_piece(entries[start : start + PIECE_ENTRIES]) for start in starts)

    def saved(self, index: LogIndex) -> None:
        self._writer, self.last_index = None, index

    def failed(self) -> None:
        self._writer = self._pieces = None

"""A snapshot's file made in memory, for a store whose log holds excerpts.

Such a store has its own chain: it begins with the snapshot, and has no points before it, since the earlier entries
differ from those that the store would hold.
"""

from __future__ import annotations

from array import array

from pandomq.journal.chain import ChainPoints
from pandomq.journal.checksums import CHAIN_START
from pandomq.journal.segments.layout import Identity
from pandomq.journal.snapshots.snapshot import KIND_CHAIN, encode_end, encode_head, encode_piece


class SnapshotImage:
    """Pieces are added in order; `finish` gives the file."""

    __slots__ = ("_data", "_number", "index", "term")

    def __init__(self, identity: Identity, index: int, term: int) -> None:
        self.index = index
        self.term = term
        self._data = bytearray(encode_head(identity, index, term, CHAIN_START))
        self._number = 0
        # The next point is after everything in it.
        self.add(KIND_CHAIN, ChainPoints(1 << index.bit_length(), array("Q")).encode())

    def add(self, kind: int, data: bytes) -> None:
        for part in encode_piece(kind, self._number, data):
            self._data += part
        self._number += 1

    def finish(self) -> bytes:
        for part in encode_end(self._number, len(self._data)):
            self._data += part
        return bytes(self._data)

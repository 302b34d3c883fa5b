"""A segment file: which entries are complete in it, and which should be and are not.

An entry is accepted if its body matches its own checksum, its index and its term; the table contains the places of
bodies. The end of a file that a broker is writing, or was writing when it crashed, is no damage: entries without proof
of a sync count as absent.
"""

from __future__ import annotations

import struct
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from pandomq.journal.checksums import CHAIN_START, chain_next
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.segments.layout import (
    BLANK,
    ENTRY_BEGIN,
    ENTRY_END,
    ENTRY_HEAD,
    ENTRY_HEAD_BYTES,
    HEAD_BYTES,
    IDENTITY_SECTOR,
    LAG_MAX,
    MARK_SECTORS,
    OPENING_SECTOR,
    SEAL_SECTOR,
    SLOT_BYTES,
    TABLE_OFFSET,
    SegmentIdentity,
    SegmentStart,
    align,
    body_offset,
    decode_identity,
    decode_mark,
    decode_opening,
    decode_seal,
    file_seed,
)
from pandomq.journal.segments.table import GOOD, SlotTable, sealed_slots
from pandomq.kernel import crc32
from pandomq.pipeline.audit.views import Bits, ByteViews, Numbers

_IDENTITY = struct.Struct("<QQI")
_SLOT = np.dtype(
    [
        ("term", "<u8"),
        ("checksum", "<u4"),
        ("position", "<u4"),
        ("length", "<u4"),
        ("blank", "<u4"),
        ("lag", "<u4"),
        ("crc", "<u4"),
    ]
)
_NAMES = np.dtype([("index", "<u8"), ("term", "<u8"), ("length", "<u4")])


class UnreadableEntries(msgspec.Struct, frozen=True, array_like=True):
    """Entries that are or should be in a file, and cannot be read."""

    first_index: int
    last_index: int
    text: str


class BadSegment(Exception):
    """Nothing of the file can be read; the message is the reason."""


class SegmentImage:
    """Rows are complete entries, in the order of their indexes."""

    def __init__(self, path: Path) -> None:
        """Raises BadSegment, and OSError."""
        data = path.read_bytes()
        self.views = ByteViews(data)
        self.size_bytes = len(data)
        self.first_index = 0
        self.last_index = -1
        """The last entry that is there, complete or not; below the first if there are none."""
        self.chain_before: int | None = None
        self.chain_sealed: int | None = None
        """As recorded in the file; the entries' checksums give another value independently."""
        self.damages: list[UnreadableEntries] = []
        self.index: Numbers = np.zeros(0, np.int64)
        self.term: Numbers = self.index
        self.checksum: Numbers = self.index
        self.at: Numbers = self.index
        """Where payloads begin."""
        self.length: Numbers = self.index
        sectors = [data[at : at + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0") for at in range(0, HEAD_BYTES, SECTOR_BYTES)]
        if not any(map(any, sectors)):
            return
        identity = decode_identity(sectors[IDENTITY_SECTOR])
        if identity is None:
            raise BadSegment("its head is damaged")
        self.identity: SegmentIdentity = identity
        seed = file_seed(identity.cluster_id, identity.number)
        opening = self._opening(decode_opening(sectors[OPENING_SECTOR], seed), sectors[OPENING_SECTOR], data)
        if opening is None:
            return
        self.first_index = opening.first_index
        self.chain_before = opening.chain_before or None
        seal = decode_seal(sectors[SEAL_SECTOR], seed)
        table_bytes = data[TABLE_OFFSET : TABLE_OFFSET + identity.slot_count * SLOT_BYTES]
        sealed = sealed_slots(table_bytes, seal, opening.first_index)
        if seal is not None and sealed:
            self.chain_sealed = seal.chain_after
            states = np.full(sealed, GOOD, np.uint8)
        else:
            states = np.frombuffer(bytes(SlotTable(table_bytes, seed).states), np.uint8)
        rows = np.frombuffer(table_bytes.ljust(len(states) * SLOT_BYTES, b"\0"), _SLOT, len(states))
        marks = [decode_mark(sectors[sector], seed) for sector in MARK_SECTORS]
        proven = max((mark.synced_index for mark in marks if mark is not None), default=0)
        self._take(rows, states, 2**62 if sealed else proven, data)

    def _opening(self, found: SegmentStart | None, sector: bytes, data: bytes) -> SegmentStart | None:
        """Rebuilt from the first entry if it is damaged; None if there never was one."""
        if found is not None:
            return found
        if sector == BLANK:
            return None
        at = body_offset(self.identity.slot_count)
        head = data[at : at + ENTRY_HEAD_BYTES]
        if len(head) == ENTRY_HEAD_BYTES:
            begin, _, _, index, _, _, end = ENTRY_HEAD.unpack(head)
            if (begin, end) == (ENTRY_BEGIN, ENTRY_END):
                return SegmentStart(index, 0, 0)
        raise BadSegment("its head and its first entry are damaged")

    def _take(self, rows: npt.NDArray[np.void], states: npt.NDArray[np.uint8], proven: int, data: bytes) -> None:
        index = self.first_index + np.arange(len(rows), dtype=np.int64)
        term, checksum, at, length = (
            rows[name].astype(np.int64) for name in ("term", "checksum", "position", "length")
        )
        known = states == GOOD
        lags = rows["lag"].astype(np.int64)
        synced = index[known & (lags < LAG_MAX)] - lags[known & (lags < LAG_MAX)]
        proven = max(proven, int(synced.max()) if len(synced) else 0)
        whole = known & (at + ENTRY_HEAD_BYTES + length <= len(data))
        whole[whole] = self._heads_agree(index[whole], term[whole], checksum[whole], at[whole], length[whole])
        whole[whole] = self._bodies_agree(index[whole], term[whole], checksum[whole], at[whole], length[whole], data)
        for place in np.flatnonzero(~known).tolist():
            behind = int(at[place - 1] + ENTRY_HEAD_BYTES + length[place - 1]) if place and whole[place - 1] else 0
            found = self._without_slot(int(index[place]), behind, place, data)
            if found is not None:
                at[place], length[place], term[place], checksum[place] = found
                whole[place] = True
        self._note_damage(index, whole, proven)
        self.index, self.term, self.checksum = index[whole], term[whole], checksum[whole]
        self.at, self.length = at[whole] + ENTRY_HEAD_BYTES, length[whole]

    def _heads_agree(self, index: Numbers, term: Numbers, checksum: Numbers, at: Numbers, length: Numbers) -> Bits:
        views = self.views
        agree: Bits = (
            (views.numbers("<u4", at) == ENTRY_BEGIN)
            & (views.numbers("<u4", at + 4) == length)
            & (views.numbers("<u8", at + 8) == index)
            & (views.numbers("<u8", at + 16) == term)
            & (views.numbers("<u4", at + 24) == checksum)
            & (views.numbers("<u4", at + 28) == ENTRY_END)
        )
        return agree

    def _bodies_agree(
        self, index: Numbers, term: Numbers, checksum: Numbers, at: Numbers, length: Numbers, data: bytes
    ) -> Bits:
        names = np.empty(len(index), _NAMES)
        names["index"], names["term"], names["length"] = index, term, length
        named, body, step = memoryview(names.tobytes()), memoryview(data), _IDENTITY.size
        begins = (at + ENTRY_HEAD_BYTES).tolist()
        ends = (at + ENTRY_HEAD_BYTES + length).tolist()
        found = [
            crc32(named[place * step : (place + 1) * step], crc32(body[begin:end]))
            for place, (begin, end) in enumerate(zip(begins, ends, strict=True))
        ]
        agree: Bits = np.array(found, np.int64) == checksum
        return agree

    def _without_slot(self, index: int, behind: int, place: int, data: bytes) -> tuple[int, int, int, int] | None:
        """An entry without a slot follows the one before it, or begins at the next sector."""
        start = body_offset(self.identity.slot_count) if not place else behind
        for at in {start, align(start)} if start else ():
            head = data[at : at + ENTRY_HEAD_BYTES]
            if len(head) < ENTRY_HEAD_BYTES:
                continue
            begin, _, length, found, term, checksum, end = ENTRY_HEAD.unpack(head)
            payload = data[at + ENTRY_HEAD_BYTES : at + ENTRY_HEAD_BYTES + length]
            if (begin, end, found) != (ENTRY_BEGIN, ENTRY_END, index) or len(payload) < length:
                continue
            if crc32(_IDENTITY.pack(index, term, length), crc32(payload)) == checksum:
                return at, length, term, checksum
        return None

    def _note_damage(self, index: Numbers, whole: Bits, proven: int) -> None:
        end = len(index)
        # An entry that was being written is absent, unless there is proof that it was synced.
        while end and not whole[end - 1] and index[end - 1] > proven:
            end -= 1
        self.last_index = self.first_index + end - 1
        broken = np.flatnonzero(~whole[:end])
        for run in np.split(broken, np.flatnonzero(np.diff(broken) > 1) + 1):
            if len(run):
                first, last = int(index[run[0]]), int(index[run[-1]])
                self.damages.append(UnreadableEntries(first, last, "its content was changed"))

    def chain_after(self) -> int | None:
        """From the checksums; None if some are missing."""
        if self.chain_before is None or self.damages:
            return None
        chain = self.chain_before
        for checksum in self.checksum.tolist():
            chain = chain_next(chain, checksum)
        return chain

    def payload(self, row: int) -> bytes:
        begin = int(self.at[row])
        found: bytes = self.views.octets[begin : begin + int(self.length[row])].tobytes()
        return found


assert ENTRY_BEGIN < 2**16, "with the two zero bytes behind it, it is a number of four bytes"
assert CHAIN_START, "a chain of zero is none"

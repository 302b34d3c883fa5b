"""A segment's table as it was found: which slots are good, which were never written, which are damaged."""

from array import array
from typing import Final
from zlib import crc32

from pandomq.journal.layout import LAG_MAX, SLOT, SLOT_BLANK, SLOT_BYTES, Seal, Slot

NEVER: Final = 0
GOOD: Final = 1
BAD: Final = 2

_WORDS_PER_SLOT: Final = SLOT_BYTES // 4
_CHECKSUM_WORD: Final = 2
_POSITION_WORD: Final = 3


class Table:
    __slots__ = ("data", "rows", "states")

    def __init__(self, data: bytes, seed: int) -> None:
        used = -(-len(data.rstrip(b"\0")) // SLOT_BYTES)
        self.data = data[: used * SLOT_BYTES]
        """Up to the last slot that holds anything."""
        self.rows: list[tuple[int, ...]] = list(SLOT.iter_unpack(self.data))
        self.states = bytearray(used)
        view = memoryview(self.data)
        for place, row in enumerate(self.rows):
            at = place * SLOT_BYTES
            if crc32(view[at : at + SLOT_BYTES - 4], seed ^ place) == row[6]:
                self.states[place] = GOOD
            elif view[at : at + SLOT_BYTES] != SLOT_BLANK:
                self.states[place] = BAD

    def __len__(self) -> int:
        return len(self.rows)

    def slot(self, place: int) -> Slot:
        return Slot(*self.rows[place][:6])

    def state(self, place: int) -> int:
        return self.states[place] if place < len(self.states) else NEVER

    def last_good(self) -> int | None:
        place = self.states.rfind(GOOD)
        return None if place < 0 else place

    def proven_index(self, first_index: int) -> int:
        """Up to which index the log was known to be synced when slots were made."""
        known = (
            first_index + place - row[5]
            for place, (row, state) in enumerate(zip(self.rows, self.states, strict=True))
            if state == GOOD and row[5] < LAG_MAX
        )
        return max(known, default=0)


def sealed_columns(data: bytes, seal: Seal, first_index: int) -> "tuple[array[int], array[int]] | None":
    """Positions and checksums of a sealed segment's entries at once; None if the table is not what was sealed."""
    used = (seal.last_index - first_index + 1) * SLOT_BYTES
    if used < 0 or len(data) < used or crc32(memoryview(data)[:used]) != seal.table_sum:
        return None
    words = array("I")
    words.frombytes(data[:used])
    return words[_POSITION_WORD::_WORDS_PER_SLOT], words[_CHECKSUM_WORD::_WORDS_PER_SLOT]

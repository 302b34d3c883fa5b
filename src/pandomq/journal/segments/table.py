"""A segment's table: which slots are good, which were never written, which are damaged."""

from array import array
from typing import Final

from pandomq.journal.segments.layout import LAG_MAX, SLOT, SLOT_BLANK, SLOT_BYTES, Seal, Slot
from pandomq.kernel import crc32

NEVER: Final = 0
GOOD: Final = 1
BAD: Final = 2

_WORDS_PER_SLOT: Final = SLOT_BYTES // 4
_POSITION_WORD: Final = 3


class SlotTable:
    __slots__ = ("data", "rows", "states")

    def __init__(self, data: bytes, seed: int, sealed_count: int = 0) -> None:
        """This many slots are known to be good as a whole, see `sealed_slots`; the others are checked one by one."""
        used = max(-(-len(data.rstrip(b"\0")) // SLOT_BYTES), sealed_count)
        # A file that was cut short may end in the middle of a slot.
        self.data = data[: used * SLOT_BYTES].ljust(used * SLOT_BYTES, b"\0")
        """Up to the last slot that is not empty."""
        self.rows: list[tuple[int, ...]] = list(SLOT.iter_unpack(self.data))
        self.states = bytearray([GOOD]) * sealed_count + bytearray(used - sealed_count)
        view = memoryview(self.data)
        for place, row in enumerate(self.rows[sealed_count:], sealed_count):
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
        """The index up to which the log was known to be synced when slots were made."""
        known = (
            first_index + place - row[5]
            for place, (row, state) in enumerate(zip(self.rows, self.states, strict=True))
            if state == GOOD and row[5] < LAG_MAX
        )
        return max(known, default=0)


def sealed_slots(data: bytes, seal: Seal | None, first_index: int) -> int:
    """The number of slots that the seal covers; 0 if it covers none."""
    if seal is None:
        return 0
    count = seal.last_index - first_index + 1
    used = count * SLOT_BYTES
    return count if 0 < used <= len(data) and crc32(memoryview(data)[:used]) == seal.table_sum else 0


def sealed_positions(data: bytes, count: int) -> "array[int]":
    """Positions of all entries of a sealed segment."""
    words = array("I")
    words.frombytes(data[: count * SLOT_BYTES])
    return words[_POSITION_WORD::_WORDS_PER_SLOT]

"""The index of a page, which stays in memory: which messages the page holds, how large they are, and which of them have
left the queue.

    layout    version u8, parts u8, level u8, 0 u8, message count u32, first sequence u64, first deadline u64; then, if
              parts has 1, the sequences as u32 from the first one, else they follow each other; then, if parts has 2,
              the sizes as u32, else the one size of all. A size is that of the body, plus 2**30 if the message has a
              deadline and 2**31 if the log has it.
    state     flags u8; then, if it has 2, a bit a message that says it is gone; then, if it has 4, the keys of the
              messages of a last-value queue, each a length u32 and bytes, 2**32-1 for none; then, if it has 8, the term
              u64 of all its messages; 1 says suspect

The layout never changes, so that snapshots can share it. All numbers are little-endian.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pandomq.kernel.constants import NEVER_MS
from pandomq.kernel.plain.ring import RingEntry

if TYPE_CHECKING:
    from pandomq.kernel.plain.queue_pages import QueuePages

VERSION: Final = 1
START: Final = struct.Struct("<BBBBIQQ")
SEQUENCES: Final = 1
SIZES: Final = 2

SIZE_MASK: Final = 2**30 - 1
WITH_DEADLINE: Final = 2**30
KEPT: Final = 2**31

SUSPECT: Final = 1
GONE: Final = 2
KEYS: Final = 4
TERM: Final = 8
TERM_BYTES: Final = 8
NO_KEY: Final = 2**32 - 1


def layout_of(entries: Sequence[RingEntry], level: int) -> bytes:
    first = entries[0]
    offsets = [entry.sequence - first.sequence for entry in entries]
    sizes = [
        entry.message.body_size
        | (WITH_DEADLINE if entry.deadline_ms != NEVER_MS else 0)
        | (KEPT if entry.message.kept else 0)
        for entry in entries
    ]
    parts = (SEQUENCES if offsets[-1] >= len(entries) else 0) | (SIZES if len(set(sizes)) > 1 else 0)
    start = START.pack(VERSION, parts, level, 0, len(entries), first.sequence, first.deadline_ms)
    numbers = (offsets if parts & SEQUENCES else []) + (sizes if parts & SIZES else sizes[:1])
    return start + struct.pack(f"<{len(numbers)}I", *numbers)


class Page:
    """See the contract. The messages have positions from 0, whether they are still there or not."""

    layout: bytes
    queue: Any
    owner: Any
    level: int
    slots: int  # messages, also those that are gone
    first: int
    first_deadline_ms: int
    offsets: Sequence[int]
    _sizes: Sequence[int]

    def __init__(self) -> None:
        self.suspect = False
        self.wanted = False
        self.term = 0  # the term of all its messages; 0 if it is unknown
        self.data: bytes | None = None  # the page is loaded, but one before it is not
        self.keys: list[bytes | None] | None = None  # in a last-value queue
        self.count = self.size_bytes = self.kept_count = self.deadline_count = 0
        self._gone: set[int] = set()

    def take_layout(self, layout: bytes) -> None:
        """The counts are those of a page from which no message is gone. Raises ValueError if that is no layout."""
        if len(layout) < START.size + 4:
            raise ValueError("the layout of a page ends too early")
        version, parts, self.level, _, self.slots, self.first, self.first_deadline_ms = START.unpack_from(layout)
        numbers = array("I", layout[START.size :])
        offset_count = self.slots if parts & SEQUENCES else 0
        size_count = self.slots if parts & SIZES else 1
        if version != VERSION or not self.slots or len(numbers) != offset_count + size_count:
            raise ValueError("not the layout of a page")
        self.layout = layout
        self.offsets = numbers[:offset_count] if offset_count else range(self.slots)
        self._sizes = numbers[offset_count:]
        self.count = self.slots
        for position in range(self.slots):
            self._count(position, 1)

    @property
    def last(self) -> int:
        return self.first + self.offsets[self.slots - 1]

    def offset(self, position: int) -> int:
        return self.offsets[position]

    def size(self, position: int) -> int:
        return self._traits(position) & SIZE_MASK

    def is_kept(self, position: int) -> bool:
        return bool(self._traits(position) & KEPT)

    def has_deadline(self, position: int) -> bool:
        return bool(self._traits(position) & WITH_DEADLINE)

    def _traits(self, position: int) -> int:
        return self._sizes[position if len(self._sizes) > 1 else 0]

    def is_gone(self, position: int) -> bool:
        return position in self._gone

    def positions(self) -> Iterator[int]:
        """Positions of the messages that are still in the queue."""
        return (position for position in range(self.slots) if position not in self._gone)

    def find(self, sequence: int) -> int | None:
        """Its position, if it is in the queue."""
        position = bisect_left(self.offsets, sequence - self.first)
        if position == self.slots or self.first + self.offsets[position] != sequence or position in self._gone:
            return None
        return position

    def find_range(self, sequence_first: int, count: int) -> list[int]:
        """The positions of the messages in this range that are in the queue."""
        start = bisect_left(self.offsets, sequence_first - self.first)
        end = bisect_left(self.offsets, sequence_first + count - self.first)
        return [position for position in range(start, end) if position not in self._gone]

    def remove(self, position: int) -> None:
        self._gone.add(position)
        self.count -= 1
        self._count(position, -1)

    def _count(self, position: int, change: int) -> None:
        self.size_bytes += change * self.size(position)
        self.kept_count += change * self.is_kept(position)
        self.deadline_count += change * self.has_deadline(position)

    # --- for snapshots

    def index(self) -> tuple[bytes, bytes] | None:
        if not self.kept_count:
            return None
        flags = SUSPECT if self.suspect else 0
        gone = keys = term = b""
        if self.kept_count < self.slots:
            flags |= GONE
            bits = bytearray((self.slots + 7) // 8)
            for position in range(self.slots):
                if position in self._gone or not self.is_kept(position):
                    bits[position >> 3] |= 1 << (position & 7)
            gone = bytes(bits)
        if self.keys is not None:
            flags |= KEYS
            keys = b"".join(
                struct.pack("<I", NO_KEY) if key is None else struct.pack("<I", len(key)) + key for key in self.keys
            )
        if self.term:
            flags |= TERM
            term = self.term.to_bytes(TERM_BYTES, "little")
        return self.layout, bytes((flags,)) + gone + keys + term

    def take_state(self, state: bytes) -> None:
        """As `index` returned it. Raises ValueError if that is no state of this page."""
        flags, at = (state[0], 1) if state else (GONE, 1)
        self.suspect = bool(flags & SUSPECT)
        if flags & GONE:
            bits, at = state[at : at + (self.slots + 7) // 8], at + (self.slots + 7) // 8
            if at > len(state):
                raise ValueError("the state of a page ends too early")
            for position in range(self.slots):
                if bits[position >> 3] & 1 << (position & 7):
                    self.remove(position)
        if flags & KEYS:
            at = self._take_keys(state, at)
        if flags & TERM:
            self.term = int.from_bytes(state[at : at + TERM_BYTES], "little")
            at += TERM_BYTES
        if at != len(state) or not self.count:
            raise ValueError("not the state of this page")

    def _take_keys(self, state: bytes, at: int) -> int:
        self.keys = []
        for _ in range(self.slots):
            size = int.from_bytes(state[at : at + 4], "little")
            at += 4
            if size == NO_KEY:
                self.keys.append(None)
            else:
                self.keys.append(state[at : at + size])
                at += size
            if at > len(state):
                raise ValueError("the state of a page ends too early")
        return at

    def check(self) -> None:
        alive = list(self.positions())
        assert self.count == len(alive) > 0
        assert self.size_bytes == sum(map(self.size, alive))
        assert self.kept_count == sum(map(self.is_kept, alive))
        assert self.deadline_count == sum(map(self.has_deadline, alive))
        assert self.keys is None or len(self.keys) == self.slots
        assert self.data is None or self.wanted


def make_page(queue: "QueuePages", layout: bytes, owner: Any) -> Page:
    """Raises ValueError if that is no layout."""
    page = Page()
    page.queue = queue
    page.owner = owner
    page.take_layout(layout)
    return page

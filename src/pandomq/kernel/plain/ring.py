"""Entries of one queue and one priority, in order of their sequence.

Nearly everything happens at the two ends. An entry that leaves from the middle becomes a hole, so that those behind it
need not move; the first slot never is a hole, and holes never outnumber entries for long.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from pandomq.kernel.plain.message import Message

COMPACT_MIN: Final = 32
"""Fewer dead slots than this are not worth a move."""


class RingEntry:
    """A message's place in a queue; the message keeps it while it is unacked, in case it comes back."""

    __slots__ = ("deadline_ms", "delivery_count", "message", "redelivered", "sequence", "term")

    def __init__(self, message: Message, sequence: int, term: int, deadline_ms: int) -> None:
        self.message = message
        self.sequence = sequence
        self.term = term
        self.deadline_ms = deadline_ms
        self.delivery_count = 0
        self.redelivered = message.suspect


class Hole:
    """Marks the slot of an entry that left from the middle."""

    __slots__ = ("sequence",)

    def __init__(self, sequence: int) -> None:
        self.sequence = sequence


def _sequence(slot: RingEntry | Hole) -> int:
    return slot.sequence


class Ring:
    """A list whose front slots up to `_head` are used up."""

    __slots__ = ("_head", "_holes", "_slots", "held_bytes")

    def __init__(self) -> None:
        self._slots: list[RingEntry | Hole] = []
        self._head = 0
        self._holes = 0
        self.held_bytes = 0  # headers and bodies

    def __len__(self) -> int:
        return len(self._slots) - self._head - self._holes

    def __iter__(self) -> Iterator[RingEntry]:
        return (slot for slot in self._slots[self._head :] if isinstance(slot, RingEntry))

    @property
    def first(self) -> RingEntry:
        slot = self._slots[self._head]
        assert isinstance(slot, RingEntry)
        return slot

    def append(self, entry: RingEntry) -> None:
        self._slots.append(entry)
        self.held_bytes += entry.message.held_bytes

    def pop_first(self) -> RingEntry:
        entry = self._slots[self._head]
        assert isinstance(entry, RingEntry)
        self.held_bytes -= entry.message.held_bytes
        self._head += 1
        if self._holes or self._head >= COMPACT_MIN:
            self._skip_holes()
        return entry

    def remove(self, sequence: int, term: int | None = None) -> RingEntry | None:
        """None if there is no such entry, or it has another term than the given one."""
        at = bisect_left(self._slots, sequence, lo=self._head, key=_sequence)
        if at == len(self._slots):
            return None
        entry = self._slots[at]
        if entry.sequence != sequence or isinstance(entry, Hole) or term not in (None, entry.term):
            return None
        self._slots[at] = Hole(sequence)
        self._holes += 1
        self.held_bytes -= entry.message.held_bytes
        self._skip_holes()
        return entry

    def find_range(self, sequence_first: int, count: int) -> list[int]:
        """The sequences of its entries in this range."""
        at = bisect_left(self._slots, sequence_first, lo=self._head, key=_sequence)
        end = bisect_left(self._slots, sequence_first + count, lo=at, key=_sequence)
        return [slot.sequence for slot in self._slots[at:end] if isinstance(slot, RingEntry)]

    def pop_below(self, sequence: int) -> list[RingEntry]:
        """All entries with a lower sequence."""
        at = bisect_left(self._slots, sequence, lo=self._head, key=_sequence)
        return self._replace(slots=self._slots[at:], popped=self._slots[self._head : at])

    def pop_above(self, sequence: int) -> list[RingEntry]:
        """All entries with a higher sequence."""
        at = bisect_left(self._slots, sequence + 1, lo=self._head, key=_sequence)
        return self._replace(slots=self._slots[self._head : at], popped=self._slots[at:])

    def _replace(self, slots: list[RingEntry | Hole], popped: list[RingEntry | Hole]) -> list[RingEntry]:
        entries = [slot for slot in popped if isinstance(slot, RingEntry)]
        self._slots = [slot for slot in slots if isinstance(slot, RingEntry)]
        self._head = self._holes = 0
        self.held_bytes -= sum(entry.message.held_bytes for entry in entries)
        return entries

    def merge(self, entries: list[RingEntry]) -> None:
        """Puts entries, sorted by sequence, into their places; cheap if those are near the front."""
        at = bisect_left(self._slots, entries[-1].sequence, lo=self._head, key=_sequence)
        front = self._slots[self._head : at]
        # Both parts are sorted, so this is one merge.
        self._slots[:at] = sorted([*entries, *front], key=_sequence) if front else entries
        self._head = 0
        self.held_bytes += sum(entry.message.held_bytes for entry in entries)

    def _skip_holes(self) -> None:
        slots, head = self._slots, self._head
        while head < len(slots) and isinstance(slots[head], Hole):
            head += 1
            self._holes -= 1
        self._head = head
        if head >= COMPACT_MIN and head * 2 > len(slots):
            del slots[:head]
            self._head = 0
        elif self._holes >= COMPACT_MIN and self._holes * 2 > len(slots) - head:
            self._slots = [slot for slot in slots[head:] if isinstance(slot, RingEntry)]
            self._head = self._holes = 0

    def check(self) -> None:
        live = self._slots[self._head :]
        assert sum(isinstance(slot, Hole) for slot in live) == self._holes
        assert not live or isinstance(live[0], RingEntry)
        assert all(one.sequence < next_one.sequence for one, next_one in pairwise(live))
        assert self.held_bytes == sum(entry.message.held_bytes for entry in self)

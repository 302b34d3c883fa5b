"""The state in memory of one file with entries, and the catalogue of files by entries.

Eight bytes are kept of an entry, four once its segment is old.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from pandomq.journal.checksums import chain_next
from pandomq.journal.names import segment_file


class Segment:
    """A file of the log; it is the only one for the indexes from its first to its last."""

    __slots__ = (
        "_chain_from",
        "_chain_there",
        "chain_after",
        "chain_before",
        "checksums",
        "end",
        "file",
        "first_index",
        "number",
        "positions",
        "readers",
        "sealed",
        "slot_count",
    )

    def __init__(self, number: int, first_index: int, chain_before: int, slot_count: int, end: int) -> None:
        self.number = number
        self.file = segment_file(number)
        self.first_index = first_index
        self.chain_before = chain_before
        """0 if the head is damaged, and does not show it."""
        self.chain_after = chain_before
        """0 if it is unknown."""
        self._chain_from, self._chain_there = first_index - 1, chain_before
        """An entry, and the chain after it, from which the chain after each later entry follows."""
        self.slot_count = slot_count
        self.readers = 0
        """Reads under way: the file is kept until they are done."""
        self.positions: array[int] = array("I")
        self.checksums: array[int] | None = array("I")
        """None once the chain within this segment cannot be requested any more."""
        self.end = end
        """The offset at which the next group begins."""
        self.sealed = False

    @property
    def last_index(self) -> int:
        return self.first_index + len(self.positions) - 1

    @property
    def size_bytes(self) -> int:
        return self.end

    def entry_span(self, index: int) -> tuple[int, int]:
        """From the entry's head to at most the padding after it."""
        place = index - self.first_index
        following = place + 1
        end = self.positions[following] if following < len(self.positions) else self.end
        return self.positions[place], end

    def tell_chain_from(self, index: int, chain: int) -> None:
        """Sets the chain where the head, or entries up to this one, cannot show it; it is known from elsewhere."""
        self._chain_from, self._chain_there = index, chain
        if index == self.first_index - 1:
            self.chain_before = chain

    def fold_chain(self) -> None:
        """Computes the chain after the last entry, from their checksums."""
        self.chain_after = self._fold(self.last_index) or 0

    def chain_at(self, index: int) -> int | None:
        """None if it is unknown."""
        if index == self.last_index:
            return self.chain_after or None
        return self._fold(index)

    def _fold(self, index: int) -> int | None:
        if self.checksums is None or not self._chain_there or index < self._chain_from:
            return None
        chain, first_index = self._chain_there, self.first_index
        for checksum in self.checksums[self._chain_from + 1 - first_index : index + 1 - first_index]:
            chain = chain_next(chain, checksum)
        return chain


class SegmentList:
    """The files of the log in the order of their indexes. Below the snapshots there may be gaps."""

    __slots__ = ("_files", "_firsts")

    def __init__(self) -> None:
        self._files: list[Segment] = []
        self._firsts: list[int] = []

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def last(self) -> Segment | None:
        return self._files[-1] if self._files else None

    def add(self, stored: Segment) -> None:
        assert not self._firsts or stored.first_index > self._firsts[-1]
        self._files.append(stored)
        self._firsts.append(stored.first_index)

    def find(self, index: int) -> Segment | None:
        place = bisect_right(self._firsts, index) - 1
        if place < 0:
            return None
        stored = self._files[place]
        return stored if index <= stored.last_index else None

    def chain_at(self, index: int) -> int | None:
        """The chain from the segment that holds the entry, or from the next one, which begins behind it: before a log
        that starts with another broker's snapshot there is no other."""
        stored, following = self.find(index), self.find(index + 1)
        chain = None if stored is None else stored.chain_at(index)
        if chain is None and following is not None and following.first_index == index + 1:
            return following.chain_before or None
        return chain

    def bytes_after(self, index: int) -> int:
        """Bytes of the entries after this one, as far as they are held."""
        total_bytes = 0
        for stored in reversed(self._files):
            if stored.last_index <= index:
                break
            # A file that was cut short below the snapshots may have lost all its entries.
            if stored.positions:
                total_bytes += stored.end - stored.entry_span(max(index + 1, stored.first_index))[0]
        return total_bytes

    def remove(self, stored: Segment) -> None:
        place = self._files.index(stored)
        del self._files[place], self._firsts[place]

    @property
    def newest_segment(self) -> int:
        """The highest number of a file with whole entries; 0 without one."""
        return max((stored.number for stored in self._files), default=0)

    def whole_from(self, last_index: int) -> int:
        """The first index from which every entry up to the last is held whole."""
        first = last_index + 1
        for stored in reversed(self._files):
            if stored.last_index < first - 1:
                break
            first = stored.first_index
        return first

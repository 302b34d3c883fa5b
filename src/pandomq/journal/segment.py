"""What is known in memory of one file with entries, and which file holds which entry.

Eight bytes are kept of an entry, four once its segment is old.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from pandomq.journal.checksums import chain_next
from pandomq.journal.names import segment_file


class Segment:
    """A file of the log; indexes from first to last are its business and no other file's."""

    __slots__ = (
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
        self.chain_after = chain_before
        self.slot_count = slot_count
        self.readers = 0
        """Reads under way: the file stays until they are done."""
        self.positions: array[int] = array("I")
        self.checksums: array[int] | None = array("I")
        """None once nobody can ask for the chain within this segment any more."""
        self.end = end
        """Where the next group begins."""
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

    def fold_chain(self) -> None:
        """The chain after the last entry, from their checksums."""
        assert self.checksums is not None
        chain = self.chain_before
        for checksum in self.checksums:
            chain = chain_next(chain, checksum)
        self.chain_after = chain

    def chain_at(self, index: int) -> int | None:
        if index == self.last_index:
            return self.chain_after
        if self.checksums is None:
            return None
        chain = self.chain_before
        for checksum in self.checksums[: index - self.first_index + 1]:
            chain = chain_next(chain, checksum)
        return chain


class Catalogue:
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

    def bytes_after(self, index: int) -> int:
        """Of the entries after this one, as far as they are held."""
        total_bytes = 0
        for stored in reversed(self._files):
            if stored.last_index <= index:
                break
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
        """The first index from which on every entry up to the last is held whole."""
        first = last_index + 1
        for stored in reversed(self._files):
            if stored.last_index < first - 1:
                break
            first = stored.first_index
        return first

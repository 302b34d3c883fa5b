"""What is known in memory of one file with entries, and which file holds which entry.

A `Segment` holds entries whole; a `CompactSegment` only those byte ranges of them that were live when it was made.
Eight bytes an entry are kept of the former, twenty a range of the latter.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from pandomq.journal.checksums import chain_next
from pandomq.journal.effects import FileName
from pandomq.journal.layout import ENTRY_HEAD_BYTES, body_offset
from pandomq.journal.names import segment_file


class Stored:
    """A file of the log, whatever its form; indexes from first to last are its business and no other file's."""

    __slots__ = ("chain_after", "chain_before", "file", "first_index", "live_bytes", "number", "readers", "replaced_by")

    def __init__(self, number: int, file: FileName, first_index: int, chain_before: int) -> None:
        self.number = number
        self.file = file
        self.first_index = first_index
        self.chain_before = chain_before
        self.chain_after = chain_before
        self.live_bytes = 0
        self.readers = 0
        """Reads under way: the file stays until they are done."""
        self.replaced_by: Stored | None = None

    @property
    def last_index(self) -> int:
        raise NotImplementedError

    @property
    def size_bytes(self) -> int:
        raise NotImplementedError

    @property
    def body_bytes(self) -> int:
        """Of entries or ranges, live or not."""
        raise NotImplementedError

    def locate(self, index: int, offset: int, length: int) -> int | None:
        """Where in the file these bytes of an entry's payload are; None if they are not there."""
        raise NotImplementedError

    @property
    def current(self) -> "Stored":
        stored = self
        while stored.replaced_by is not None:
            stored = stored.replaced_by
        return stored


class Segment(Stored):
    __slots__ = ("checksums", "end", "growing", "positions", "sealed", "slot_count")

    def __init__(self, number: int, first_index: int, chain_before: int, slot_count: int, end: int) -> None:
        super().__init__(number, segment_file(number), first_index, chain_before)
        self.slot_count = slot_count
        self.positions: array[int] = array("I")
        self.checksums: array[int] | None = array("I")
        """None once nobody can ask for the chain within this segment any more."""
        self.end = end
        """Where the next group begins."""
        self.sealed = False
        self.growing = False
        """Recovery is not through with it."""

    @property
    def last_index(self) -> int:
        return self.first_index + len(self.positions) - 1

    @property
    def size_bytes(self) -> int:
        return self.end

    @property
    def body_bytes(self) -> int:
        return self.end - body_offset(self.slot_count)

    def locate(self, index: int, offset: int, length: int) -> int | None:
        position = self.positions[index - self.first_index]
        return position + ENTRY_HEAD_BYTES + offset if position else None

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


class Ranges:
    """Columns of (index, offset, length, position, checksum), in the order of index and offset."""

    __slots__ = ("checksums", "indexes", "lengths", "offsets", "positions")

    def __init__(self) -> None:
        self.indexes: array[int] = array("Q")
        self.offsets: array[int] = array("I")
        self.lengths: array[int] = array("I")
        self.positions: array[int] = array("I")
        self.checksums: array[int] = array("I")

    def __len__(self) -> int:
        return len(self.indexes)

    def add(self, index: int, offset: int, length: int, position: int, checksum: int) -> None:
        self.indexes.append(index)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.positions.append(position)
        self.checksums.append(checksum)

    def find(self, index: int, offset: int, length: int) -> int | None:
        """The place of the range that has these bytes in it."""
        first = bisect_left(self.indexes, index)
        last = bisect_right(self.indexes, index, first)
        place = bisect_right(self.offsets, offset, first, last) - 1
        if place < first or offset + length > self.offsets[place] + self.lengths[place]:
            return None
        return place


class CompactSegment(Stored):
    __slots__ = ("_body_bytes", "_last_index", "_size_bytes", "ranges")

    def __init__(
        self, number: int, file: FileName, indexes: tuple[int, int], chains: tuple[int, int], ranges: Ranges, size: int
    ) -> None:
        super().__init__(number, file, indexes[0], chains[0])
        self.chain_after = chains[1]
        self._last_index = indexes[1]
        self._size_bytes = size
        self._body_bytes = sum(ranges.lengths)
        self.ranges = ranges

    @property
    def last_index(self) -> int:
        return self._last_index

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @property
    def body_bytes(self) -> int:
        return self._body_bytes

    def locate(self, index: int, offset: int, length: int) -> int | None:
        place = self.ranges.find(index, offset, length)
        return None if place is None else self.ranges.positions[place] + offset - self.ranges.offsets[place]


class Catalogue:
    """The files of the log in the order of their indexes. Below the snapshots there may be gaps."""

    __slots__ = ("_files", "_firsts")

    def __init__(self) -> None:
        self._files: list[Stored] = []
        self._firsts: list[int] = []

    def __iter__(self) -> Iterator[Stored]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def last(self) -> Stored | None:
        return self._files[-1] if self._files else None

    def add(self, stored: Stored) -> None:
        assert not self._firsts or stored.first_index > self._firsts[-1]
        self._files.append(stored)
        self._firsts.append(stored.first_index)

    def find(self, index: int) -> Stored | None:
        place = bisect_right(self._firsts, index) - 1
        if place < 0:
            return None
        stored = self._files[place]
        return stored if index <= stored.last_index else None

    def holder(self, index: int) -> Stored | None:
        """The same while recovery still reads the last segments, and knows only where they begin."""
        place = bisect_right(self._firsts, index) - 1
        if place < 0:
            return None
        stored = self._files[place]
        return stored if index <= stored.last_index or (isinstance(stored, Segment) and stored.growing) else None

    def remove(self, stored: Stored) -> None:
        place = self._files.index(stored)
        del self._files[place], self._firsts[place]

    def replace(self, old: list[Stored], new: Stored) -> None:
        place = self._files.index(old[0])
        assert self._files[place : place + len(old)] == old, "what is joined lies side by side"
        self._files[place : place + len(old)] = [new]
        self._firsts[place : place + len(old)] = [new.first_index]
        for stored in old:
            stored.replaced_by = new

    @property
    def newest_segment(self) -> int:
        """The highest number of a file with whole entries; 0 without one."""
        return max((stored.number for stored in self._files if isinstance(stored, Segment)), default=0)

    def whole_from(self, last_index: int) -> int:
        """The first index from which on every entry up to the last is held whole."""
        first = last_index + 1
        for stored in reversed(self._files):
            if not isinstance(stored, Segment) or stored.last_index < first - 1:
                break
            first = stored.first_index
        return first

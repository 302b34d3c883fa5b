"""The messages of a queue that wait for a consumer: one ring per priority, the highest first.

Entries that come back are collected and merged into their rings once, when somebody looks: a hundred thousand
returned messages cost one merge, not a hundred thousand insertions.
"""

from collections.abc import Iterator

from pandomq.kernel.constants import NEVER_MS
from pandomq.kernel.plain.ring import Entry, Ring


class Ready:
    """Counts are always exact, also for what has come back and is not merged yet."""

    __slots__ = ("_filled", "_returned", "_rings", "bytes", "count", "priority_max", "with_deadline")

    def __init__(self) -> None:
        self.priority_max = 0
        self.count = 0
        self.bytes = 0
        self.with_deadline = 0
        self._rings: dict[int, Ring] = {}
        self._filled = 0  # a bit for each ring that holds something
        self._returned: list[Entry] = []

    def push(self, entry: Entry) -> None:
        """An entry with a higher sequence than all before it."""
        level = min(entry.message.priority, self.priority_max) if self.priority_max else 0
        ring = self._rings.get(level)
        if ring is None:
            ring = self._rings[level] = Ring()
            self._filled |= 1 << level
        ring.append(entry)
        self._count(entry, 1)

    def give_back(self, entry: Entry) -> None:
        """An entry that goes to its place by its sequence."""
        self._returned.append(entry)
        self._count(entry, 1)

    def first(self) -> Entry:
        """The next to be delivered; there must be one."""
        if self._returned:
            self._merge()
        return self._rings[self._filled.bit_length() - 1].first

    def pop_first(self) -> Entry:
        if self._returned:
            self._merge()
        level = self._filled.bit_length() - 1
        ring = self._rings[level]
        entry = ring.pop_first()
        self._count(entry, -1)
        if self.priority_max or not self.count:
            self._forget_empty(level, ring)
        return entry

    def remove(self, sequence: int) -> Entry | None:
        if self._returned:
            self._merge()
        for level, ring in self._rings.items():
            entry = ring.remove(sequence)
            if entry is not None:
                self._forget_empty(level, ring)
                self._count(entry, -1)
                return entry
        return None

    def clear(self) -> list[Entry]:
        """Everything, in delivery order; nothing is left."""
        entries = list(self)
        self._rings.clear()
        self._filled = self.count = self.bytes = self.with_deadline = 0
        return entries

    def __iter__(self) -> Iterator[Entry]:
        if self._returned:
            self._merge()
        for level in sorted(self._rings, reverse=True):
            yield from self._rings[level]

    def heads(self) -> Iterator[Entry]:
        """The first entry of each priority, from the highest."""
        if self._returned:
            self._merge()
        return (self._rings[level].first for level in sorted(self._rings, reverse=True))

    @property
    def next_deadline_ms(self) -> int:
        if not self.with_deadline:
            return NEVER_MS
        return min(entry.deadline_ms for entry in self.heads())

    def _merge(self) -> None:
        by_level: dict[int, list[Entry]] = {}
        for entry in self._returned:
            by_level.setdefault(min(entry.message.priority, self.priority_max), []).append(entry)
        self._returned = []
        for level, entries in by_level.items():
            entries.sort(key=lambda entry: entry.sequence)
            self._rings.setdefault(level, Ring()).merge(entries)
            self._filled |= 1 << level

    def _forget_empty(self, level: int, ring: Ring) -> None:
        if not len(ring):
            del self._rings[level]
            self._filled &= ~(1 << level)

    def _count(self, entry: Entry, change: int) -> None:
        self.count += change
        self.bytes += change * entry.message.body_size
        if entry.deadline_ms != NEVER_MS:
            self.with_deadline += change

    def entries(self) -> list[Entry]:
        """In no order, and nothing is moved by looking."""
        return [*self._returned, *(entry for ring in self._rings.values() for entry in ring)]

    def check(self) -> None:
        entries = self.entries()
        assert self.count == len(entries)
        assert self.bytes == sum(entry.message.body_size for entry in entries)
        assert self.with_deadline == sum(entry.deadline_ms != NEVER_MS for entry in entries)
        assert len({entry.sequence for entry in entries}) == len(entries)
        assert self._filled == sum(1 << level for level in self._rings)
        for level, ring in self._rings.items():
            assert len(ring)
            assert all(min(entry.message.priority, self.priority_max) == level for entry in ring)
            ring.check()

"""The messages of a queue that wait for a consumer: one level per priority, the highest first.

Entries that come back are collected, and merged into their levels once, at the next access: a hundred thousand returned
messages cost one merge, not a hundred thousand insertions.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pandomq.kernel.constants import NEVER_MS
from pandomq.kernel.plain.level import Level
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.page import Page
from pandomq.kernel.plain.ring import RingEntry

if TYPE_CHECKING:
    from pandomq.kernel.plain.engine import Engine


class Ready:
    """Counts are always exact, and include entries that came back and are not merged yet."""

    __slots__ = (
        "_engine", "_filled", "_levels", "_returned", "bytes", "count", "held_bytes", "paged_count", "priority_max",
        "with_deadline",
    )  # fmt: skip

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self.priority_max = 0
        self.count = 0
        self.bytes = 0
        self.with_deadline = 0
        self.held_bytes = 0  # headers and bodies of the messages in memory
        self.paged_count = 0  # number of messages in pages
        self._levels: dict[int, Level] = {}
        self._filled = 0  # a bit for each level that holds something
        self._returned: list[RingEntry] = []

    def push(self, entry: RingEntry) -> None:
        """An entry with a higher sequence than all before it."""
        self._level(self._number(entry.message)).push(entry)
        self._count(entry, 1)

    def give_back(self, entry: RingEntry) -> None:
        """Puts an entry back into its place by its sequence."""
        self._returned.append(entry)
        self._count(entry, 1)

    @property
    def head_missing(self) -> bool:
        """The next message to deliver is in a page."""
        return self.count > 0 and self._top().head_missing

    def want_head(self) -> None:
        """A consumer waits for the head."""
        self._engine.wanted += self._top().read_ahead()

    def first(self) -> RingEntry:
        """The next message to deliver; there must be one, and not in a page."""
        return self._top().head.first

    def pop_first(self) -> RingEntry:
        return self.pop_head(self._top())

    def pop_head(self, level: Level) -> RingEntry:
        """The first of this level, which must not be in a page."""
        entry = level.head.pop_first()
        self._count(entry, -1)
        if level.pages:
            self._engine.wanted += level.read_ahead()
        if self.priority_max or not self.count:
            self._forget_empty(level)
        return entry

    def remove(self, sequence: int, term: int | None = None) -> RingEntry | None:
        """Removes an entry in memory; if a term is given, only if it has that term."""
        for level in self.levels():
            for ring in level.rings():
                entry = ring.remove(sequence, term)
                if entry is not None:
                    self._forget_empty(level)
                    self._count(entry, -1)
                    return entry
        return None

    def in_memory(self, sequence_first: int, count: int) -> list[int]:
        """The sequences of those in memory that are in this range."""
        rings = [ring for level in self.levels() for ring in level.rings()]
        return [sequence for ring in rings for sequence in ring.find_range(sequence_first, count)]

    def clear(self) -> list[RingEntry | tuple[Page, int]]:
        """Removes and returns everything, in delivery order. An entry in a page is given by its position."""
        everything = [one for level in self.levels() for one in level.all()]
        self._levels.clear()
        self._filled = self.count = self.bytes = self.with_deadline = self.held_bytes = self.paged_count = 0
        return everything

    def levels(self) -> list[Level]:
        """From the highest."""
        self.merge()
        return [self._levels[number] for number in sorted(self._levels, reverse=True)]

    def __iter__(self) -> Iterator[RingEntry]:
        """The entries in memory."""
        for level in self.levels():
            yield from level

    def pages(self) -> list[Page]:
        return [page for level in self.levels() for page in level.pages]

    @property
    def next_deadline_ms(self) -> int:
        if not self.with_deadline:
            return NEVER_MS
        return min(level.next_deadline_ms for level in self.levels())

    @property
    def head_deadline_ms(self) -> int:
        """The deadline of the next message to deliver; there must be one."""
        return self._top().next_deadline_ms if self.with_deadline else NEVER_MS

    # --- pages

    def page_out(self, page: Page, entries: list[RingEntry]) -> None:
        """Notes that these entries, evicted from their level, are in the page from now on."""
        self._levels[page.level].add_page(page)
        self.paged_count += page.count
        self.held_bytes -= sum(entry.message.held_bytes for entry in entries)

    def load(self, number: int) -> list[tuple[Page, list[RingEntry]]]:
        """Loads the first pages of this level, as far as their bytes are there."""
        loaded = self._levels[number].load()
        for page, entries in loaded:
            self.paged_count -= page.count
            self.held_bytes += sum(entry.message.held_bytes for entry in entries)
        return loaded

    def reinstate(self, page: Page) -> None:
        """Restores a page from a snapshot. Raises ValueError if it is out of order."""
        level = self._levels.get(page.level)
        if page.level > self.priority_max or self._returned or (level is not None and any(level)):
            raise ValueError("a page has no place here, or comes after messages")
        self._level(page.level).add_page(page)
        self.count += page.count
        self.bytes += page.size_bytes
        self.with_deadline += page.deadline_count
        self.paged_count += page.count

    def remove_paged(self, page: Page, position: int) -> None:
        """The message leaves the queue; the page is gone with its last message."""
        self.count -= 1
        self.bytes -= page.size(position)
        self.with_deadline -= page.has_deadline(position)
        self.paged_count -= 1
        page.remove(position)
        if not page.count:
            level = self._levels[page.level]
            level.remove_page(page)
            self._forget_empty(level)

    # --- levels

    def merge(self) -> None:
        """Puts entries that came back into their places."""
        by_level: dict[int, list[RingEntry]] = {}
        for entry in self._returned:
            by_level.setdefault(self._number(entry.message), []).append(entry)
        self._returned = []
        for number, entries in by_level.items():
            entries.sort(key=lambda entry: entry.sequence)
            self._level(number).merge(entries)

    def _number(self, message: Message) -> int:
        return min(message.priority, self.priority_max) if self.priority_max else 0

    def _level(self, number: int) -> Level:
        level = self._levels.get(number)
        if level is None:
            level = self._levels[number] = Level(number)
            self._filled |= 1 << number
        return level

    def _top(self) -> Level:
        if self._returned:
            self.merge()
        return self._levels[self._filled.bit_length() - 1]

    def _forget_empty(self, level: Level) -> None:
        if level.is_empty:
            del self._levels[level.number]
            self._filled &= ~(1 << level.number)

    def _count(self, entry: RingEntry, change: int) -> None:
        self.count += change
        self.bytes += change * entry.message.body_size
        self.held_bytes += change * entry.message.held_bytes
        if entry.deadline_ms != NEVER_MS:
            self.with_deadline += change

    def entries(self) -> list[RingEntry]:
        """The entries in memory, in no order; reading them moves nothing."""
        return [*self._returned, *(entry for level in self._levels.values() for entry in level)]

    def check(self) -> None:
        entries = self.entries()
        pages = [page for level in self._levels.values() for page in level.pages]
        in_pages = [page.first + page.offset(position) for page in pages for position in page.positions()]
        assert self.paged_count == len(in_pages) == sum(page.count for page in pages)
        assert self.count == len(entries) + self.paged_count
        assert self.bytes == sum(entry.message.body_size for entry in entries) + sum(page.size_bytes for page in pages)
        assert self.held_bytes == sum(entry.message.held_bytes for entry in entries)
        with_deadline = sum(entry.deadline_ms != NEVER_MS for entry in entries)
        assert self.with_deadline == with_deadline + sum(page.deadline_count for page in pages)
        assert len({entry.sequence for entry in entries} | set(in_pages)) == self.count
        assert self._filled == sum(1 << number for number in self._levels)
        for number, level in self._levels.items():
            level.check()
            assert level.number == number
            assert all(self._number(entry.message) == number for entry in level)
            assert all(page.level == number for page in level.pages)

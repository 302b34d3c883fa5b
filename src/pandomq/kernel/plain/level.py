"""The ready messages of one queue and one priority, in memory and in pages.

head < pages[0] < pages[1] < … < tail by sequence

The next message to deliver is in the head. Without pages all messages are there; with pages, new messages go to the
tail. A
message that comes back to a place between the first page's first and the last page's last is a *stray*: it waits in
memory until the page around it is loaded.
"""

from collections.abc import Iterator
from itertools import pairwise

from pandomq.kernel.constants import NEVER_MS, PAGES_AHEAD
from pandomq.kernel.plain import page_form
from pandomq.kernel.plain.page import Page
from pandomq.kernel.plain.ring import Ring, RingEntry

PAGES_KEPT = 2
"""The head of a long queue keeps this many pages' worth: a page that was just loaded does not leave at once."""
SHORT_PARTS = 16
"""A page is worthwhile if it is at least one such part of a full one."""
OFFSET_MAX = 2**32 - 1
"""How far the sequences of one page may be apart."""


class Level:
    """Ready keeps the count and sizes of all its messages."""

    __slots__ = ("head", "number", "pages", "strays", "tail")

    def __init__(self, number: int) -> None:
        self.number = number
        self.head = Ring()
        self.tail = Ring()
        self.strays = Ring()
        self.pages: list[Page] = []

    @property
    def is_empty(self) -> bool:
        return not len(self.head) and not self.pages

    @property
    def head_missing(self) -> bool:
        return not len(self.head) and bool(self.pages)

    def rings(self) -> tuple[Ring, Ring, Ring]:
        return self.head, self.strays, self.tail

    def __iter__(self) -> Iterator[RingEntry]:
        """Iterates over the entries in memory."""
        for ring in self.rings():
            yield from ring

    def all(self) -> Iterator[RingEntry | tuple[Page, int]]:
        """All entries, in order; an entry in a page is given by its position."""
        strays = list(self.strays)
        yield from self.head
        for page in self.pages:
            for position in page.positions():
                while strays and strays[0].sequence < page.first + page.offset(position):
                    yield strays.pop(0)
                yield page, position
        yield from strays
        yield from self.tail

    # --- in

    def push(self, entry: RingEntry) -> None:
        """An entry with a higher sequence than all before it."""
        (self.tail if self.pages else self.head).append(entry)

    def merge(self, entries: list[RingEntry]) -> None:
        """Puts entries, sorted by sequence, into their places."""
        if not self.pages:
            self.head.merge(entries)
            return
        first, last = self.pages[0].first, self.pages[-1].last
        for ring, part in (
            (self.head, [entry for entry in entries if entry.sequence < first]),
            (self.strays, [entry for entry in entries if first <= entry.sequence <= last]),
            (self.tail, [entry for entry in entries if entry.sequence > last]),
        ):
            if part:
                ring.merge(part)

    # --- pages

    def evict(self, long: bool, page_bytes: int, page_messages: int) -> list[RingEntry]:
        """Takes a page's worth of messages out, if there are enough: a full page for a long queue, otherwise any
        worthwhile one. It takes from the tail first, then from the end of the head."""
        parts = 1 if long else 1 / SHORT_PARTS
        if _holds(self.tail, parts, page_bytes, page_messages):
            last = _last_of_page(list(self.tail), page_bytes, page_messages)
            return self.tail.pop_below(last + 1)
        if long:
            parts += PAGES_KEPT
        # The pages being loaded would come before the messages that leave the head now.
        if _holds(self.head, parts, page_bytes, page_messages) and not any(page.wanted for page in self.pages):
            first = _last_of_page(list(self.head)[::-1], page_bytes, page_messages)
            return self.head.pop_above(first - 1)
        return []

    def add_page(self, page: Page) -> None:
        """Adds a page that `evict` made, or that a snapshot named. Raises ValueError if it is not between head and
        tail."""
        if not self.pages or page.first > self.pages[-1].last:
            at = len(self.pages)
        elif page.last < self.pages[0].first:
            at = 0
        else:
            raise ValueError("pages overlap")
        self.pages.insert(at, page)

    def read_ahead(self) -> list[Page]:
        """Returns the pages to request now: as many as the head's share, while that is being used up."""
        wanted = []
        ahead = len(self.head)
        for page in self.pages[:PAGES_AHEAD]:
            if ahead > page.count:
                break
            if not page.wanted:
                page.wanted = True
                wanted.append(page)
            ahead += page.count
        return wanted

    def load(self) -> list[tuple[Page, list[RingEntry]]]:
        """Moves the first pages, as far as their bytes are there, into the head."""
        loaded: list[tuple[Page, list[RingEntry]]] = []
        while self.pages and (data := self.pages[0].data) is not None:
            page = self.pages.pop(0)
            page.data = None
            entries = page_form.decode(page, data)
            for entry in entries:
                self.head.append(entry)
            loaded.append((page, entries))
            self.settle()
        return loaded

    def remove_page(self, page: Page) -> None:
        self.pages.remove(page)
        self.settle()

    def settle(self) -> None:
        """A page is gone: strays without a page around them go to the head or the tail; without any page all messages
        go to the head."""
        if self.pages:
            below, above = self.strays.pop_below(self.pages[0].first), self.strays.pop_above(self.pages[-1].last)
        else:
            below, above = self.strays.pop_below(2**64), []
        if below:
            self.head.merge(below)
        if above:
            self.tail.merge(above)
        if not self.pages and len(self.tail):
            self.head.merge(list(self.tail))
            self.tail = Ring()

    # --- time

    @property
    def next_deadline_ms(self) -> int:
        """When the first message may have to expire. This is unknown until its page is loaded: 0 means that the page
        has to be loaded to find out. While the page is being loaded it is NEVER_MS."""
        if len(self.head):
            return self.head.first.deadline_ms
        page = self.pages[0]
        if page.wanted:
            return NEVER_MS
        return 0 if page.is_gone(0) else page.first_deadline_ms

    def check(self) -> None:
        for ring in self.rings():
            ring.check()
        for page in self.pages:
            page.check()
        assert not self.is_empty
        assert self.pages or not (len(self.strays) or len(self.tail))
        assert all(one.last < next_one.first for one, next_one in pairwise(self.pages))
        if self.pages:
            first, last = self.pages[0].first, self.pages[-1].last
            assert all(entry.sequence < first for entry in self.head)
            assert all(first < entry.sequence < last for entry in self.strays)
            assert all(entry.sequence > last for entry in self.tail)
            assert self.pages[0].data is None


def _holds(ring: Ring, parts: float, page_bytes: int, page_messages: int) -> bool:
    """Whether the ring holds `parts` parts of a page."""
    return len(ring) > 0 and (len(ring) >= parts * page_messages or ring.held_bytes >= parts * page_bytes)


def _last_of_page(entries: list[RingEntry], page_bytes: int, page_messages: int) -> int:
    """The sequence of the last of these entries that fits into a page. All messages of a page have one term."""
    held_bytes = 0
    for count, entry in enumerate(entries, start=1):
        if entry.term != entries[0].term or abs(entry.sequence - entries[0].sequence) > OFFSET_MAX:
            return entries[count - 2].sequence
        held_bytes += entry.message.held_bytes
        if count == page_messages or held_bytes >= page_bytes:
            break
    return entry.sequence

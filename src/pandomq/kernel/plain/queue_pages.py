"""The division of a queue between memory and pages.

A queue is *long* if its head would stay whole without the messages after it, and *short* if it has fewer than that but
still enough for a worthwhile page: the engine takes from long queues first.
"""

from typing import TYPE_CHECKING

from pandomq.kernel.constants import MESSAGE_OVERHEAD_BYTES
from pandomq.kernel.plain import page_form
from pandomq.kernel.plain.level import PAGES_KEPT, SHORT_PARTS
from pandomq.kernel.plain.page import Page, layout_of, make_page
from pandomq.kernel.plain.queue_consumers import QueueConsumers
from pandomq.kernel.plain.ready import Ready

if TYPE_CHECKING:
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.last_values import LastValues

IN_NONE, SHORT, LONG = range(3)


class QueuePages(QueueConsumers):
    """The part of a queue that controls memory."""

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self.ready = Ready(engine)
        self.last_values: LastValues | None = None
        self.withdrawable = False
        self.rank = IN_NONE  # which of the engine's lists it is in
        self.weighed_bytes = 0  # its part of Engine.ready_bytes

    def pages(self) -> list[Page]:
        return self.ready.pages()

    def weigh(self) -> None:
        """Reports to the engine how much of this queue is in memory, and whether that is much."""
        engine, ready = self.engine, self.ready
        if not engine.paging_bytes and not self.weighed_bytes:
            return
        present = ready.count - ready.paged_count
        weight_bytes = ready.held_bytes + present * MESSAGE_OVERHEAD_BYTES
        engine.ready_bytes += weight_bytes - self.weighed_bytes
        self.weighed_bytes = weight_bytes
        rank = IN_NONE if self.withdrawable else self._rank(present)
        if rank != self.rank:
            engine.rank(self, rank)

    def _rank(self, present: int) -> int:
        engine, held_bytes = self.engine, self.ready.held_bytes
        much = PAGES_KEPT + 1
        if present >= much * engine.page_messages or held_bytes >= much * engine.page_bytes:
            return LONG
        if present * SHORT_PARTS >= engine.page_messages or held_bytes * SHORT_PARTS >= engine.page_bytes:
            return SHORT if present else IN_NONE
        return IN_NONE

    def evict(self) -> tuple[Page, bytes] | None:
        """Takes one page out of memory, if there is enough for its rank: the lowest priority first."""
        engine, ready = self.engine, self.ready
        for level in reversed(ready.levels()):
            entries = level.evict(self.rank == LONG, engine.page_bytes, engine.page_messages)
            if entries:
                break
        else:
            return None
        page = make_page(self, layout_of(entries, level.number), None)
        page.term = entries[0].term
        if self.last_values is not None:
            page.keys = [self.last_values.key_of(entry.message) for entry in entries]
        data = page_form.encode(entries)
        ready.page_out(page, entries)
        for entry in entries:
            engine.let_go(entry.message)
        self.weigh()
        return page, data

    def load(self, number: int) -> None:
        """Loads pages of this level, as far as their bytes are there."""
        for page, entries in self.ready.load(number):
            for entry in entries:
                self.engine.hold(entry.message)
            self.free(page)

    def free(self, page: Page) -> None:
        page.count = page.size_bytes = 0
        self.engine.freed.append(page)

    def remove_paged(self, page: Page, position: int) -> bool:
        """The message is no longer ready. Returns True if its page is gone with it: then, when all are removed,
        `pages_went` must follow."""
        self.ready.remove_paged(page, position)
        if page.count:
            return False
        self.free(page)
        return True

    def pages_went(self) -> None:
        """The queue may have waited for these pages: then it waits for the next ones, which may be loaded already."""
        for level in self.ready.levels():
            self.load(level.number)
        self.activate_if_ready()

    def check_pages(self) -> None:
        assert all(page.queue is self for page in self.pages())
        assert (self.last_values is None) == all(page.keys is None for page in self.pages()) or not self.pages()
        assert not self.withdrawable or not self.ready.paged_count
        assert not self.deleted or self.rank == IN_NONE

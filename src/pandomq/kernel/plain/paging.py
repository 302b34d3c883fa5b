"""How much of all queues is in memory, and which messages leave it when that is too much.

Queues report their size when they are run, once a batch. Those that have enough for a page are in one of two lists, in
the order in which they were found: first the long ones give up pages in turn, and the short ones only when none is long
any more.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from pandomq.kernel.constants import PAGE_BYTES, PAGE_MESSAGES
from pandomq.kernel.plain import page_form
from pandomq.kernel.plain.page import Page
from pandomq.kernel.plain.queue_pages import LONG, SHORT

if TYPE_CHECKING:
    from pandomq.kernel.plain.queue_pages import QueuePages


class EnginePaging:
    """The part of an engine that controls memory."""

    def __init__(self) -> None:
        self.wanted: list[Page] = []
        self.freed: list[Page] = []
        self.paging_bytes = 0
        self.page_bytes = PAGE_BYTES
        self.page_messages = PAGE_MESSAGES
        self.ready_bytes = 0
        self._ranked: dict[int, OrderedDict[QueuePages, None]] = {LONG: OrderedDict(), SHORT: OrderedDict()}

    def rank(self, queue: "QueuePages", rank: int) -> None:
        """Puts the queue at the end of the list of that rank."""
        if queue.rank in self._ranked:
            del self._ranked[queue.rank][queue]
        queue.rank = rank
        if rank in self._ranked:
            self._ranked[rank][queue] = None

    def page_out(self, bytes_max: int) -> list[tuple[Page, bytes]]:
        pages: list[tuple[Page, bytes]] = []
        size_bytes = 0
        while self.ready_bytes > self.paging_bytes > 0 and size_bytes < bytes_max:
            queues = self._ranked[LONG] or self._ranked[SHORT]
            if not queues:
                break
            queue = next(iter(queues))
            queues.move_to_end(queue)
            evicted = queue.evict()
            if evicted is None:
                # The queue has enough messages, but not in one place; it is checked again after its next run.
                self.rank(queue, queue.rank - 1)
            else:
                pages.append(evicted)
                size_bytes += len(evicted[1])
        return pages

    def loaded(self, page: Page, data: bytes) -> None:
        if not page.count:
            return
        assert page.wanted
        page_form.decode(page, data)
        page.data = data
        queue = page.queue
        queue.load(page.level)
        queue.weigh()
        queue.watch_time()
        queue.activate_if_ready()

    def check_paging(self) -> None:
        for rank, queues in self._ranked.items():
            assert all(queue.rank == rank and not queue.withdrawable for queue in queues)
        assert self.ready_bytes >= 0

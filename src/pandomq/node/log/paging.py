"""Messages that are not in memory: the kernel names those that may leave and those that it needs back, the journal
stores them.

Once per batch `turn` passes pages on in both directions. The pages under way are bounded both ways; pages that the disk
has not written yet count as memory, and when there are too many publishers are held back (`behind`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from pandomq.journal.faults import corrupt
from pandomq.journal.paging.page_file import PagePlace
from pandomq.kernel.constants import PAGE_BYTES
from pandomq.limits import KIB, MIB

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.journal.paging.page_file import StoredPage
    from pandomq.journal.paging.pages import Pages

PAGES_MIN: Final = 16
"""The number of pages for which the memory that messages may take has room at least."""
PAGE_BYTES_MIN: Final = 2 * KIB
SQUEEZED_BYTES: Final = 4 * MIB
"""The memory that messages may take when a snapshot is begun."""
TURN_BYTES: Final = 2 * MIB
"""The bytes that one turn moves out of memory, at most or by a page more."""
LEAVING_BYTES_MAX: Final = 16 * MIB
"""Pages that wait to be written."""
COMING_BYTES_MAX: Final = 16 * MIB
"""Pages that are being read, unless one is larger."""
EXCESS_BYTES_MAX: Final = 32 * MIB
"""How much more memory than configured messages may take before their publishers have to wait for the disk."""


class Paging:
    __slots__ = ("_coming", "_coming_bytes", "_engine", "_exhausted", "_limit_bytes", "_pages", "_wanted", "behind")

    def __init__(self, engine: kernel.Engine, pages: Pages) -> None:
        self._engine = engine
        self._pages = pages
        self._wanted: deque[kernel.Page] = deque()
        self._coming: dict[StoredPage, kernel.Page] = {}
        self._coming_bytes = 0
        self._limit_bytes = 0
        self._exhausted = False
        """Whether there was nothing more to move out of memory."""
        self.behind = False
        """The disk does not take messages as fast as publishers send them."""

    def set_limit(self, paging_bytes: int) -> None:
        """Sets the memory for ready messages; messages beyond it are moved to the disk; 0: none are."""
        self._limit_bytes = self._engine.paging_bytes = paging_bytes
        # A page should be a small part of what is in memory.
        self._engine.page_bytes = min(PAGE_BYTES, max(PAGE_BYTES_MIN, paging_bytes // PAGES_MIN))

    def squeeze(self) -> bool:
        """Lowers the limit of messages in memory for a while; True until `turn` has come near to it. A snapshot notes
        the messages in memory in one step, and paging them is less work than copying them."""
        if self._engine.paging_bytes > SQUEEZED_BYTES:
            self._engine.paging_bytes = SQUEEZED_BYTES
            self._exhausted = False
            return True
        return 0 < self._limit_bytes and not (self._exhausted or self._pages.stalled)

    def relax(self) -> None:
        self._engine.paging_bytes = self._limit_bytes

    def adopt(self, place: tuple[int, int, int, int]) -> StoredPage:
        """Adopts the pages that a snapshot refers to."""
        return self._pages.adopt(PagePlace(*place))

    def turn(self) -> bool:
        """To be called after `Engine.deliver`. True if another turn would move more out of memory."""
        engine = self._engine
        more = False
        if self.behind or engine.ready_bytes > engine.paging_bytes:
            more = self._leave()
        else:
            self._exhausted = True
        if engine.freed:
            for page in engine.freed:
                self._forget(page.owner)
            engine.freed.clear()
        if engine.wanted:
            self._wanted.extend(engine.wanted)
            engine.wanted.clear()
        if self._wanted:
            self._fetch()
        return more

    def fetched(self, stored: StoredPage, blob: bytes) -> None:
        """To be called before some `Engine.deliver`. Raises StoreFault if these are no messages."""
        page = self._arrived(stored)
        if page is None:
            return
        try:
            self._engine.loaded(page, blob)
        except ValueError as error:
            raise corrupt(
                stored.file.file, stored.place.offset, f"a page of messages cannot be read: {error}"
            ) from error

    # Out of memory.

    def _leave(self) -> bool:
        engine, pages = self._engine, self._pages
        room = LEAVING_BYTES_MAX - pages.pending_bytes
        left_bytes = 0
        if room > 0 and not pages.stalled:
            for page, blob in engine.page_out(min(room, TURN_BYTES)):
                page.owner = pages.put(blob)
                left_bytes += len(blob)
            self._exhausted = left_bytes < min(room, TURN_BYTES)
        self._judge(engine.ready_bytes - self._limit_bytes if self._limit_bytes else 0)
        return TURN_BYTES <= left_bytes < room

    def _judge(self, excess_bytes: int) -> None:
        pages = self._pages
        if not self.behind:
            waits = pages.stalled or pages.pending_bytes >= LEAVING_BYTES_MAX
            self.behind = waits and excess_bytes > EXCESS_BYTES_MAX
        elif excess_bytes <= EXCESS_BYTES_MAX // 4:
            self.behind = False
        else:
            # The remaining messages may not be worth paging.
            self.behind = pages.stalled or pages.pending_bytes > LEAVING_BYTES_MAX // 4

    # Back into memory.

    def _fetch(self) -> None:
        while self._wanted and self._coming_bytes < COMING_BYTES_MAX:
            page = self._wanted.popleft()
            stored: StoredPage = page.owner
            if not stored.freed:
                self._coming[stored] = page
                self._coming_bytes += stored.place.length
                self._pages.fetch(stored)

    def _arrived(self, stored: StoredPage) -> kernel.Page | None:
        page = self._coming.pop(stored, None)
        if page is not None:
            self._coming_bytes -= stored.place.length
        return page

    def _forget(self, stored: StoredPage) -> None:
        # It may be on its way: then no message waits for it any more.
        self._arrived(stored)
        self._pages.free(stored)

"""Sealed chunks of streams as pages of the journal, for the broker's chunk cache.

Chunks that the disk has not written yet are in memory, and count; when there are too many publishers are held back
(`behind`). Reads are bounded, and those beyond wait.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from pandomq.limits import MIB

if TYPE_CHECKING:
    from pandomq.broker.streams.chunk_cache import OnBytes
    from pandomq.journal.paging.page_file import StoredPage
    from pandomq.journal.paging.pages import Pages

PENDING_BYTES_MAX: Final = 64 * MIB
"""Pages of any kind that wait to be written; beyond it publishers wait, too."""
COMING_BYTES_MAX: Final = 16 * MIB
"""Chunks that are being read, unless one is larger."""


class ChunkPages:
    __slots__ = ("_awaited", "_behind", "_coming_bytes", "_line", "_pages")

    held_bytes: Final = 0
    """Pages that wait for the disk are bounded by `behind`."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._awaited: dict[StoredPage, list[OnBytes]] = {}
        """The callbacks that wait for requested pages."""
        self._line: deque[StoredPage] = deque()
        """Requested pages that are not being read yet."""
        self._coming_bytes = 0
        self._behind = False

    @property
    def behind(self) -> bool:
        """The disk does not take chunks as fast as publishers make them."""
        pending_bytes = self._pages.pending_bytes
        self._behind = pending_bytes > (PENDING_BYTES_MAX // 4 if self._behind else PENDING_BYTES_MAX)
        return self._behind

    # Requests of the chunk cache.

    def put(self, blob: bytes) -> StoredPage:
        return self._pages.put(blob)

    def fetch(self, stored: StoredPage, on_bytes: OnBytes) -> None:
        waiting = self._awaited.setdefault(stored, [])
        waiting.append(on_bytes)
        if len(waiting) == 1:
            self._line.append(stored)
        self._ask()

    def free(self, stored: StoredPage) -> None:
        waiting = self._awaited.pop(stored, ())
        if waiting and stored in self._line:
            self._line.remove(stored)
        elif waiting:
            self._coming_bytes -= stored.place.length
        self._pages.free(stored)
        for on_bytes in waiting:
            on_bytes(None)
        self._ask()

    # Reports of the journal.

    def fetched(self, stored: StoredPage, blob: bytes) -> bool:
        """False if the page is not a chunk of this object."""
        waiting = self._awaited.pop(stored, None)
        if waiting is None:
            return False
        self._coming_bytes -= len(blob)
        for on_bytes in waiting:
            on_bytes(blob)
        self._ask()
        return True

    def _ask(self) -> None:
        while self._line and self._coming_bytes < COMING_BYTES_MAX:
            stored = self._line[0]
            # If this raises an exception, the page stays in line, and is requested with the next one.
            self._pages.fetch(stored)
            self._line.popleft()
            self._coming_bytes += stored.place.length

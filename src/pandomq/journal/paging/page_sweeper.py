"""Sweeps page files with few remaining pages: these pages move to the newest file, and the old file is deleted.

One file at a time, one page at a time, beside everything else; a disk that writes slowly delays it. A page is checked
before it is written again, so that damaged bytes never get a good checksum.
"""

from __future__ import annotations

from collections.abc import Callable

from pandomq.journal.effects import Lane
from pandomq.journal.events import Event, Flaw, FlawFound, FlawKind
from pandomq.journal.limits import PAGE_WRITE_BYTES_MAX
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.paging.page_file import PageFile, StoredPage, is_whole
from pandomq.journal.paging.pages import Pages
from pandomq.journal.work import Task, Work, pause, read


class PageSweeper:
    __slots__ = ("_emit", "_outbox", "_pages", "_task")

    def __init__(self, outbox: DiskRequests, pages: Pages, emit: Callable[[Event], None]) -> None:
        self._outbox = outbox
        self._pages = pages
        self._emit = emit
        self._task: Task[None] | None = None

    def step(self) -> None:
        """To be called now and then, not at once: an owner that frees one page often frees its neighbours next."""
        if self._task is None or self._task.over:
            self._task = Task(self._outbox, Lane.BULK, self._sweep_all(), lambda _: None)
            self._task.start()

    def written(self) -> None:
        if self._task is not None:
            self._task.wake()

    def _sweep_all(self) -> Work[None]:
        while True:
            file = self._pages.sparsest()
            if file is None:
                return
            yield from self._sweep(file)

    def _sweep(self, file: PageFile) -> Work[None]:
        # Nothing may delete the file while it is read here.
        file.readers += 1
        for page in list(file.pages):
            if not page.freed:
                yield from self._move(file, page)
            while self._pages.pending_bytes >= PAGE_WRITE_BYTES_MAX:
                yield from pause()
        # Pages that are being moved count as present until they are written.
        while any(not page.freed and not file.unfit for page in file.pages):
            yield from pause()
        self._pages.finished_reading(file)

    def _move(self, file: PageFile, page: StoredPage) -> Work[None]:
        place = page.place
        blob = yield from read(file.file, place.offset, place.length)
        if page.freed:
            return
        if is_whole(place, blob):
            self._pages.move(page, blob)
        else:
            # A later load will report it, too; until then it does no harm.
            file.unfit = True
            self._emit(FlawFound(Flaw(FlawKind.PAGE, file.file, place.offset, "a page is damaged")))

"""Pages: blobs that their owner keeps on disk instead of in memory, while it runs or while a snapshot refers to them.

Append-only files of many pages. A page has its place from the start; its blob stays in memory until it is written, and
reads get it from there in the meantime. Only pages that a snapshot refers to are synced, before that snapshot is final.
A file is deleted when neither the owner nor a kept snapshot uses any of its pages; a file with few such pages left is
swept: they move to the newest file.

A full disk does no harm: pages that could not be written stay in memory, are tried again, and `stalled` is set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from pandomq.journal.effects import Create, Delete, Effect, FileName, Lane, Read, Result, SyncDirectory, SyncFile, Write
from pandomq.journal.events import Event, PageFetched
from pandomq.journal.faults import damaged_page
from pandomq.journal.limits import PAGE_WRITE_BYTES_MAX, JournalSettings
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.paging.page_file import PageFile, PagePlace, StoredPage, encode_head, is_whole
from pandomq.journal.segments.layout import Identity
from pandomq.journal.space import Space, is_full
from pandomq.journal.work import DiskFailed, Task, Work, pause, perform
from pandomq.kernel import crc32


class _Writing(NamedTuple):
    page: StoredPage
    blob: bytes
    file: PageFile
    place: PagePlace


class Pages:
    __slots__ = (
        "_current",
        "_emit",
        "_files",
        "_holds",
        "_identity",
        "_live_bytes",
        "_numbers",
        "_outbox",
        "_settings",
        "_space",
        "_task",
        "_waiting",
        "held_bytes",
        "on_written",
        "pending_bytes",
        "stalled",
    )

    def __init__(
        self, settings: JournalSettings, outbox: DiskRequests, space: Space, emit: Callable[[Event], None]
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._space = space
        self._emit = emit
        self._identity: Identity
        self._numbers: Iterator[int]
        self._files: dict[int, PageFile] = {}
        self._current: PageFile | None = None
        self._holds: dict[int, frozenset[int]] = {}
        """Files that snapshots refer to, by the snapshot's index."""
        self._waiting: deque[_Writing] = deque()
        self._task: Task[None] | None = None
        self._live_bytes = 0
        self.pending_bytes = 0
        """Bytes in memory that are not on disk yet."""
        self.held_bytes = 0
        """Bytes of files that are kept only for snapshots, when they were last counted."""
        self.stalled = False
        """The disk is full."""
        self.on_written: Callable[[], None] = lambda: None

    def begin(
        self,
        identity: Identity,
        numbers: Iterator[int],
        held: dict[int, frozenset[int]],
        sizes: dict[FileName, int],
    ) -> None:
        """The store is open, its snapshots refer to these files, and files have these sizes."""
        self._identity = identity
        self._numbers = numbers
        self._holds.update(held)
        for number in frozenset[int]().union(*held.values()):
            file = self._known(number)
            file.end = max(file.end, sizes.get(file.file, 0))

    def replayed(self) -> None:
        """The owner has adopted the pages it needs."""
        for file in list(self._files.values()):
            self._let_go(file)

    # Operations of the owner on a page.

    def put(self, blob: bytes) -> StoredPage:
        file = self._current
        if file is None or file.end >= self._settings.page_file_bytes:
            file = self._begin_file()
        page = StoredPage(file, self._allocate(file, blob), blob)
        file.add(page)
        self._live_bytes += len(blob)
        self._write(_Writing(page, blob, file, page.place))
        return page

    def adopt(self, place: PagePlace) -> StoredPage:
        """A page that the snapshot refers to from which the owner's state is being built."""
        file = self._known(place.number)
        file.end = max(file.end, place.end)
        page = StoredPage(file, place)
        file.add(page)
        self._live_bytes += place.length
        return page

    def fetch(self, page: StoredPage) -> None:
        """Requests the blob; `PageFetched` returns it, unless the page is freed before."""
        assert not page.freed
        if page.blob is not None:
            self._emit(PageFetched(page, page.blob))
            return
        file, place = page.file, page.place

        def done(result: Result) -> None:
            assert isinstance(result, bytes)
            if not page.freed:
                if not is_whole(place, result):
                    raise damaged_page(file.file, place.offset)
                self._emit(PageFetched(page, result))
            self.finished_reading(file)

        file.readers += 1
        self._outbox.put(Lane.READ, Read(file.file, place.offset, place.length), done)

    def finished_reading(self, file: PageFile) -> None:
        file.readers -= 1
        self._let_go(file)

    def free(self, page: StoredPage) -> None:
        """Its owner has the content in memory again, or no longer needs it."""
        assert not page.freed
        page.freed = True
        if page.blob is not None and not page.held:
            self.pending_bytes -= len(page.blob)
            page.blob = None
        page.file.remove(page)
        self._live_bytes -= page.place.length
        self._let_go(page.file)

    # Files.

    @property
    def file_count(self) -> int:
        return len(self._files)

    @property
    def size_bytes(self) -> int:
        return sum(file.end for file in self._files.values())

    @property
    def live_bytes(self) -> int:
        return self._live_bytes

    def is_sparse(self, file: PageFile) -> bool:
        if file is self._current or file.unfit or file.unwritten or not file.pages:
            return False
        return file.live_bytes * 100 < file.end * self._settings.sparse_percent

    def sparsest(self) -> PageFile | None:
        sparse = [file for file in self._files.values() if self.is_sparse(file)]
        return min(sparse, key=lambda file: file.live_bytes, default=None)

    def _known(self, number: int) -> PageFile:
        file = self._files.get(number)
        if file is None:
            file = self._files[number] = PageFile(number)
            file.created = True
        return file

    def _begin_file(self) -> PageFile:
        full, self._current = self._current, None
        file = self._current = PageFile(next(self._numbers))
        self._files[file.number] = file
        if full is not None:
            self._let_go(full)
        return file

    def _allocate(self, file: PageFile, blob: bytes) -> PagePlace:
        place = PagePlace(file.number, file.end, len(blob), crc32(blob))
        file.end = place.end
        file.unwritten += 1
        return place

    def _let_go(self, file: PageFile) -> None:
        """Deletes the file if none of its pages is needed."""
        if file.pages or file.readers or file.unwritten or file is self._current:
            return
        if any(file.number in held for held in self._holds.values()) or file.number not in self._files:
            return
        del self._files[file.number]
        if file.created:
            self._outbox.put(Lane.PAGES, Delete(file.file))

    # Moving.

    def move(self, page: StoredPage, blob: bytes) -> None:
        """Writes the page to the newest file; it counts as moved once it is written."""
        file = self._current
        if file is None or file.end >= self._settings.page_file_bytes:
            file = self._begin_file()
        self._write(_Writing(page, blob, file, self._allocate(file, blob)))

    def _moved(self, page: StoredPage, file: PageFile, place: PagePlace) -> None:
        if page.freed:
            return
        left = page.file
        left.remove(page)
        page.file, page.place = file, place
        file.add(page)
        self._let_go(left)

    # Writing.

    def _write(self, writing: _Writing) -> None:
        self._waiting.append(writing)
        self.pending_bytes += len(writing.blob)
        if self._task is None or self._task.over:
            self._task = Task(self._outbox, Lane.PAGES, self._write_all(), lambda _: None).start()

    def _write_all(self) -> Work[None]:
        while self._waiting:
            batch = self._take()
            if not batch:
                continue
            file = batch[0].file
            try:
                if not file.created:
                    yield from perform(Create(file.file))
                    file.created = True
                if not file.headed:
                    yield from perform(Write(file.file, 0, (encode_head(self._identity, file.number),)))
                    file.headed = True
                yield from perform(*_writes(batch))
            except DiskFailed as failure:
                if not is_full(failure):
                    raise
                self._waiting.extendleft(reversed(batch))
                self.stalled = True
                self.on_written()
                # In the lane of those who make it.
                Task(self._outbox, Lane.BULK, self._space.give_up_reserve(), lambda _: None).start()
                yield from pause()
                self.stalled = False
                continue
            self._written(batch)

    def tick(self) -> None:
        """Tries again: there may be space now."""
        if self.stalled and self._task is not None:
            self._task.wake()
        self.held_bytes = sum(file.end for file in self._files.values() if not file.pages and file is not self._current)

    def _take(self) -> list[_Writing]:
        """The waiting writes of one file, in order, without pages that are no longer needed."""
        batch: list[_Writing] = []
        size_bytes = 0
        while self._waiting and size_bytes < PAGE_WRITE_BYTES_MAX:
            writing = self._waiting[0]
            if batch and writing.file is not batch[0].file:
                break
            self._waiting.popleft()
            page = writing.page
            if page.freed and not page.held:
                if writing.place is not page.place:
                    self.pending_bytes -= len(writing.blob)
                self._done(writing.file)
                continue
            batch.append(writing)
            size_bytes += len(writing.blob)
        return batch

    def _done(self, file: PageFile) -> None:
        file.unwritten -= 1
        self._let_go(file)

    def _written(self, batch: list[_Writing]) -> None:
        for page, blob, file, place in batch:
            file.dirty = True
            if place is not page.place:
                self.pending_bytes -= len(blob)
                self._moved(page, file, place)
            elif page.blob is not None:
                self.pending_bytes -= len(blob)
                page.blob = None
            page.held = False
            self._done(file)
        self.on_written()

    # Snapshots.

    def hold(self, index: int, pages: Iterable[StoredPage]) -> None:
        """A snapshot that will refer to these pages at their current places is being written."""
        numbers: set[int] = set()
        for page in pages:
            assert not page.freed
            numbers.add(page.place.number)
            page.held = page.blob is not None
        self._holds[index] = frozenset(numbers)

    def release(self, index: int) -> None:
        """The snapshot does not exist, or was deleted."""
        for number in self._holds.pop(index, ()):
            file = self._files.get(number)
            if file is not None:
                self._let_go(file)

    def settle(self, pages: Sequence[StoredPage], index: int) -> Work[str]:
        """Waits until everything that a snapshot refers to is on disk; returns the reason if that fails."""
        while any(page.held for page in pages):
            if self.stalled:
                return "the disk is full"
            yield from pause()
        syncs: list[Effect] = []
        for number in sorted(self._holds[index]):
            file = self._files[number]
            if file.dirty:
                file.dirty = False
                syncs.append(SyncFile(file.file))
        if syncs:
            yield from perform(*syncs, SyncDirectory())
        return ""


def _writes(batch: list[_Writing]) -> list[Effect]:
    """One write for each range without a gap."""
    effects: list[Effect] = []
    chunks: list[bytes] = []
    start = end = 0
    for writing in batch:
        if chunks and writing.place.offset != end:
            effects.append(Write(writing.file.file, start, tuple(chunks)))
            chunks = []
        if not chunks:
            start = writing.place.offset
        chunks.append(writing.blob)
        end = writing.place.end
    effects.append(Write(batch[0].file.file, start, tuple(chunks)))
    return effects

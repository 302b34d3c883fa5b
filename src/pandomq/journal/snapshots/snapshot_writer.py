"""Writes one snapshot beside the log, piece by piece, and checks it before it is final.

The owner adds pieces at its own pace; nothing waits for them, and `pending_bytes` shows when it should pause. After
`finish` the file is synced and read back. It gets its name, and may replace older ones, only when its entry is synced
and can no longer be cut off the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pandomq.journal.chain import ChainPoints
from pandomq.journal.effects import Create, Delete, FileName, Rename, SyncDirectory, SyncFile, Write
from pandomq.journal.limits import SNAPSHOT_PIECE_BYTES_MAX, JournalSettings
from pandomq.journal.names import snapshot_file, unfinished
from pandomq.journal.paging.page_file import StoredPage
from pandomq.journal.paging.pages import Pages
from pandomq.journal.segments.layout import Identity
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.snapshot import (
    KIND_CHAIN,
    KIND_PAGES,
    OWN_KINDS,
    BadSnapshot,
    SnapshotHead,
    check,
    encode_end,
    encode_head,
    encode_piece,
    encode_places,
)
from pandomq.journal.space import Space, is_full
from pandomq.journal.work import DiskFailed, Task, Work, pause, perform


class SnapshotWriter:
    __slots__ = (
        "_chunks",
        "_file",
        "_flush",
        "_given_up",
        "_identity",
        "_number",
        "_pages",
        "_referred",
        "_settings",
        "_settled",
        "_size_bytes",
        "_space",
        "_whole",
        "chain",
        "index",
        "pending_bytes",
        "task",
        "term",
    )

    def __init__(
        self,
        settings: JournalSettings,
        identity: Identity,
        space: Space,
        settled: Callable[[], int],
        flush: Callable[[], None],
        *,
        index: int,
        term: int,
        chain: int,
        points: ChainPoints,
        pages: Pages,
        referred: Sequence[StoredPage],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._space = space
        self._settled = settled
        self._flush = flush
        self.index = index
        self.term = term
        self.chain = chain
        self._file = unfinished(snapshot_file(index))
        self._chunks: list[bytes] = [encode_head(identity, index, term, chain)]
        self._number = 0
        self._size_bytes = len(self._chunks[0])
        self._whole = False
        self._given_up = ""
        self.pending_bytes = self._size_bytes
        """Bytes added, and not yet written to the system."""
        self.task: Task[str | int] | None = None
        self._pages = pages
        self._referred = referred
        self._put(KIND_CHAIN, points.encode())
        for data in encode_places([page.place for page in referred]):
            self._put(KIND_PAGES, data)

    def add(self, kind: int, data: bytes) -> None:
        assert 0 <= kind < OWN_KINDS
        if len(data) > SNAPSHOT_PIECE_BYTES_MAX:
            raise ValueError(f"a piece of a snapshot has at most {SNAPSHOT_PIECE_BYTES_MAX} bytes")
        self._put(kind, data)
        self._wake_if(self.pending_bytes >= self._settings.bulk_chunk_bytes)

    def finish(self) -> None:
        """All pieces were added."""
        self._queue(encode_end(self._number, self._size_bytes))
        self._whole = True
        self._wake_if(True)

    def give_up(self, reason: str) -> None:
        self._given_up = reason
        self._wake_if(True)

    def wake(self) -> None:
        """To be called when more of the log is synced or committed."""
        self._wake_if(self._whole)

    def _wake_if(self, wanted: bool) -> None:
        if wanted and self.task is not None:
            self.task.wake()

    def _put(self, kind: int, data: bytes) -> None:
        assert not self._whole
        self._queue(encode_piece(kind, self._number, data))
        self._number += 1

    def _queue(self, piece: tuple[bytes, bytes]) -> None:
        self._chunks += piece
        size_bytes = len(piece[0]) + len(piece[1])
        self._size_bytes += size_bytes
        self.pending_bytes += size_bytes

    def work(self) -> Work[str | int]:
        """Results in the size of the file, or in the reason why there is none."""
        try:
            yield from perform(Create(self._file))
            yield from self._write()
            if not self._given_up:
                yield from self._check()
                while self._settled() < self.index and not self._given_up:
                    self._flush()
                    yield from pause()
            if not self._given_up:
                # Pages that the snapshot refers to must be on the disk before it is.
                self._given_up = yield from self._pages.settle(self._referred, self.index)
            if not self._given_up:
                yield from perform(Rename(self._file, snapshot_file(self.index)), SyncDirectory())
                return self._size_bytes
        except DiskFailed as failure:
            if not is_full(failure):
                raise
            self._given_up = "the disk is full"
            yield from self._space.give_up_reserve()
        yield from perform(Delete(self._file))
        return self._given_up

    def _write(self) -> Work[None]:
        position = unsynced_bytes = 0
        while not self._given_up and not (self._whole and not self._chunks):
            if self.pending_bytes < self._settings.bulk_chunk_bytes and not self._whole:
                yield from pause()
                continue
            chunks = self._take()
            size_bytes = sum(map(len, chunks))
            yield from perform(Write(self._file, position, (b"".join(chunks),)))
            position += size_bytes
            unsynced_bytes += size_bytes
            if unsynced_bytes >= self._settings.bulk_sync_bytes:
                unsynced_bytes = 0
                yield from perform(SyncFile(self._file))
        yield from perform(SyncFile(self._file))

    def _take(self) -> list[bytes]:
        taken: list[bytes] = []
        size_bytes = count = 0
        for chunk in self._chunks:
            taken.append(chunk)
            count += 1
            size_bytes += len(chunk)
            if size_bytes >= self._settings.bulk_chunk_bytes:
                break
        del self._chunks[:count]
        self.pending_bytes -= size_bytes
        return taken

    def _check(self) -> Work[None]:
        window = ReadWindow(self._file, self._size_bytes, self._settings.bulk_chunk_bytes)
        head = SnapshotHead(FileName(self._file), self._identity.cluster_id, self.index, self.term, self.chain)
        try:
            yield from check(window, self._identity.cluster_id, head)
        except BadSnapshot as bad:
            self._given_up = f"read back, it is damaged at offset {bad.offset}: {bad.text}"

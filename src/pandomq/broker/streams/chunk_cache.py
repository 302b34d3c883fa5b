"""Keeps the sealed chunks of a broker's streams: their bytes in a store, some of them opened in memory.

The store is memory, or the disk (`node.chunk_pages`); a reader of a chunk is called back, at once or later, with None
if retention has deleted it first. The last opened or sealed chunks are kept, up to a number of bytes.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakSet

from pandomq import kernel
from pandomq.broker.streams.chunk_index import SealedChunk
from pandomq.broker.streams.packing import packed, unpacked
from pandomq.limits import STREAM_CACHE_BYTES_MAX

OnBytes = Callable[[bytes | None], None]
OnChunk = Callable[[kernel.Chunk | None], None]


class ChunkStore(Protocol):
    """The object that it returns for a chunk is its own, and can be a key."""

    @property
    def held_bytes(self) -> int:
        """The memory that it holds, and does not release by itself."""

    def put(self, blob: bytes) -> Any: ...

    def fetch(self, stored: Any, on_bytes: OnBytes) -> None: ...

    def free(self, stored: Any) -> None: ...


class InMemory:
    """One chunk of a broker without a disk."""

    __slots__ = ("blob",)

    def __init__(self, blob: bytes) -> None:
        self.blob = blob


class MemoryStore:
    __slots__ = ("held_bytes",)

    def __init__(self) -> None:
        self.held_bytes = 0

    def put(self, blob: bytes) -> InMemory:
        self.held_bytes += len(blob)
        return InMemory(blob)

    def fetch(self, stored: InMemory, on_bytes: OnBytes) -> None:
        on_bytes(stored.blob)

    def free(self, stored: InMemory) -> None:
        self.held_bytes -= len(stored.blob)


class Noted:
    """Chunks that will be read later, though they may be sealed by then: for as long as this object exists."""

    __slots__ = ("__weakref__", "chunks")

    def __init__(self) -> None:
        self.chunks: set[kernel.Chunk] = set()


class ChunkCache:
    __slots__ = ("_awaited", "_noted", "_opened", "_opened_bytes", "store")

    def __init__(self) -> None:
        self.store: ChunkStore = MemoryStore()
        self._opened: OrderedDict[Any, kernel.Chunk] = OrderedDict()
        self._opened_bytes = 0
        self._awaited: dict[Any, list[OnChunk]] = {}
        self._noted: WeakSet[Noted] = WeakSet()

    def note(self) -> Noted:
        noted = Noted()
        self._noted.add(noted)
        return noted

    def put(self, chunk: kernel.Chunk, compression: str) -> Any:
        stored = self.store.put(packed(chunk.seal(), compression))
        self._keep(stored, chunk)
        return stored

    def fetch(self, row: SealedChunk, on_bytes: OnBytes) -> None:
        """Fetches the chunk's bytes, as they are stored."""
        self.store.fetch(row.stored, on_bytes)

    def open(self, row: SealedChunk, on_chunk: OnChunk) -> None:
        stored = row.stored
        chunk = self._opened.get(stored)
        if chunk is not None:
            self._opened.move_to_end(stored)
            on_chunk(chunk)
            return
        waiting = self._awaited.get(stored)
        if waiting is not None:
            waiting.append(on_chunk)
            return
        waiting = self._awaited[stored] = [on_chunk]
        try:
            self.store.fetch(stored, lambda blob: self._came(stored, waiting, blob))
        except Exception:
            # It is not known whether the chunk will come. The next reader requests it again, instead of waiting for it.
            waiting.clear()
            self._awaited.pop(stored, None)
            raise

    def _came(self, stored: Any, waiting: list[OnChunk], blob: bytes | None) -> None:
        if not waiting:
            return
        chunk = None if blob is None else kernel.Chunk.open(unpacked(blob))
        if chunk is not None:
            self._keep(stored, chunk)
        del self._awaited[stored]
        for on_chunk in waiting:
            on_chunk(chunk)

    def free(self, row: SealedChunk) -> None:
        chunk = self._opened.pop(row.stored, None)
        if chunk is not None:
            self._opened_bytes -= chunk.size_bytes
        self.store.free(row.stored)

    @property
    def held_bytes(self) -> int:
        """The memory that streams hold for lack of a disk."""
        return self.store.held_bytes

    def _keep(self, stored: Any, chunk: kernel.Chunk) -> None:
        self._opened[stored] = chunk
        self._opened_bytes += chunk.size_bytes
        while self._opened_bytes > STREAM_CACHE_BYTES_MAX and len(self._opened) > 1:
            _, oldest = self._opened.popitem(last=False)
            self._opened_bytes -= oldest.size_bytes
            if not any(oldest in noted.chunks for noted in self._noted):
                # Its readers will request it again: slow readers, each at another place, must not keep one each in
                # memory.
                oldest.let_go()

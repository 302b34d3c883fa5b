"""Where the sealed chunks of a broker's streams are: their bytes with a store, some of them opened in memory.

The store is memory, or the disk (`node.chunk_pages`); whoever wants a chunk is called back, at once or later, and hears
None if retention was quicker. Those that were opened last, or have just been sealed, are kept, up to a number of bytes.
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
    """What it gives for a chunk is its own: an object that can be a key."""

    @property
    def held_bytes(self) -> int:
        """What it has in memory, and will not get rid of by itself."""

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
    """Chunks that somebody will read later, though they may be sealed by then: for as long as this is there."""

    __slots__ = ("__weakref__", "chunks")

    def __init__(self) -> None:
        self.chunks: set[kernel.Chunk] = set()


class Shelf:
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
        """Its bytes, as they are stored."""
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
        self._awaited[stored] = [on_chunk]
        self.store.fetch(stored, lambda blob: self._came(stored, blob))

    def _came(self, stored: Any, blob: bytes | None) -> None:
        chunk = None if blob is None else kernel.Chunk.open(unpacked(blob))
        if chunk is not None:
            self._keep(stored, chunk)
        for on_chunk in self._awaited.pop(stored):
            on_chunk(chunk)

    def free(self, row: SealedChunk) -> None:
        chunk = self._opened.pop(row.stored, None)
        if chunk is not None:
            self._opened_bytes -= chunk.size_bytes
        self.store.free(row.stored)

    @property
    def held_bytes(self) -> int:
        """What streams have in memory for want of a disk."""
        return self.store.held_bytes

    def _keep(self, stored: Any, chunk: kernel.Chunk) -> None:
        self._opened[stored] = chunk
        self._opened_bytes += chunk.size_bytes
        while self._opened_bytes > STREAM_CACHE_BYTES_MAX and len(self._opened) > 1:
            _, oldest = self._opened.popitem(last=False)
            self._opened_bytes -= oldest.size_bytes
            if not any(oldest in noted.chunks for noted in self._noted):
                # Whoever reads it wants it again: slow readers, each at another place, must not keep one each in
                # memory.
                oldest.let_go()

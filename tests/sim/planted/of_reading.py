"""Bugs of the data port's reads of streams: rows, ends, times and stored offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq.broker.log.commands import StoreOffset
from pandomq.broker.log.snapshot import Snapshot
from pandomq.broker.streams.stream import ChunkSummary, Stream
from pandomq.broker.streams.streams import Streams
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq import kernel
    from pandomq.broker.administration.administration import OnDone
    from pandomq.broker.streams.chunk_index import SealedChunk

NODES: Final = 3


def _serve_all(patch: Patch) -> None:
    def end(stream: Stream) -> int:
        chunk = stream.open_chunk
        return max(stream.queue.committed_end, chunk.last_offset + 1 if chunk.count else 0)

    patch.set(Stream, "committed_end", property(end))


def _pass_over_rest(patch: Patch) -> None:
    def whole(stream: Stream, row: SealedChunk) -> ChunkSummary:
        return ChunkSummary(
            row.first_offset, row.last_offset, row.count, row.size_bytes, row.first_time_us, row.last_time_us
        )

    patch.set(Stream, "_readable", whole)


def _find_chunk_only(patch: Patch) -> None:
    def rough(
        stream: Stream, time_us: int, on_offset: Callable[[int], None], full: Sequence[kernel.Chunk] = ()
    ) -> None:
        position = stream.index.find_time(time_us)
        rows = stream.index.rows
        chunk = rows[position] if position < len(rows) else stream.open_chunk
        on_offset(min(chunk.first_offset, stream.committed_end) if chunk.count else stream.committed_end)

    patch.set(Stream, "find_time", rough)


def _leave_out_stored(patch: Patch) -> None:
    note_stream = Snapshot._note_stream

    def forgetful(snapshot: Snapshot, queue_id: int, stream: Stream) -> None:
        note_stream(snapshot, queue_id, stream)
        kept, chunk, count = snapshot._streams.pop()
        kept.offsets.clear()
        snapshot._streams.append((kept, chunk, count))

    patch.set(Snapshot, "_note_stream", forgetful)


def _store_here(patch: Patch) -> None:
    def local(
        streams: Streams, vhost: str, stream: str, user: str, name: str, offset: int, on_done: OnDone, now_ms: int
    ) -> None:
        found = streams.find(vhost, stream)
        assert found is not None
        found.offsets.store(name, offset, found.first_offset)
        on_done(None)

    patch.set(Streams, "store_offset", local)


def _answer_stored_early(patch: Patch) -> None:
    def hasty(
        streams: Streams, vhost: str, stream: str, user: str, name: str, offset: int, on_done: OnDone, now_ms: int
    ) -> None:
        broker = streams._broker
        broker.now_ms = now_ms - broker.clock_ahead_ms
        broker.log(StoreOffset(vhost, stream, name, offset, user))
        on_done(None)

    patch.set(Streams, "store_offset", hasty)


PLANTED_BUGS: Final = (
    PlantedBug("data-beyond-commit", "The data port serves messages that are not committed.", _serve_all),
    PlantedBug(
        "chunk-rest-skipped",
        "A chunk counts as read to its end before its last messages are committed.",
        _pass_over_rest,
    ),
    PlantedBug(
        "time-of-chunk", "The data port answers `offset_at` with the first offset of the chunk.", _find_chunk_only
    ),
    PlantedBug("stored-offsets-not-kept", "A snapshot omits stored offsets.", _leave_out_stored),
    PlantedBug("stored-offsets-of-root", "Only the root stores offsets.", _store_here, NODES),
    PlantedBug(
        "stored-offset-early",
        "The data port answers `store_offset` before the offset is committed.",
        _answer_stored_early,
    ),
)

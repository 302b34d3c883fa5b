"""The bytes of streams: whole chunks as they are stored, from wherever they are.

Chunks on the disk are named, and go from their file to the socket without passing through here; the rest, open chunks
and those just sealed, is in memory. This path never reads inside a chunk: it has a checksum, and its reader checks
that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq import data_form
from pandomq.broker.streams.chunk_cache import InMemory
from pandomq.journal.paging.page_file import StoredPage
from pandomq.node.data import fields as read
from pandomq.node.data import limits
from pandomq.node.data.effects import FileRange
from pandomq.node.data.handlers.streams import find_stream
from pandomq.node.data.refusals import RequestRefused, not_now, offset_gone

if TYPE_CHECKING:
    from pandomq.broker.streams.stream import ChunkSummary, Stream
    from pandomq.data_form import Fields
    from pandomq.node.data.effects import PayloadPart
    from pandomq.node.data.session import DataSession, Responder


def read_(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    stream = find_stream(client, fields)
    first_offset, end_offset = read.number(fields, "first_offset"), read.number(fields, "end_offset")
    bytes_max = min(read.number(fields, "bytes_max"), data_form.DATA_PAYLOAD_BYTES_MAX)
    if first_offset < stream.first_offset:
        raise offset_gone(
            (
                f"stream '{stream.name}' begins at offset {stream.first_offset}: offset {first_offset} was deleted by "
                "retention"
            ),
            stream.first_offset,
        )
    _Gathering(stream, _chosen(stream, first_offset, end_offset, bytes_max), first_offset, answer).begin()


def _chosen(stream: Stream, first_offset: int, end_offset: int, bytes_max: int) -> list[ChunkSummary]:
    """Chunks that fit; one at least, if there is one."""
    chosen: list[ChunkSummary] = []
    left_bytes = bytes_max
    while first_offset < end_offset and len(chosen) < limits.READ_CHUNKS_MAX:
        # Some are examined together; most of the time that is enough.
        rows = stream.chunks(first_offset, end_offset, limits.ROWS_AT_ONCE)
        for row in rows:
            left_bytes -= row.size_bytes
            if chosen and left_bytes < 0:
                return chosen
            chosen.append(row)
        if len(rows) < limits.ROWS_AT_ONCE:
            break
        first_offset = rows[-1].last_offset + 1
    return chosen


class _Gathering:
    """The chunks of one answer, some of which must be waited for."""

    __slots__ = ("_answer", "_awaited", "_first_offset", "_parts", "_rows", "_stream")

    def __init__(self, stream: Stream, rows: list[ChunkSummary], first_offset: int, answer: Responder) -> None:
        self._stream = stream
        self._rows = rows
        self._first_offset = first_offset
        self._answer = answer
        self._parts: list[PayloadPart | None] = [None] * len(rows)
        self._awaited = len(rows)

    def begin(self) -> None:
        if not self._rows:
            self._finish()
        for at, row in enumerate(self._rows):
            part = _at_hand(self._stream.stored(row.first_offset))
            if part is None:
                self._stream.read(row.first_offset, lambda octets, at=at: self._came(at, octets))  # type: ignore[misc]
            else:
                self._came(at, part)

    def _came(self, at: int, part: PayloadPart | None) -> None:
        self._parts[at] = part
        self._awaited -= 1
        if not self._awaited:
            self._finish()

    def _finish(self) -> None:
        parts: list[PayloadPart] = []
        ends: list[int] = []
        for part, row in zip(self._parts, self._rows, strict=True):
            if part is None:
                # Retention deleted the chunk first.
                break
            parts.append(part)
            ends.append(row.last_offset + 1)
        if self._rows and not parts:
            self._answer.refuse(self._gone())
            return
        sizes = [part.length if isinstance(part, FileRange) else len(part) for part in parts]
        next_offset = ends[-1] if ends else self._first_offset
        self._answer.ok({"sizes": sizes, "ends": ends, "next_offset": next_offset}, parts)

    def _gone(self) -> RequestRefused:
        first_offset = self._stream.first_offset
        if first_offset > self._first_offset:
            return offset_gone(f"stream '{self._stream.name}' begins at offset {first_offset}", first_offset)
        return not_now("the requested messages were moved: request them again")


def _at_hand(stored: object) -> PayloadPart | None:
    match stored:
        case InMemory(blob=blob):
            return blob
        case StoredPage(blob=bytes(blob)):
            return blob
        case StoredPage(file=file, place=place):
            return FileRange(file.file, place.offset, place.length)
        case _:
            return None

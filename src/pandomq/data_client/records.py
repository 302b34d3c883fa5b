"""The answers of the data port as values; each is built from an answer's fields, and checked as far as it is used."""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from pandomq import chunk_form
from pandomq.chunk_form import BadChunk
from pandomq.data_client.failures import BadAnswer
from pandomq.data_client.unpacking import unpacked
from pandomq.data_form import Fields


class StreamRange(NamedTuple):
    """The current range of a stream. Its end is the committed end, as far as the asked broker knows."""

    first_offset: int
    end_offset: int
    """The offset after the last message; equal to the first if there is none."""
    first_time_us: int
    last_time_us: int
    size_bytes: int


class IndexedChunk(NamedTuple):
    """One chunk in a stream's index."""

    first_offset: int
    last_offset: int
    row_count: int
    size_bytes: int
    first_time_us: int
    last_time_us: int


class ChunkSlice(NamedTuple):
    """A whole chunk in its plain form (`chunk_form`), its checksum verified, and the range of its requested rows."""

    chunk: memoryview
    first_offset: int
    end_offset: int
    """Rows before the first or from this offset on do not belong to it: they were not requested here."""


class ReadResult(NamedTuple):
    slices: list[ChunkSlice]
    next_offset: int
    """The offset at which to continue; the requested offset if there is nothing yet."""


class LeasedRange(NamedTuple):
    stream: str
    """The stream from which leased messages can be read, any number of times."""
    first_offset: int
    """Messages before it are released."""
    end_offset: int
    more: bool
    """The queue has more messages to lease."""


class BrokerGreeting(NamedTuple):
    node: str
    role: str
    """root, backup, …"""
    root: str
    """The root's data port; empty if it is unknown."""
    brokers: tuple[str, ...]
    """Data ports of the other brokers, as far as this one knows."""


def greeting(fields: Fields) -> BrokerGreeting:
    """Raises BadAnswer, as do all below."""
    brokers = fields.get("brokers", [])
    if not isinstance(brokers, list):
        raise BadAnswer("the broker's response does not list the other brokers")
    return BrokerGreeting(text(fields, "node"), text(fields, "role"), text(fields, "root"), tuple(map(str, brokers)))


def stream_range(fields: Fields) -> StreamRange:
    return StreamRange(
        number(fields, "first_offset"),
        number(fields, "end_offset"),
        number(fields, "first_time_us"),
        number(fields, "last_time_us"),
        number(fields, "bytes"),
    )


def chunk_rows(fields: Fields) -> list[IndexedChunk]:
    rows = fields.get("chunks")
    if not isinstance(rows, list):
        raise BadAnswer("the broker's index is malformed")
    try:
        return [IndexedChunk(*map(int, row)) for row in rows]
    except (TypeError, ValueError):
        raise BadAnswer("the broker's index is malformed") from None


def lease(fields: Fields) -> LeasedRange:
    first_offset, end_offset = number(fields, "first_offset"), number(fields, "end_offset")
    return LeasedRange(text(fields, "stream"), first_offset, end_offset, fields.get("more") is True)


def reading(fields: Fields, payload: memoryview, first_offset: int, end_offset: int) -> ReadResult:
    """Splits the payload as `sizes` says; `ends` has the offset after the last row of each chunk. Raises BadAnswer,
    CannotUnpack."""
    sizes, ends = fields.get("sizes"), fields.get("ends")
    if not _are_numbers(sizes) or not _are_numbers(ends) or len(sizes) != len(ends):
        raise BadAnswer("the broker's response does not list the chunks that it contains")
    if sum(sizes) != len(payload):
        raise BadAnswer("the broker's chunks do not have the announced lengths")
    slices: list[ChunkSlice] = []
    at = 0
    for size, end in zip(sizes, ends, strict=True):
        slices.append(ChunkSlice(_checked(payload[at : at + size]), first_offset, min(end, end_offset)))
        at, first_offset = at + size, end
    next_offset = number(fields, "next_offset")
    if next_offset < first_offset:
        raise BadAnswer("the broker sent offsets in the wrong order")
    return ReadResult(slices, next_offset)


def _checked(chunk: memoryview) -> memoryview:
    """The broker sends the bytes on its disk unchecked: here they are checked, and unpacked if they are packed."""
    try:
        chunk_form.check(chunk, codecs=chunk_form.CODECS)
        return unpacked(chunk)
    except BadChunk as bad:
        raise BadAnswer(f"the broker sent a damaged chunk: {bad}") from None


def _are_numbers(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(isinstance(value, int) and value > 0 for value in values)


def number(fields: Fields, name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int):
        raise BadAnswer(f"the broker's response has no {name}")
    return value


def text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise BadAnswer(f"the broker's response has no {name}")
    return value


def texts(fields: Fields, name: str) -> list[str]:
    values = fields.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadAnswer(f"the broker's response has no {name}")
    return values

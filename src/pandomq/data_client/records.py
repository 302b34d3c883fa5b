"""What the data port answers, as values; each is read from an answer's fields, and checked as far as it is used."""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from pandomq import chunk_form
from pandomq.chunk_form import BadChunk
from pandomq.data_client.failures import BadAnswer
from pandomq.data_client.unpacking import unpacked
from pandomq.data_form import Fields


class StreamRange(NamedTuple):
    """What a stream has at this moment. Its end is what is committed, as far as the broker that was asked knows."""

    first_offset: int
    end_offset: int
    """The offset after the last message; equal to the first if there is none."""
    first_time_us: int
    last_time_us: int
    size_bytes: int


class ChunkRow(NamedTuple):
    """One chunk in a stream's index."""

    first_offset: int
    last_offset: int
    row_count: int
    size_bytes: int
    first_time_us: int
    last_time_us: int


class Slice(NamedTuple):
    """A whole chunk in its plain form (`chunk_form`), its checksum verified, and which of its rows were asked for."""

    chunk: memoryview
    first_offset: int
    end_offset: int
    """Rows before the first or from this offset on are not meant: others have them, or nobody asked for them."""


class Reading(NamedTuple):
    slices: list[Slice]
    next_offset: int
    """Where to go on; what was asked for if there is nothing yet."""


class Lease(NamedTuple):
    stream: str
    """Where what is leased can be read, as often as wanted."""
    first_offset: int
    """What is before it is released."""
    end_offset: int
    more: bool
    """The queue has more that could be leased."""


class Greeting(NamedTuple):
    node: str
    role: str
    """root, backup, …"""
    root: str
    """The root's data port; empty if it is not known."""
    brokers: tuple[str, ...]
    """Data ports of the brokers that there are, as far as this one knows."""


def greeting(fields: Fields) -> Greeting:
    """Raises BadAnswer, as do all below."""
    brokers = fields.get("brokers", [])
    if not isinstance(brokers, list):
        raise BadAnswer("the broker did not say which others there are")
    return Greeting(text(fields, "node"), text(fields, "role"), text(fields, "root"), tuple(map(str, brokers)))


def stream_range(fields: Fields) -> StreamRange:
    return StreamRange(
        number(fields, "first_offset"),
        number(fields, "end_offset"),
        number(fields, "first_time_us"),
        number(fields, "last_time_us"),
        number(fields, "bytes"),
    )


def chunk_rows(fields: Fields) -> list[ChunkRow]:
    rows = fields.get("chunks")
    if not isinstance(rows, list):
        raise BadAnswer("the broker's index cannot be read")
    try:
        return [ChunkRow(*map(int, row)) for row in rows]
    except (TypeError, ValueError):
        raise BadAnswer("the broker's index cannot be read") from None


def lease(fields: Fields) -> Lease:
    first_offset, end_offset = number(fields, "first_offset"), number(fields, "end_offset")
    return Lease(text(fields, "stream"), first_offset, end_offset, fields.get("more") is True)


def reading(fields: Fields, payload: memoryview, first_offset: int, end_offset: int) -> Reading:
    """The payload, cut where `sizes` says; `ends` has the offset after the last row of each chunk. Raises BadAnswer,
    CannotUnpack."""
    sizes, ends = fields.get("sizes"), fields.get("ends")
    if not _are_numbers(sizes) or not _are_numbers(ends) or len(sizes) != len(ends):
        raise BadAnswer("the broker did not say which chunks it has sent")
    if sum(sizes) != len(payload):
        raise BadAnswer("the broker's chunks are not as long as it said")
    slices: list[Slice] = []
    at = 0
    for size, end in zip(sizes, ends, strict=True):
        slices.append(Slice(_checked(payload[at : at + size]), first_offset, min(end, end_offset)))
        at, first_offset = at + size, end
    next_offset = number(fields, "next_offset")
    if next_offset < first_offset:
        raise BadAnswer("the broker went back in the stream")
    return Reading(slices, next_offset)


def _checked(chunk: memoryview) -> memoryview:
    """The broker sends what its disk has, unseen: here it is seen whether it is still what was written, and unpacked if
    it is packed."""
    try:
        chunk_form.check(chunk, codecs=chunk_form.CODECS)
        return unpacked(chunk)
    except BadChunk as bad:
        raise BadAnswer(f"the broker has sent a damaged chunk: {bad}") from None


def _are_numbers(values: object) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(isinstance(value, int) and value > 0 for value in values)


def number(fields: Fields, name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int):
        raise BadAnswer(f"the broker's answer has no {name}")
    return value


def text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise BadAnswer(f"the broker's answer has no {name}")
    return value


def texts(fields: Fields, name: str) -> list[str]:
    values = fields.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadAnswer(f"the broker's answer has no {name}")
    return values

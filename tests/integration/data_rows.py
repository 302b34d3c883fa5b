"""Frequent actions of tests of the data port."""

from __future__ import annotations

from collections.abc import Iterable

from pandomq import chunk_form
from pandomq.chunk_form import MessageRow
from pandomq.data_client.client import DataClient
from pandomq.data_client.records import ChunkSlice


def rows_of(slices: Iterable[ChunkSlice]) -> list[MessageRow]:
    """Returns the requested rows, whole and in order."""
    return [
        row
        for chunk, first_offset, end_offset in slices
        for row in chunk_form.decode_rows(bytes(chunk))
        if first_offset <= row.offset < end_offset
    ]


def read_all(client: DataClient, stream: str) -> list[MessageRow]:
    there = client.range(stream)
    rows = rows_of(client.chunks(stream, there.first_offset, there.end_offset))
    assert [row.offset for row in rows] == list(range(there.first_offset, there.end_offset))
    return rows


def numbers(rows: Iterable[MessageRow]) -> list[int]:
    """Returns the numbers in the messages."""
    return [int(row.body) for row in rows]

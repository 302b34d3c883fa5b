"""A stream's messages in columns: what goes in comes out, both twins write the same bytes, damage is noticed."""

from __future__ import annotations

import zlib
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import chunk_form
from pandomq.chunk_form import BadChunk, MessageRow
from tests.support.examples import examples

HEADER = b"\x00\x3c\x00\x00" + b"\x00" * 10

names = st.binary(max_size=20)
bodies = st.binary(max_size=100)
steps = st.tuples(st.integers(1, 5), st.integers(0, 1000), names, names, bodies)


def filled(kernel: ModuleType, rows: list[MessageRow]) -> Any:
    chunk = kernel.Chunk()
    for row in rows:
        routing = bytes((len(row.exchange),)) + row.exchange + bytes((len(row.routing_key),)) + row.routing_key
        chunk.add(row.offset, row.time_us, kernel.Message(routing, row.header, row.body))
    return chunk


def some_rows(count: int) -> list[MessageRow]:
    return [MessageRow(2 * at, 1000 * at, b"orders", b"eu.%d" % at, HEADER, b"x" * at) for at in range(1, count + 1)]


@st.composite
def rising_rows(draw: st.DrawFn) -> list[MessageRow]:
    rows = []
    offset = draw(st.integers(0, 2**62))
    time_us = draw(st.integers(0, 2**50))
    for offset_step, time_step, exchange, key, body in draw(st.lists(steps, min_size=1, max_size=30)):
        offset, time_us = offset + offset_step, time_us + time_step
        rows.append(MessageRow(offset, time_us, exchange, key, HEADER, body))
    return rows


@given(rows=rising_rows())
def test_rows_are_read_as_they_were_written_and_both_twins_agree(
    plain: ModuleType, fast: ModuleType, rows: list[MessageRow]
) -> None:
    sealed = filled(plain, rows).seal()
    assert filled(fast, rows).seal() == sealed
    assert list(chunk_form.decode_rows(sealed)) == rows
    for kernel in (plain, fast):
        chunk = kernel.Chunk.open(sealed)
        assert [chunk.row(at) for at in range(chunk.count)] == rows
        assert chunk.seal() is sealed


def test_a_sealed_chunk_can_be_let_go(kernel: ModuleType) -> None:
    chunk = filled(kernel, some_rows(3))
    with pytest.raises(ValueError, match="open"):
        chunk.let_go()
    chunk.seal()
    for _ in range(2):
        chunk.let_go()
    assert (chunk.count, chunk.size_bytes, chunk.find_offset(1), chunk.first_offset) == (0, 0, 0, 0)
    with pytest.raises(ValueError, match="empty"):
        chunk.seal()
    with pytest.raises(ValueError, match="0 messages"):
        chunk.seal_rows(1)
    with pytest.raises(ValueError, match="sealed"):
        chunk.add(100, 10**9, kernel.Message(b"\0\0", HEADER, b""))


@given(rows=rising_rows())
def test_facts_are_the_same_open_and_sealed(kernel: ModuleType, rows: list[MessageRow]) -> None:
    chunk = filled(kernel, rows)

    def facts() -> tuple[int, ...]:
        return (
            chunk.count,
            chunk.first_offset,
            chunk.last_offset,
            chunk.first_time_us,
            chunk.last_time_us,
            chunk.size_bytes,
        )

    first, last = rows[0], rows[-1]
    before = facts()
    assert before[:5] == (len(rows), first.offset, last.offset, first.time_us, last.time_us)
    assert len(chunk.seal()) == chunk.size_bytes
    assert facts() == before


def test_columns_are_where_arrow_wants_them(kernel: ModuleType) -> None:
    head, columns = chunk_form.decode(filled(kernel, some_rows(3)).seal())
    assert head.size % chunk_form.ALIGNMENT == 0
    assert list(columns[chunk_form.OFFSETS].cast("q")) == [2, 4, 6]
    assert list(columns[chunk_form.BODY_ENDS].cast("i")) == [0, 1, 3, 6]


def test_an_empty_chunk_has_no_bytes(kernel: ModuleType) -> None:
    chunk = kernel.Chunk()
    assert (chunk.count, chunk.first_offset, chunk.last_time_us) == (0, 0, 0)
    with pytest.raises(ValueError, match="empty"):
        chunk.seal()


def test_offsets_rise_and_times_do_not_fall(kernel: ModuleType) -> None:
    chunk = filled(kernel, some_rows(2))
    message = kernel.Message(b"\0\0", HEADER, b"")
    for offset, time_us in ((4, 2000), (3, 2000), (5, 1999)):
        with pytest.raises(ValueError, match="rise"):
            chunk.add(offset, time_us, message)
    chunk.add(5, 2000, message)
    chunk.seal()
    with pytest.raises(ValueError, match="sealed"):
        chunk.add(6, 2000, message)


def test_a_message_is_found_by_offset_and_by_time(kernel: ModuleType) -> None:
    chunk = filled(kernel, some_rows(4))
    assert [chunk.find_offset(offset) for offset in (0, 2, 3, 8, 9)] == [0, 0, 1, 3, 4]
    assert [chunk.find_time(time_us) for time_us in (0, 1000, 1001, 4001)] == [0, 0, 1, 4]
    with pytest.raises(IndexError):
        chunk.row(4)


@pytest.mark.parametrize("place", [0, 4, 9, 30, 57, 59, 70, 250, 300, -1])
def test_a_rotten_byte_is_noticed(kernel: ModuleType, place: int) -> None:
    sealed = bytearray(filled(kernel, some_rows(5)).seal())
    sealed[place] ^= 0x10
    with pytest.raises(BadChunk):
        kernel.Chunk.open(bytes(sealed))


@pytest.mark.parametrize("size", [0, 1, 59, 60, 200, 500])
def test_a_chunk_that_was_cut_short_is_noticed(kernel: ModuleType, size: int) -> None:
    sealed = filled(kernel, some_rows(5)).seal()
    with pytest.raises(BadChunk):
        kernel.Chunk.open(sealed[:size])
    with pytest.raises(BadChunk):
        kernel.Chunk.open(sealed + b"\0")


def with_sound_checksums(sealed: bytes) -> bytes:
    """As if it had been written so."""
    fields = list(chunk_form.HEAD.unpack_from(sealed))
    fields[-1] = zlib.crc32(sealed[chunk_form.HEAD_BYTES :])
    head = chunk_form.HEAD.pack(*fields)
    return head + chunk_form.HEAD_CHECKSUM.pack(zlib.crc32(head)) + sealed[chunk_form.HEAD_BYTES :]


SLOT = st.integers(0, 2 * chunk_form.COLUMNS - 1).map(lambda slot: chunk_form.HEAD_BYTES + 8 * slot)
NUMBER = st.sampled_from([0, 1, 4, 63, 64, 255, 256, 1000, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1])
CHANGES = st.lists(
    st.tuples(SLOT, NUMBER.map(lambda number: number.to_bytes(8, "little")))
    | st.tuples(st.integers(chunk_form.HEAD_BYTES, 1500), st.binary(min_size=1, max_size=4))
    | st.tuples(st.just(8), st.integers(0, 20).map(lambda count: count.to_bytes(4, "little"))),
    min_size=1,
    max_size=4,
)


@settings(max_examples=examples(300))
@given(changes=CHANGES)
def test_damaged_data_under_sound_checksums_is_refused_or_read_within_its_bounds(
    plain: ModuleType, fast: ModuleType, changes: list[tuple[int, bytes]]
) -> None:
    sealed = bytearray(filled(fast, some_rows(5)).seal())
    for place, octets in changes:
        place %= len(sealed) - len(octets)
        sealed[place : place + len(octets)] = octets
    data = with_sound_checksums(bytes(sealed))
    found: list[Any] = []
    for kernel in (plain, fast):
        try:
            chunk = kernel.Chunk.open(data)
        except BadChunk:
            found.append(None)
        else:
            found.append([chunk.row(position) for position in range(chunk.count)])
    assert found[0] == found[1]

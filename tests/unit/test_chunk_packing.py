"""Packed chunks: the plain one comes out byte for byte, whichever library unpacks it, and damage is seen."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

from pandomq import chunk_form
from pandomq.broker.streams import packing
from pandomq.chunk_form import BadChunk, MessageRow
from pandomq.data_client import unpacking
from pandomq.data_client.failures import BadAnswer
from pandomq.data_client.records import reading

ROWS = [MessageRow(offset, 1000 + offset, b"trade", b"eu.de", b"header", b"all the same " * 20) for offset in range(50)]
CHUNK = chunk_form.encode(ROWS)
PACKED = packing.packed(CHUNK, packing.ZSTD)
LIBRARIES = [name for name in unpacking._LIBRARIES if find_spec(name.partition(".")[0]) is not None]


def test_a_chunk_is_packed_and_unpacked() -> None:
    assert len(PACKED) < len(CHUNK) / 5
    assert chunk_form.is_packed(PACKED) and not chunk_form.is_packed(CHUNK)
    assert packing.unpacked(PACKED) == packing.unpacked(CHUNK) == CHUNK
    plain, packed = chunk_form.decode_head(CHUNK), chunk_form.check(PACKED, codecs=chunk_form.CODECS)
    assert packed[:5] == plain[:5] and packed.size == len(PACKED)


def test_chunks_that_do_not_get_smaller_stay_unpacked() -> None:
    single = chunk_form.encode([MessageRow(0, 0, b"", b"", b"", bytes(range(256)))])
    assert packing.packed(single, packing.NONE) is single
    odd = bytes((number * 167 + number * number // 7) % 251 for number in range(3000))
    assert packing.unpacked(packing.packed(chunk_form.encode([MessageRow(0, 0, b"", b"", b"", odd)]), packing.ZSTD))


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_library_unpacks_a_chunk(library: str) -> None:
    decompress = unpacking._LIBRARIES[library](import_module(library))
    assert chunk_form.unpack(PACKED, decompress) == CHUNK


def test_there_is_more_than_one_library() -> None:
    """Spark's executors have the second one."""
    assert {"zstandard", "pyarrow"} <= set(LIBRARIES)


def test_a_reader_of_unpacked_chunks_refuses_a_packed_one() -> None:
    with pytest.raises(BadChunk, match="codec 1"):
        chunk_form.decode(PACKED)


@pytest.mark.parametrize("place", [3, 20, chunk_form.HEAD_BYTES + 2, len(PACKED) // 2, len(PACKED) - 1])
def test_damage_is_seen(place: int) -> None:
    damaged = bytearray(PACKED)
    damaged[place] ^= 0xFF
    with pytest.raises(BadAnswer, match="damaged chunk"):
        _read(bytes(damaged))


@pytest.mark.parametrize("size", [chunk_form.HEAD_BYTES, chunk_form.HEAD_BYTES + chunk_form.PLAIN.size])
def test_data_that_are_too_short_are_no_chunk(size: int) -> None:
    with pytest.raises(BadChunk):
        packing.unpacked(PACKED[:size])


def test_readers_of_the_data_port_get_plain_chunks() -> None:
    assert bytes(_read(PACKED)) == CHUNK


def test_the_error_for_a_missing_library_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_LIBRARIES", {"no_such_library": unpacking._of_zstandard})
    unpacking._decompressor.cache_clear()
    try:
        with pytest.raises(unpacking.CannotUnpack, match="install the package zstandard, or pyarrow"):
            _read(PACKED)
        assert bytes(_read(CHUNK)) == CHUNK
    finally:
        unpacking._decompressor.cache_clear()


def _read(chunk: bytes) -> memoryview:
    fields = {"sizes": [len(chunk)], "ends": [len(ROWS)], "next_offset": len(ROWS)}
    return reading(fields, memoryview(chunk), 0, len(ROWS)).slices[0].chunk

"""Unpacks chunks that a broker keeps packed, with a library that this Python has.

These are its own library (3.14), the package `zstandard`, or pyarrow, which Spark's executors have anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from pandomq import chunk_form
from pandomq.chunk_form import BadChunk
from pandomq.data_client.failures import DataFailure

Decompress = Callable[[memoryview, int], bytes]


class CannotUnpack(DataFailure):
    """A stream is compressed, and no library here can read it."""


def unpacked(chunk: memoryview) -> memoryview:
    """The plain form of a chunk that was checked. Raises BadChunk, CannotUnpack."""
    return memoryview(chunk_form.unpack(chunk, _decompressor())) if chunk_form.is_packed(chunk) else chunk


@cache
def _decompressor() -> Decompress:
    for module, make in _LIBRARIES.items():
        try:
            return _bad_chunks(make(import_module(module)))
        except ImportError:
            continue
    raise CannotUnpack("the stream is compressed with zstd: install the package zstandard, or pyarrow, to read it")


def _bad_chunks(decompress: Decompress) -> Decompress:
    def checked(frame: memoryview, size: int) -> bytes:
        try:
            return decompress(frame, size)
        except Exception as error:
            # Each library has a class of its own for this.
            raise BadChunk(f"the chunk cannot be decompressed: {error}") from None

    return checked


def _of_python(library: Any) -> Decompress:
    return lambda frame, _size: bytes(library.decompress(frame))


def _of_zstandard(library: Any) -> Decompress:
    return lambda frame, size: bytes(library.ZstdDecompressor().decompress(frame, max_output_size=size))


def _of_pyarrow(library: Any) -> Decompress:
    return lambda frame, size: bytes(library.Codec("zstd").decompress(frame, decompressed_size=size, asbytes=True))


_LIBRARIES: Final[dict[str, Callable[[Any], Decompress]]] = {
    "compression.zstd": _of_python,
    "zstandard": _of_zstandard,
    "pyarrow": _of_pyarrow,
}

"""Compresses sealed chunks for the disk, if their stream requires it.

Each chunk is marked as packed or not (`pandomq.chunk_form`), so a stream may have both kinds. Readers over AMQP do not
notice; on the data port chunks are sent as they are stored, and the readers unpack them.
"""

from typing import Final

import zstandard

from pandomq import chunk_form

NONE: Final = "none"
ZSTD: Final = "zstd"
COMPRESSIONS: Final = (NONE, ZSTD)
LEVEL: Final = 1
"""Chunks are packed in the process that serves all clients: a higher level would take longer, and save little."""

_COMPRESSOR: Final = zstandard.ZstdCompressor(level=LEVEL)
_DECOMPRESSOR: Final = zstandard.ZstdDecompressor()


def packed(chunk: bytes, compression: str) -> bytes:
    """The bytes to be stored: the chunk itself if it does not get smaller."""
    if compression == NONE:
        return chunk
    smaller = chunk_form.pack(chunk, _COMPRESSOR.compress)
    return smaller if len(smaller) < len(chunk) else chunk


def unpacked(blob: bytes) -> bytes:
    """The plain chunk, whose checksum its reader verifies. Raises BadChunk."""
    return chunk_form.unpack(blob, _decompress) if chunk_form.is_packed(blob) else blob


def _decompress(frame: memoryview, size: int) -> bytes:
    try:
        return _DECOMPRESSOR.decompress(frame, max_output_size=size)
    except zstandard.ZstdError as error:
        raise chunk_form.BadChunk(f"the chunk cannot be decompressed: {error}") from None

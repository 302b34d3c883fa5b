"""A range of a file in a short form: bodies of messages are replaced by their digests, the rest is included.

recipe    steps; a step is 0 u8, length u32, bytes; or 1 u8, length u32, digest of that many bytes (16 bytes)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

STEP: Final = struct.Struct("<BI")
LITERAL: Final = 0
KNOWN: Final = 1
DIGEST_BYTES: Final = 16
BODY_BYTES_MIN: Final = 128
"""A shorter one is sent in full."""

Extent = tuple[int, int]


class Bodies(NamedTuple):
    """Finds the bodies of the owner's messages, as offset and length; other data has none."""

    of_page: Callable[[bytes], list[Extent]]
    of_entry: Callable[[bytes], list[Extent]]
    in_stream: Callable[[], Callable[[bytes], list[Extent]]]
    """Makes a function that takes a snapshot's stream piece by piece, and returns the bodies that end in each piece, by
    their offset in the whole stream."""


class KnownBody(NamedTuple):
    length: int
    digest: bytes


def digest_of(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


def worth_naming(extents: Sequence[Extent]) -> list[Extent]:
    return [extent for extent in extents if extent[1] >= BODY_BYTES_MIN]


def encode_recipe(data: bytes, extents: Sequence[Extent]) -> bytes:
    """The extents must be in order, and long enough to name."""
    view = memoryview(data)
    steps: list[bytes | memoryview] = []
    at = 0
    for offset, length in extents:
        if offset > at:
            steps += (STEP.pack(LITERAL, offset - at), view[at:offset])
        steps += (STEP.pack(KNOWN, length), digest_of(view[offset : offset + length]))
        at = offset + length
    if at < len(data):
        steps += (STEP.pack(LITERAL, len(data) - at), view[at:])
    return b"".join(steps)


def read_recipe(recipe: bytes) -> Iterator[bytes | KnownBody]:
    """Raises ValueError if the bytes are no recipe."""
    at = 0
    try:
        while at < len(recipe):
            kind, length = STEP.unpack_from(recipe, at)
            at += STEP.size
            size = length if kind == LITERAL else DIGEST_BYTES
            data = recipe[at : at + size]
            if kind not in (LITERAL, KNOWN) or len(data) < size:
                raise ValueError("the steps are incomplete")
            yield data if kind == LITERAL else KnownBody(length, data)
            at += size
    except struct.error as error:
        raise ValueError("the steps end too early") from error

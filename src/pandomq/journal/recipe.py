"""A stretch of a file, as its receiver needs it: bodies of messages are named by digest, the rest is there.

recipe    steps; a step is 0 u8, length u32, bytes; or 1 u8, length u32, digest of so many bytes (16 bytes)
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
"""A shorter one is not worth a digest."""

Extent = tuple[int, int]


class Bodies(NamedTuple):
    """Where the owner's messages have their bodies, as offset and length; in what is none of theirs there are none."""

    of_page: Callable[[bytes], list[Extent]]
    of_entry: Callable[[bytes], list[Extent]]
    in_stream: Callable[[], Callable[[bytes], list[Extent]]]
    """Makes what is given a snapshot's stream piece by piece, and finds those that end in each, by their place in the
    whole stream."""


class Known(NamedTuple):
    length: int
    digest: bytes


def digest_of(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


def worth_naming(extents: Sequence[Extent]) -> list[Extent]:
    return [extent for extent in extents if extent[1] >= BODY_BYTES_MIN]


def encode_recipe(data: bytes, extents: Sequence[Extent]) -> bytes:
    """The extents follow each other, and are worth naming."""
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


def read_recipe(recipe: bytes) -> Iterator[bytes | Known]:
    """Raises ValueError if it is none."""
    at = 0
    try:
        while at < len(recipe):
            kind, length = STEP.unpack_from(recipe, at)
            at += STEP.size
            size = length if kind == LITERAL else DIGEST_BYTES
            data = recipe[at : at + size]
            if kind not in (LITERAL, KNOWN) or len(data) < size:
                raise ValueError("the steps are not whole")
            yield data if kind == LITERAL else Known(length, data)
            at += size
    except struct.error as error:
        raise ValueError("the steps end too early") from error

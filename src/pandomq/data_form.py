"""What is said on the data port: one message after the other, in both directions.

    message   size of the JSON u32, size of the payload u32 (little endian), the JSON object, the payload

A request is an object with `ask`, an answer is one without; answers come in the order of the requests. An answer with
`error` is a refusal: its code is one of AMQP's or one of those below, `text` says why, and `root` where the root is, if
the root alone can do what was asked. Payloads are opaque here.

This module, like all that Spark's executors import, needs nothing but the standard library.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

VERSION: Final = 1
HEAD: Final = struct.Struct("<II")
DATA_JSON_BYTES_MAX: Final = 1024 * 1024
DATA_PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of a request, and of an answer unless one chunk alone is larger."""
DATA_ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
"""A chunk is at least one whole message."""

BAD_REQUEST: Final = 400
"""The request is not one that is known, or lacks something."""
ACCESS_REFUSED: Final = 403
NOT_FOUND: Final = 404
PRECONDITION_FAILED: Final = 406
OFFSET_GONE: Final = 410
"""Retention has dropped what was asked for; `first_offset` says what is left."""
TOO_LARGE: Final = 413
NOT_THE_ROOT: Final = 421
NOT_NOW: Final = 503
"""Try again, or elsewhere."""

Fields = dict[str, Any]


class BadMessage(ValueError):
    """The bytes are no message, or one that is too large; nothing after it can be understood."""


class Sizes(NamedTuple):
    json_bytes: int
    payload_bytes: int

    @property
    def total(self) -> int:
        return self.json_bytes + self.payload_bytes


def encode_json(
    fields: Mapping[str, Any], payload_bytes: int = 0, payload_bytes_max: int = DATA_PAYLOAD_BYTES_MAX
) -> bytes:
    """A message up to where its payload begins. Raises BadMessage if it is too large."""
    # In ASCII, so that names that are no UTF-8, and are known with surrogate escapes, get through.
    text = json.dumps(fields, separators=(",", ":")).encode("ascii")
    _check(Sizes(len(text), payload_bytes), payload_bytes_max)
    return HEAD.pack(len(text), payload_bytes) + text


def decode_head(head: bytes | bytearray | memoryview, payload_bytes_max: int = DATA_PAYLOAD_BYTES_MAX) -> Sizes:
    """Of `HEAD.size` bytes. Raises BadMessage."""
    sizes = Sizes(*HEAD.unpack(head))
    _check(sizes, payload_bytes_max)
    return sizes


def _check(sizes: Sizes, payload_bytes_max: int) -> None:
    if not 2 <= sizes.json_bytes <= DATA_JSON_BYTES_MAX:
        raise BadMessage(f"a JSON object of {sizes.json_bytes} bytes: expected 2 to {DATA_JSON_BYTES_MAX}")
    if sizes.payload_bytes > payload_bytes_max:
        raise BadMessage(f"a payload of {sizes.payload_bytes} bytes: expected at most {payload_bytes_max}")


def decode_json(text: bytes | bytearray | memoryview) -> Fields:
    """Raises BadMessage."""
    try:
        fields = json.loads(bytes(text).decode("utf-8"))
    except (ValueError, RecursionError):
        raise BadMessage("what should be JSON is none") from None
    if not isinstance(fields, dict):
        raise BadMessage("what should be a JSON object is none")
    return fields

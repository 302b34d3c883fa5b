"""The protocol of the data port: messages one after the other, in both directions.

    message   size of the JSON u32, size of the payload u32 (little endian), the JSON object, the payload

A request is an object with `ask`, an answer is one without; answers come in the order of the requests. An answer with
`error` is a rejection: its code is one of AMQP's or one of those below, `text` is the reason, and `root` the root's
address, if only the root can carry out the request. Payloads are opaque here.

This module, like all modules that Spark's executors import, needs only the standard library.
"""

import json
import re
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

VERSION: Final = 1
HEAD: Final = struct.Struct("<II")
DATA_JSON_BYTES_MAX: Final = 1024 * 1024
"""For an answer, and for a request with a list of attempts; a broker takes less of other requests."""
DATA_PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
"""For a request, and for an answer unless a single chunk is larger."""
DATA_ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
"""The largest chunk is one message."""

BAD_REQUEST: Final = 400
"""The request is unknown, or lacks a field."""
ACCESS_REFUSED: Final = 403
NOT_FOUND: Final = 404
PRECONDITION_FAILED: Final = 406
OFFSET_GONE: Final = 410
"""Retention has removed the requested offset; `first_offset` is the first that is left."""
TOO_LARGE: Final = 413
NOT_THE_ROOT: Final = 421
NOT_NOW: Final = 503
"""The client should try again, or at another broker."""

Fields = dict[str, Any]

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class BadDataMessage(ValueError):
    """The bytes are no message, or a too large one; nothing after it can be read."""


class Sizes(NamedTuple):
    json_bytes: int
    payload_bytes: int

    @property
    def total(self) -> int:
        return self.json_bytes + self.payload_bytes


def encode_json(
    fields: Mapping[str, Any], payload_bytes: int = 0, payload_bytes_max: int = DATA_PAYLOAD_BYTES_MAX
) -> bytes:
    """A message up to the start of its payload. Raises BadDataMessage if it is too large."""
    # In ASCII, so that names that are not UTF-8, which have surrogate escapes, are preserved.
    text = json.dumps(fields, separators=(",", ":")).encode("ascii")
    _check(Sizes(len(text), payload_bytes), payload_bytes_max)
    return HEAD.pack(len(text), payload_bytes) + text


def decode_head(head: bytes | bytearray | memoryview, payload_bytes_max: int = DATA_PAYLOAD_BYTES_MAX) -> Sizes:
    """Reads `HEAD.size` bytes. Raises BadDataMessage."""
    sizes = Sizes(*HEAD.unpack(head))
    _check(sizes, payload_bytes_max)
    return sizes


def _check(sizes: Sizes, payload_bytes_max: int) -> None:
    if not 2 <= sizes.json_bytes <= DATA_JSON_BYTES_MAX:
        raise BadDataMessage(f"the JSON object has {sizes.json_bytes} bytes: expected 2 to {DATA_JSON_BYTES_MAX}")
    if sizes.payload_bytes > payload_bytes_max:
        raise BadDataMessage(f"the payload has {sizes.payload_bytes} bytes: at most {payload_bytes_max} are allowed")


def decode_json(text: bytes | bytearray | memoryview) -> Fields:
    """Raises BadDataMessage."""
    try:
        fields = json.loads(bytes(text).decode("utf-8"))
    except (ValueError, RecursionError):
        raise BadDataMessage("the request is not JSON") from None
    if not isinstance(fields, dict):
        raise BadDataMessage("the request is not a JSON object")
    return fields


def decode_request(text: bytes | bytearray | memoryview) -> Fields:
    """Decodes a client's request; all of its texts must be encodable as UTF-8. Raises BadDataMessage."""
    octets = bytes(text)
    fields = decode_json(octets)
    # JSON can contain half of a surrogate pair, which is no character, and must not enter a log.
    if _SURROGATE.search(octets) is not None and not _is_utf8(fields):
        raise BadDataMessage("a string in the request has a lone surrogate, which is not a character")
    return fields


def _is_utf8(fields: Fields) -> bool:
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True

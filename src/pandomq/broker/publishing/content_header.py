"""Changes to encoded content headers, at the level of bytes.

These functions run for many messages, so they decode only what they must. The header is one that the kernel accepted:
its properties can be read, and its headers are a table.
"""

from typing import Final, NamedTuple

CONTENT_TYPE: Final = 0x8000
CONTENT_ENCODING: Final = 0x4000
HEADERS: Final = 0x2000
DELIVERY_MODE: Final = 0x1000
PRIORITY: Final = 0x0800
CORRELATION_ID: Final = 0x0400
REPLY_TO: Final = 0x0200
EXPIRATION: Final = 0x0100

_FLAGS: Final = 12
"""The position after class, weight and body size."""
_PROPERTIES: Final = 14


class Spans(NamedTuple):
    """The positions of properties that the broker may change; an absent one is an empty span at its place."""

    flags: int
    headers_start: int
    headers_end: int
    reply_to_start: int
    reply_to_end: int
    expiration_end: int
    """Expiration starts where reply-to ends."""


def spans_of(header: bytes) -> Spans:
    flags = header[_FLAGS] << 8 | header[_FLAGS + 1]
    offset = _PROPERTIES
    if flags & CONTENT_TYPE:
        offset += 1 + header[offset]
    if flags & CONTENT_ENCODING:
        offset += 1 + header[offset]
    headers_start = offset
    if flags & HEADERS:
        offset += 4 + int.from_bytes(header[offset : offset + 4], "big")
    headers_end = offset
    if flags & DELIVERY_MODE:
        offset += 1
    if flags & PRIORITY:
        offset += 1
    if flags & CORRELATION_ID:
        offset += 1 + header[offset]
    reply_to_start = offset
    if flags & REPLY_TO:
        offset += 1 + header[offset]
    reply_to_end = offset
    if flags & EXPIRATION:
        offset += 1 + header[offset]
    return Spans(flags, headers_start, headers_end, reply_to_start, reply_to_end, offset)


def with_headers(header: bytes, spans: Spans, entries: bytes, *, keep_expiration: bool) -> bytes:
    """Returns the header with these entries, a table without its length, as headers."""
    flags = spans.flags | HEADERS
    if keep_expiration:
        rest = header[spans.headers_end :]
    else:
        flags &= ~EXPIRATION
        rest = header[spans.headers_end : spans.reply_to_end] + header[spans.expiration_end :]
    return b"".join(
        (
            header[:_FLAGS],
            flags.to_bytes(2, "big"),
            header[_PROPERTIES : spans.headers_start],
            len(entries).to_bytes(4, "big"),
            entries,
            rest,
        )
    )


def entries_of(header: bytes, spans: Spans) -> bytes:
    """The headers as a table without its length; empty if there are none."""
    return header[spans.headers_start + 4 : spans.headers_end]


def reply_to_of(header: bytes, spans: Spans) -> bytes:
    return header[spans.reply_to_start + 1 : spans.reply_to_end]


def with_reply_to(header: bytes, spans: Spans, reply_to: bytes) -> bytes:
    """Returns the header with another reply-to; it had one."""
    return b"".join((header[: spans.reply_to_start], bytes((len(reply_to),)), reply_to, header[spans.reply_to_end :]))


def expiration_of(header: bytes, spans: Spans) -> bytes:
    return header[spans.reply_to_end + 1 : spans.expiration_end]


def with_expiration(header: bytes, spans: Spans, expiration: bytes) -> bytes:
    """Returns the header with another expiration; it had one."""
    return b"".join(
        (header[: spans.reply_to_end], bytes((len(expiration),)), expiration, header[spans.expiration_end :])
    )

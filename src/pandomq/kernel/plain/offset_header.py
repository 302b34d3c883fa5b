"""Adds the message's offset to the headers of a delivery from a stream."""

import struct
from typing import Final

from pandomq.kernel.plain.fields import FLAGS_OFFSET, HEADERS, Malformed, entries, place_of_headers

NAME: Final = b"x-stream-offset"
ENTRY: Final = struct.Struct(f">B{len(NAME)}scq")


def with_offset(header: bytes, offset: int) -> bytes:
    """The content header with this offset as the last of its headers, in place of an existing header of that name. A
    header that cannot be walked through stays unchanged."""
    try:
        flags, place = place_of_headers(header)
        table = _without_offset(header, place) if flags & HEADERS else b""
    except (Malformed, IndexError):
        return header
    end = place + 4 + int.from_bytes(header[place : place + 4], "big") if flags & HEADERS else place
    table += ENTRY.pack(len(NAME), NAME, b"l", offset)
    start = header[:FLAGS_OFFSET] + (flags | HEADERS).to_bytes(2, "big") + header[FLAGS_OFFSET + 2 : place]
    return start + len(table).to_bytes(4, "big") + table + header[end:]


def _without_offset(header: bytes, place: int) -> bytes:
    # The octets of the table; the whole table is searched. If a client put the name in twice, only the first one is
    # removed.
    table = b""
    found = False
    for name, start, end in entries(header, place, len(header)):
        if name == NAME and not found:
            found = True
        else:
            table += header[start - len(name) - 1 : end]
    return table

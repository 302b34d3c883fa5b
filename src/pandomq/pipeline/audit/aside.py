"""Entries that were cut off a log and kept in a file: by a forced promotion, or because of damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from pandomq.errors import ConnectionFault
from pandomq.journal.checksums import entry_checksum
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.segments.cutting import ASIDE_MAGIC, KIND_BYTES, KIND_PLACE
from pandomq.journal.segments.layout import ENTRY_BEGIN, ENTRY_END, ENTRY_HEAD, ENTRY_HEAD_BYTES, align, decode_sector
from pandomq.journal.snapshots.snapshot import KIND_END, PIECE
from pandomq.kernel.records import BadEntry, EnqueueRecord, decode_entry
from pandomq.properties import read_property
from pandomq.replica.protocol.entries import is_own


class BadAside(Exception):
    """The file cannot be read; the message is the reason."""


def cut_entries(path: Path) -> Iterator[tuple[int, bytes]]:
    """Index and payload of the complete entries in the file. Raises BadAside, and OSError."""
    with path.open("rb") as file:
        head = decode_sector(file.read(SECTOR_BYTES))
        if head is None or not head.startswith(ASIDE_MAGIC):
            raise BadAside("it is not a side file of a cut log")
        offset, data = 0, bytearray()
        while True:
            piece = file.read(PIECE.size)
            if len(piece) < PIECE.size:
                raise BadAside("it ends too early")
            kind, _, length, _, _ = PIECE.unpack(piece)
            content = file.read(length)
            if kind in (KIND_PLACE, KIND_END):
                yield from _entries(bytes(data), offset)
                data.clear()
            if kind == KIND_END:
                return
            if kind == KIND_PLACE:
                offset = int(msgspec.json.decode(content)["offset"])
            elif kind == KIND_BYTES:
                data += content


def _entries(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """The entries in bytes from this offset of a segment; a group begins at a sector."""
    at = 0
    while at + ENTRY_HEAD_BYTES <= len(data):
        begin, _, length, index, term, checksum, end = ENTRY_HEAD.unpack_from(data, at)
        payload = data[at + ENTRY_HEAD_BYTES : at + ENTRY_HEAD_BYTES + length]
        if (begin, end) == (ENTRY_BEGIN, ENTRY_END) and entry_checksum(index, term, payload) == checksum:
            yield index, payload
            at += ENTRY_HEAD_BYTES + length
        else:
            at = align(offset + at + 1) - offset


def messages_in(payload: bytes) -> Iterator[tuple[int, int, str]]:
    """Queue number, sequence and id of each message that an entry puts into a queue."""
    if is_own(payload):
        return
    try:
        records = decode_entry(payload).records
    except BadEntry:
        return
    for record in records:
        if isinstance(record, EnqueueRecord):
            for queue_id, sequence in record.places:
                yield queue_id, sequence, _message_id(record.header)


def _message_id(header: bytes) -> str:
    try:
        return str(read_property(header, "message_id") or "")
    except (ConnectionFault, ValueError, IndexError):
        return ""

"""Finds the bodies of messages in pages, chunks and log entries: the bytes that brokers have in common, wherever they
are stored.

The short bodies of a chunk form one extent: each alone would be too small to name, and all brokers have the same
chunks.
"""

import struct
from itertools import pairwise
from typing import Final

from pandomq import chunk_form
from pandomq.kernel.constants import RECORD_COMMAND, RECORD_DEQUEUE, RECORD_ENQUEUE
from pandomq.kernel.plain import page_form
from pandomq.kernel.records import COMMAND_START, CONTENT_SIZES, DEQUEUE, ENQUEUE_START, ENTRY_START, PLACE, VERSION

Extent = tuple[int, int]
"""Offset and length."""


SHORT_BYTES: Final = 256
"""Shorter bodies of a chunk are joined into one extent."""


def page_bodies(blob: bytes) -> list[Extent]:
    """Extents of the bodies of a page or a chunk; none for other bytes."""
    try:
        return _of_chunk(blob) if blob.startswith(chunk_form.MAGIC) else _of_page(blob)
    except (struct.error, chunk_form.BadChunk):
        return []


def entry_bodies(entry: bytes) -> list[Extent]:
    """None for bytes that are not a log entry."""
    try:
        return _of_entry(entry)
    except (struct.error, IndexError):
        return []


def _of_chunk(blob: bytes) -> list[Extent]:
    head, columns = chunk_form.decode(blob)
    place, size = chunk_form.COLUMN.unpack_from(
        blob, chunk_form.HEAD_BYTES + chunk_form.COLUMN.size * chunk_form.BODIES
    )
    if size < SHORT_BYTES * head.rows:
        return [(place, size)]
    ends = columns[chunk_form.BODY_ENDS].cast("i")
    return [(place + start, end - start) for start, end in pairwise(ends)]


def _of_page(blob: bytes) -> list[Extent]:
    version, count, _ = page_form.START.unpack_from(blob)
    if version != page_form.VERSION:
        return []
    extents: list[Extent] = []
    at = page_form.START.size
    for _ in range(count):
        flags, _, size = page_form.MESSAGE.unpack_from(blob, at)
        at += page_form.MESSAGE.size
        at += 8 * bool(flags & page_form.DEADLINE) + 4 * bool(flags & page_form.DELIVERY_COUNT)
        at += 8 * bool(flags & page_form.TERM)
        for flag in (page_form.ROUTING, page_form.HEADER):
            if flags & flag:
                at += page_form.U32.size + page_form.U32.unpack_from(blob, at)[0]
        extents.append((at, size))
        at += size
    return extents if at == len(blob) else []


def _of_entry(entry: bytes) -> list[Extent]:
    version, _, count = ENTRY_START.unpack_from(entry)
    if version != VERSION:
        return []
    extents: list[Extent] = []
    at = ENTRY_START.size
    for _ in range(count):
        kind = entry[at]
        if kind == RECORD_ENQUEUE:
            _, queue_count = ENQUEUE_START.unpack_from(entry, at)
            at += ENQUEUE_START.size + PLACE.size * queue_count
            routing_size, header_size, body_size = CONTENT_SIZES.unpack_from(entry, at)
            at += CONTENT_SIZES.size + routing_size + header_size
            extents.append((at, body_size))
            at += body_size
        elif kind == RECORD_DEQUEUE:
            at += DEQUEUE.size
        elif kind == RECORD_COMMAND:
            at += COMMAND_START.size + COMMAND_START.unpack_from(entry, at)[1]
        else:
            return []
    return extents if at == len(entry) else []

"""The range of one micro-batch: limits in messages and in bytes, shared by streams in proportion to their backlog.

Pure. A batch takes at least one available message, whatever the limits: otherwise a query would make no progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pandomq.data_client.records import IndexedChunk
from pandomq.spark.splitting import OffsetRange

Backlog = Mapping[str, OffsetRange]


def total(backlog: Backlog) -> int:
    return sum(one.end - one.first for one in backlog.values())


def limit_rows(backlog: Backlog, rows: int) -> dict[str, OffsetRange]:
    """The backlog, cut to this many offsets in all."""
    waiting = total(backlog)
    if waiting <= rows:
        return dict(backlog)
    shares = {stream: (one.end - one.first) * rows // waiting for stream, one in backlog.items()}
    left = rows - sum(shares.values())
    # The remainder of the division goes to the streams that lost most by it.
    by_loss = sorted(backlog, key=lambda stream: -((backlog[stream].end - backlog[stream].first) * rows % waiting))
    for stream in by_loss[:left]:
        shares[stream] += 1
    return {stream: one._replace(end=one.first + shares[stream]) for stream, one in backlog.items()}


def limit_bytes(one: OffsetRange, chunks: Sequence[IndexedChunk], size_bytes: int) -> OffsetRange:
    """A range, cut where its chunks exceed this many bytes; within a chunk by the mean size of its messages."""
    left = size_bytes
    for row in chunks:
        begin, end = max(row.first_offset, one.first), min(row.last_offset + 1, one.end)
        if begin >= end:
            continue
        mean = max(1, row.size_bytes // max(1, row.row_count))
        fitting = left // mean
        if fitting < end - begin:
            return one._replace(end=max(begin + fitting, one.first + 1))
        left -= (end - begin) * mean
    return one

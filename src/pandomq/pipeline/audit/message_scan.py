"""The second pass: the messages in the log, one task for some files. Each entry is decoded on one broker.

`scan_messages` returns a small result for one file; `rows` returns every message that entered or left a queue, to be
compared with the clients' ledgers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from pandomq.broker.log import commands as of_broker
from pandomq.pipeline.audit.columns import Columns, decode, properties_of
from pandomq.pipeline.audit.limits import BATCH_ROWS, EXITS_MAX, NAMED_MAX
from pandomq.pipeline.audit.logs import Piece
from pandomq.pipeline.audit.segment_image import BadSegment, SegmentImage
from pandomq.pipeline.audit.views import Numbers

_TOLD: Final = tuple(
    start
    for kind in (
        of_broker.DeclareQueue,
        of_broker.DeleteQueue,
        of_broker.DeclareExchange,
        of_broker.DeleteExchange,
        of_broker.UnbindQueue,
        of_broker.UnbindExchange,
        of_broker.DeleteVhost,
        of_broker.PutPolicy,
        of_broker.PutLease,
    )
    for start in of_broker.begins(kind)
)
"""Prefixes of the commands that an audit needs."""

SCHEMA: Final = pa.schema(
    [
        ("leaves", pa.bool_()),
        ("queue_id", pa.int64()),
        ("sequence", pa.int64()),
        ("index", pa.int64()),
        ("time_ms", pa.int64()),
        ("message_id", pa.string()),
        ("routing", pa.binary()),
        ("expires", pa.bool_()),
    ]
)


class QueueSpan(msgspec.Struct, frozen=True, array_like=True):
    """The messages that entered one queue."""

    queue_id: int
    count: int
    lowest: int
    highest: int


class Breach(msgspec.Struct, frozen=True, array_like=True):
    """A message that entered a queue under a number that is not above the earlier ones."""

    queue_id: int
    sequence: int
    index: int
    highest: int
    """The highest number before it."""
    message: str


class MessageContents(msgspec.Struct, frozen=True):
    path: str
    fault: str = ""
    entries: int = 0
    messages: int = 0
    entered: int = 0
    left: int = 0
    queues: tuple[QueueSpan, ...] = ()
    breaches: tuple[Breach, ...] = ()
    breach_count: int = 0
    commands: tuple[tuple[int, bytes], ...] = ()
    own: tuple[tuple[int, int, bytes], ...] = ()
    """Index, term and payload of the replica's own entries."""
    unknown: tuple[int, ...] = ()
    """Indexes of entries that this version does not know."""


def _open(piece: Piece) -> tuple[SegmentImage, Columns]:
    """Raises BadSegment."""
    image = piece.place.open()
    wanted = np.zeros(len(image.index), np.bool_)
    for first, last in piece.spans:
        wanted |= (image.index >= first) & (image.index <= last)
    return image, decode(image, np.flatnonzero(wanted))


def scan_messages(piece: Piece, floors: dict[int, int] | None = None) -> MessageContents:
    """`floors`: the highest number that each queue had before, if it is needed."""
    try:
        image, columns = _open(piece)
    except BadSegment as bad:
        return MessageContents(piece.place.path, fault=str(bad))
    queues, breaches, breach_count = _in_order(image, columns, floors or {})
    return MessageContents(
        piece.place.path,
        "",
        int((columns.now_ms > 0).sum()) + len(columns.own),
        columns.messages,
        len(columns.sequence),
        int(columns.exit_count.sum()),
        queues,
        breaches,
        breach_count,
        tuple((int(image.index[row]), command) for row, command in columns.commands if command.startswith(_TOLD)),
        tuple((int(image.index[row]), int(image.term[row]), payload) for row, payload in columns.own),
        tuple(int(image.index[row]) for row in columns.unknown[:NAMED_MAX]),
    )


def _in_order(
    image: SegmentImage, columns: Columns, floors: dict[int, int]
) -> tuple[tuple[QueueSpan, ...], tuple[Breach, ...], int]:
    """Checks that numbers of a queue only increase: no message is before an earlier one, and none occurs twice."""
    spans: list[QueueSpan] = []
    breaches: list[Breach] = []
    count = 0
    order = np.argsort(columns.queue_id, kind="stable")
    ids, starts = np.unique(columns.queue_id[order], return_index=True)
    # A segment that no message entered has no queues, and one end too many.
    ends = [*starts[1:].tolist(), len(order)]
    for queue_id, start, end in zip(ids.tolist(), starts.tolist(), ends, strict=False):
        rows = order[start:end]
        sequences = columns.sequence[rows]
        spans.append(QueueSpan(queue_id, len(rows), int(sequences.min()), int(sequences.max())))
        floor = floors.get(queue_id, -1)
        before = np.maximum.accumulate(np.concatenate(([floor], sequences[:-1])))
        wrong = np.flatnonzero(sequences <= before)
        count += len(wrong)
        for place in wrong[: NAMED_MAX - len(breaches)].tolist():
            row = int(rows[place])
            index = int(image.index[columns.entry[row]])
            message = _message_at(image, columns, row)
            breaches.append(Breach(queue_id, int(sequences[place]), index, int(before[place]), message))
    return tuple(spans), tuple(breaches), count


def _message_at(image: SegmentImage, columns: Columns, row: int) -> str:
    one = np.array([row])
    found = properties_of(image.views, columns.header_at[one], columns.header_size[one])
    size = int(found.id_size[0])
    at = int(found.id_at[0])
    return "" if size < 0 else image.views.octets[at : at + size].tobytes().decode(errors="replace")


def exits_of(piece: Piece, wanted: dict[int, list[int]]) -> list[tuple[int, int, int]]:
    """Queue, sequence and index of the entry with which these messages left, as far as that is in this file."""
    try:
        image, columns = _open(piece)
    except BadSegment:
        return []
    found = []
    for queue_id, sequences in wanted.items():
        rows = np.flatnonzero(columns.exit_queue == queue_id)
        first, count = columns.exit_first[rows], columns.exit_count[rows]
        for sequence in sequences:
            for row in rows[(first <= sequence) & (sequence < first + count)].tolist():
                found.append((queue_id, sequence, int(image.index[columns.exit_entry[row]])))
    return found


# Every message.


def rows(piece: Piece, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Everything that entered or left a queue. A file that has become unreadable gives nothing: `scan_messages` reports
    it."""
    try:
        image, columns = _open(piece)
    except BadSegment:
        return
    for start in range(0, len(columns.sequence), batch_rows):
        yield _entered(image, columns, np.arange(start, min(start + batch_rows, len(columns.sequence))))
    queue_id, sequence, entry = _expanded(columns)
    for start in range(0, len(sequence), batch_rows):
        chosen = slice(start, start + batch_rows)
        count = len(sequence[chosen])
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(np.ones(count, np.bool_)),
                pa.array(queue_id[chosen]),
                pa.array(sequence[chosen]),
                pa.array(image.index[entry[chosen]]),
                pa.array(columns.now_ms[entry[chosen]]),
                pa.nulls(count, pa.string()),
                pa.nulls(count, pa.binary()),
                pa.nulls(count, pa.bool_()),
            ],
            schema=SCHEMA,
        )


def _entered(image: SegmentImage, columns: Columns, rows: Numbers) -> pa.RecordBatch:
    header_at, header_size = columns.header_at[rows], columns.header_size[rows]
    found = properties_of(image.views, header_at, header_size)
    entry = columns.entry[rows]
    routing_size = columns.routing_size[rows]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.zeros(len(rows), np.bool_)),
            pa.array(columns.queue_id[rows]),
            pa.array(columns.sequence[rows]),
            pa.array(image.index[entry]),
            pa.array(columns.now_ms[entry]),
            _texts(image, found.id_at, found.id_size),
            _octets(image, header_at - routing_size, routing_size),
            pa.array(found.expires),
        ],
        schema=SCHEMA,
    )


def _texts(image: SegmentImage, at: Numbers, sizes: Numbers) -> pa.Array:
    missing = sizes < 0
    offsets, data = image.views.strings(at, np.maximum(sizes, 0))
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    array = pa.Array.from_buffers(pa.binary(), len(at), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        # An id that is not text cannot be in a ledger.
        texts = [None if value is None else value.decode(errors="replace") for value in array.to_pylist()]
        return pa.array(texts, pa.string())


def _octets(image: SegmentImage, at: Numbers, sizes: Numbers) -> pa.Array:
    offsets, data = image.views.strings(at, sizes)
    return pa.Array.from_buffers(pa.binary(), len(at), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _expanded(columns: Columns) -> tuple[Numbers, Numbers, Numbers]:
    """Each message that left, one by one."""
    counts = np.minimum(columns.exit_count, EXITS_MAX)
    total = int(counts.sum())
    within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return (
        np.repeat(columns.exit_queue, counts),
        np.repeat(columns.exit_first, counts) + within,
        np.repeat(columns.exit_entry, counts),
    )

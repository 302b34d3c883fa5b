"""Ledgers as rows: one task reads each file, in blocks, since the order of its lines matters.

A last line without its end is ignored: its writer was interrupted. Other unreadable lines become rows of a special
kind, so that nothing is skipped silently.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from pandomq.ledger import KINDS
from pandomq.pipeline.audit.limits import LEDGER_BLOCK_BYTES

UNREADABLE: Final = "unreadable"
_LINE: Final = pa.schema(
    [
        ("kind", pa.string()),
        ("vhost", pa.string()),
        ("queue", pa.string()),
        ("exchange", pa.string()),
        ("routing_key", pa.string()),
        ("message_id", pa.string()),
        ("time", pa.float64()),
        ("redelivered", pa.bool_()),
        ("channel", pa.int64()),
    ]
)
SCHEMA: Final = pa.schema(
    [
        ("ledger", pa.int32()),
        ("row", pa.int64()),
        ("life", pa.int64()),
        *_LINE,
    ]
)
SPARK_SCHEMA: Final = (
    "ledger INT, row BIGINT, life BIGINT, kind STRING, vhost STRING, queue STRING, exchange STRING, "
    "routing_key STRING, message_id STRING, time DOUBLE, redelivered BOOLEAN, channel BIGINT"
)


class _Line(msgspec.Struct):
    """A valid line."""

    kind: str
    time: float
    vhost: str = "/"
    queue: str | None = None
    exchange: str | None = None
    routing_key: str | None = None
    message_id: str | None = None
    redelivered: bool = False
    channel: int = 0


_decoder = msgspec.json.Decoder(_Line)


def ledger_rows(number: int, path: str) -> Iterator[pa.RecordBatch]:
    """Raises OSError."""
    row = life = 0
    with Path(path).open("rb") as file:
        rest = b""
        while block := file.read(LEDGER_BLOCK_BYTES):
            block = rest + block
            end = block.rfind(b"\n") + 1
            rest = block[end:]
            if end:
                table = _parse(block[:end])
                batch = _numbered(table, number, row, life)
                row += len(batch)
                life = int(batch.column("life")[-1].as_py()) if len(batch) else life
                yield batch


def _parse(block: bytes) -> pa.Table:
    """All lines at once; one by one if some are malformed."""
    try:
        options = pj.ParseOptions(explicit_schema=_LINE, unexpected_field_behavior="ignore")
        reading = pj.ReadOptions(use_threads=False, block_size=len(block) + 1)
        table = pj.read_json(io.BytesIO(block), reading, options)
    except pa.ArrowInvalid:
        return _one_by_one(block)
    known = table.column("kind").to_numpy(zero_copy_only=False)
    if not np.isin(known.astype(str), KINDS).all() or table.column("time").null_count:
        return _one_by_one(block)
    return table


def _one_by_one(block: bytes) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for line in block.splitlines():
        if not line.strip():
            continue
        try:
            found = _decoder.decode(line)
            if found.kind not in KINDS:
                raise ValueError(found.kind)
            rows.append(msgspec.structs.asdict(found))
        except (msgspec.MsgspecError, ValueError):
            rows.append({"kind": UNREADABLE, "message_id": json.dumps(line[:80].decode(errors="replace"))})
    return pa.Table.from_pylist(rows, _LINE)


def _numbered(table: pa.Table, number: int, row: int, life: int) -> pa.RecordBatch:
    count = table.num_rows
    kinds = table.column("kind").to_numpy(zero_copy_only=False)
    lives = life + np.cumsum(kinds == "opened")
    columns = [_filled(table.column(field.name).combine_chunks(), field.name) for field in _LINE]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(count, number, np.int32)),
            pa.array(np.arange(row, row + count)),
            pa.array(lives.astype(np.int64)),
            *columns,
        ],
        schema=SCHEMA,
    )


def _filled(column: pa.Array, name: str) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    defaults: dict[str, Any] = {"vhost": "/", "redelivered": False, "channel": 0, "time": 0.0}
    return column.fill_null(defaults[name]) if name in defaults else column

"""The archive's copy of the stream: its progress, and whether each message is there once."""

from __future__ import annotations

import time
from pathlib import Path

from pyarrow import parquet

from pandomq.pipeline.lake import INNER, Lake
from pandomq.pipeline.rollup.steps import ROLLUP
from tools.demo.account import Archived
from tools.demo.words import BODY, STREAM, Copy, count, frozen


def rows_in(directory: Path) -> int:
    """The number of rows so far; the archive may be running."""
    if not (directory / INNER / "records").is_dir():
        return 0
    return sum(file.rows for file in Lake(directory).files() if file.stream == STREAM)


def rollup_rests_s(directory: Path) -> float:
    """The time since the last rows of the rollup; an empty rollup counts as not idle."""
    steps = list((directory / ROLLUP).rglob("step.json"))
    return time.time() - max(path.stat().st_mtime for path in steps) if steps else 0.0


def take_stock(directory: Path) -> Archived:
    """Reads the whole lake, without Spark and without the brokers."""
    times: dict[Copy, bytearray] = {}
    rows, out_of_order, next_offset = 0, 0, 0
    for file in Lake(directory).files():
        if file.stream != STREAM:
            continue
        # Read as a single file: otherwise its directories would become columns.
        table = parquet.ParquetFile(directory / file.path).read(columns=["offset", "body"]).sort_by("offset")
        for offset, body in zip(table["offset"].to_pylist(), table["body"].to_pylist(), strict=True):
            out_of_order += offset != next_offset
            next_offset = offset + 1
            publisher, attempt, number, _sent = BODY.unpack_from(body)
            count(times, (publisher, attempt), number)
            rows += 1
    return Archived(rows, out_of_order, frozen(times))

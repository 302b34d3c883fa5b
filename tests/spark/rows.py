"""Rows for writes, and their treatment on the way: functions that run on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

LARGE = 100_000
"""Bytes of a body of which eleven fill a part."""

Rows = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class PlannedFailure(Exception):
    """The failure that a test requested."""


def attempt() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.attemptNumber()


def partition() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def reverse(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))


def reversed_later(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All attempts but the first have their rows in another order."""
    for batch in batches:
        yield batch if attempt() == 0 else reverse(batch)


def second_partition_never_works(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    if partition() == 1:
        raise PlannedFailure("this partition always fails")


def reversed_if(mark: Path) -> Rows:
    """Changes the order as soon as a file is there."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield reverse(batch) if mark.exists() else batch

    return rows


def through(frame: DataFrame, rows: Rows) -> DataFrame:
    return frame.mapInArrow(rows, frame.schema)


def first_attempts_fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first attempts of the first partition fail, once all their rows were taken."""
    yield from batches
    if partition() == 0 and attempt() == 0:
        raise PlannedFailure("the first attempt at the first partition always fails")

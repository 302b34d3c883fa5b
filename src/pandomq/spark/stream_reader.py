"""Spark's side of a streaming read of streams; `stream_progress` makes the decisions, executors read as in a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pandomq.spark.batch_reader import RangePartition
from pandomq.spark.columns import Shape
from pandomq.spark.reading import RangeReader
from pandomq.spark.source_options import SourceOptions
from pandomq.spark.stream_progress import Offsets, StreamProgress


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Built on the driver and on executors alike, so it connects only at its first request."""

    def __init__(self, options: SourceOptions, shape: Shape) -> None:
        self._options = options
        self._range_reader = RangeReader(options.connection, shape, options.fail_on_data_loss)
        self._progress: StreamProgress | None = None

    def _driver(self) -> StreamProgress:
        if self._progress is None:
            self._progress = StreamProgress(self._options, self._options.connection.root_client())
        return self._progress

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return ordered(self._driver().initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return read_limit(self._options)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return ordered(self._driver().newest(start, *limits(self._options, limit)))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return ordered(self._driver().latest) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._driver().aim()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [RangePartition(piece) for piece in self._driver().pieces(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return self._range_reader.batches(partition.wanted)

    def commit(self, end: dict[str, Any]) -> None:
        """Streams keep messages that were read: there is nothing to release."""

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.close()
            self._progress = None


def ordered(offsets: Offsets) -> dict[str, Any]:
    """Spark compares offsets as text: equal ones must have equal texts."""
    return dict(sorted(offsets.items()))


def read_limit(options: SourceOptions) -> ReadLimit:
    if options.trigger_rows is not None:
        return ReadMaxRows(options.trigger_rows)
    if options.trigger_bytes is not None:
        return ReadMaxBytes(options.trigger_bytes)
    return ReadAllAvailable()


def limits(options: SourceOptions, limit: ReadLimit) -> tuple[int | None, int | None]:
    """In messages and bytes. Spark passes one limit, and the options may have two."""
    if isinstance(limit, ReadAllAvailable):
        return None, None
    rows = limit.max_rows if isinstance(limit, ReadMaxRows) else options.trigger_rows
    size_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else options.trigger_bytes
    return rows, size_bytes

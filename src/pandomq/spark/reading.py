"""The work of executors: read a range of a stream from some broker, and return Arrow batches.

Reads are repeatable: the same range gives the same rows, from any broker, as long as retention keeps them. While Spark
processes one batch the next chunks are being received.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import pyarrow as pa

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import OffsetGone
from pandomq.spark.columns import ChunkReader, RowFilter, Shape
from pandomq.spark.connection import ConnectionOptions
from pandomq.spark.splitting import OffsetRange

_log = logging.getLogger("pandomq.spark")


class DataLoss(RuntimeError):
    """The data that a query has to read no longer exists."""


@dataclass(frozen=True)
class RangeReader:
    """Everything that a task needs, apart from its range."""

    connection: ConnectionOptions
    shape: Shape
    fail_on_data_loss: bool
    shown_as: str | None = None
    """The value of column `stream`, if not the stream's name."""
    wanted: RowFilter | None = None

    def batches(self, wanted: OffsetRange) -> Generator[pa.RecordBatch, None, None]:
        reader = ChunkReader(self.shown_as or wanted.stream, self.shape, self.wanted)
        with self.connection.kept_client() as client:
            for chunk, first, end in self._slices(client, wanted):
                batch = reader.batch(chunk, first, end)
                if batch is not None:
                    yield batch

    def _slices(self, client: DataClient, wanted: OffsetRange) -> Iterator[tuple[memoryview, int, int]]:
        first = wanted.first
        while first < wanted.end:
            try:
                for slice_ in client.chunks(wanted.stream, first, wanted.end):
                    yield slice_
                    first = slice_.end_offset
                return
            except OffsetGone as gone:
                if self.fail_on_data_loss:
                    raise DataLoss(lost(wanted.stream, first, gone.first_offset)) from None
                _log.warning("%s; the query continues there", lost(wanted.stream, first, gone.first_offset))
                first = max(gone.first_offset, first + 1)


def lost(stream: str, wanted: int, first_offset: int) -> str:
    return (
        f"stream {stream!r} begins at offset {first_offset}, after the wanted offset {wanted}: retention has "
        "deleted the messages between. With option failOnDataLoss=false the query continues with the remaining messages"
    )

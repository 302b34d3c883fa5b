"""Writes rows to an exchange, exactly once, as batches and as streams.

A streaming write is identified by (query, batch): a batch that Spark runs again under the same name is published once.
A batch write has a name of its own, made when it is planned; with the options `writeId` and `batch` the user names it,
and it is as idempotent as a stream's, which is what `foreachBatch` needs. The target is a part of that name.

`write` runs on executors, on one partition; `commit` and `abort` run on the driver, on another copy of the writer: they
get their information from the messages that tasks return.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pandomq.spark.option_values import BadOption
from pandomq.spark.sink import staging
from pandomq.spark.sink.frames import FrameEncoder
from pandomq.spark.sink.options import SinkOptions, UnroutablePolicy, check_columns, read_options
from pandomq.spark.sink.staging import Staged, Writing

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("pandomq.spark")
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    """For `df.write`. Raises BadOption or BadColumn."""
    if overwrite:
        raise BadOption("an exchange cannot be overwritten: use mode append")
    return BatchWriter(_checked(options, schema))


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
    """For `df.writeStream`. Raises BadOption or BadColumn."""
    if overwrite:
        raise BadOption("an exchange cannot be overwritten: use output mode append or update")
    read = _checked(options, schema)
    if read.write_id is not None:
        raise BadOption("options writeId and batch are for batch writes: Spark gives a streaming query both")
    return StreamWriter(read)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._query = options.named_query or str(uuid.uuid4())
        self._batch = options.batch or 0

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return _write(self._options, self._query, self._batch, iterator, self._options.write_id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _commit(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _abort(self._options, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        context = _task()
        query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query is None or batch is None:
            raise RuntimeError("Spark does not provide the query and batch of this task")
        return _write(self._options, query, int(batch), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 Spark's name
        _commit(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 Spark's name
        _abort(self._options, messages)


def _checked(options: Mapping[str, str], schema: StructType) -> SinkOptions:
    read = read_options(options)
    check_columns(schema, read)
    return read


def _task() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("rows can be written by tasks only")
    return context


def _write(
    options: SinkOptions, query: str, batch: int, rows: Iterator[pa.RecordBatch], former_query: str | None = None
) -> Staged:
    encoder = FrameEncoder(options.exchange, options.routing_key, options.properties)
    writing = Writing(query, batch, _task().partitionId())
    queue = options.routing_key if options.to_stream else None
    with options.connection.kept_client() as client:
        return staging.stage(client, writing, encoder.parts(rows), queue, former_query, options.unroutable)


def _commit(options: SinkOptions, messages: list[WriterCommitMessage | None]) -> None:
    with options.connection.kept_client() as client:
        unroutable = staging.commit(client, _staged(messages))
    if unroutable and options.unroutable is not UnroutablePolicy.IGNORE:
        _log.warning(
            "%d rows for exchange '%s' were dropped: no queue was bound for them when they were published",
            unroutable,
            options.exchange,
        )


def _abort(options: SinkOptions, messages: list[WriterCommitMessage | None]) -> None:
    with options.connection.kept_client() as client:
        staging.drop(client, _staged(messages))


def _staged(messages: list[WriterCommitMessage | None]) -> list[Staged]:
    return [message for message in messages if isinstance(message, Staged)]

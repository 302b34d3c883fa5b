"""Batch reads: everything between two edges, at the time when the query is planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from pandomq.data_client.client import DataClient
from pandomq.spark.columns import Shape
from pandomq.spark.filters import Narrowing, take_over
from pandomq.spark.option_values import BadOption
from pandomq.spark.positions import Positions, check_named
from pandomq.spark.reading import RangeReader
from pandomq.spark.source_options import SourceOptions
from pandomq.spark.splitting import OffsetRange, split


class RangePartition(InputPartition):
    """A range of offsets of one stream: the input of one task."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)
        self.wanted = wanted

    def __repr__(self) -> str:
        return f"RangePartition({self.wanted.stream}, {self.wanted.first} until {self.wanted.end})"


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, shape: Shape) -> None:
        self._options = options
        self._range_reader = RangeReader(options.connection, shape, options.fail_on_data_loss)
        self._narrowing = Narrowing()

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with options.connection.root_client() as client:
            positions = Positions(client, options.subject, options.fail_on_data_loss)
            ranges = self._ranges(client, positions)
            pieces = split(positions.weigh(ranges), options.partitions_min, options.partition_bytes)
        return [RangePartition(piece) for piece in pieces]

    def _ranges(self, client: DataClient, positions: Positions) -> Iterator[OffsetRange]:
        options, narrowing = self._options, self._narrowing
        names = positions.names()
        check_named(options.start, names)
        check_named(options.end, names)
        names = tuple(name for name in names if narrowing.streams is None or name in narrowing.streams)
        firsts = positions.edges(options.start, names)
        ends = positions.edges(options.end, names)
        for name in names:
            first, end = firsts[name], ends[name]
            if end > positions.known[name].end_offset:
                raise BadOption(f"stream {name} ends at offset {positions.known[name].end_offset}, before {end}")
            if first > positions.known[name].end_offset:
                positions.begins_beyond(name, first, positions.known[name])
                continue
            if narrowing.first_offset is not None:
                first = max(first, narrowing.first_offset)
            if narrowing.end_offset is not None:
                end = min(end, narrowing.end_offset)
            if narrowing.first_us is not None:
                first = max(first, client.offset_at(name, narrowing.first_us))
            if narrowing.end_us is not None:
                end = min(end, client.offset_at(name, narrowing.end_us))
            if first < end:
                yield OffsetRange(name, positions.check_start(name, first, positions.known[name]), end)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):
            # Spark would read a plan without partitions as one empty partition.
            return iter(())
        return self._range_reader.batches(partition.wanted)


class FilteringBatchReader(BatchReader):
    """The same with filters; Spark rejects such a reader unless spark.sql.python.filterPushdown.enabled is true."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._narrowing, left = take_over(filters)
        wanted: Any = self._narrowing.keys or None
        self._range_reader = replace(self._range_reader, wanted=wanted)
        return left

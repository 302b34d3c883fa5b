"""The data source `pandomq`, in Spark's interface."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pandomq.spark.batch_reader import BatchReader, FilteringBatchReader
from pandomq.spark.columns import ddl, shape_of
from pandomq.spark.lease_reader import LeaseReader
from pandomq.spark.option_values import OptionValues
from pandomq.spark.sink.sink import batch_writer, stream_writer
from pandomq.spark.source_options import SourceOptions
from pandomq.spark.stream_reader import StreamReader


class PandomqDataSource(DataSource):
    """Streams and queues of a broker, by `format("pandomq")`. No broker is contacted before a query runs."""

    @classmethod
    def name(cls) -> str:
        return "pandomq"

    def schema(self) -> str:
        return ddl(OptionValues(self.options).text("bodySchema"))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = SourceOptions.of(self.options, streaming=False)
        kind = FilteringBatchReader if options.push_filters else BatchReader
        return kind(options, shape_of(schema, options.body_schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        options = SourceOptions.of(self.options, streaming=True)
        kind: Any = StreamReader if options.subject.queue is None else LeaseReader
        reader: DataSourceStreamReader = kind(options, shape_of(schema, options.body_schema))
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return stream_writer(self.options, schema, overwrite)

"""Streams and queues as Spark sources and sinks.

It ships to Spark's executors, and so imports only the vocabulary and the data port's client from the package: the
standard library, and packages that PySpark needs itself (pyarrow, numpy). Contracts: `columns` defines a row,
`stream_progress` the range of a micro-batch, `reading` the work of executors, `lease_reader` the reading of a queue.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Registers `format("pandomq")` with a session, if Spark does not find module pyspark_pandomq by itself."""
    from pandomq.spark.data_source import PandomqDataSource

    spark.dataSource.register(PandomqDataSource)

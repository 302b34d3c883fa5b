"""Streams and queues as Spark sources and sinks.

Ships to Spark's executors, and so imports nothing of the package but the vocabulary and the data port's client: the
standard library, and what PySpark needs itself (pyarrow, numpy). Contracts: `columns` what a row is, `stream_progress`
how far a micro-batch goes, `reading` what executors do, `lease_reader` how a queue is read.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Makes `format("pandomq")` known to a session, where Spark does not find module pyspark_pandomq by itself."""
    from pandomq.spark.data_source import PandomqDataSource

    spark.dataSource.register(PandomqDataSource)

"""Registers the data source `pandomq` by itself: Spark takes the DefaultSource of every module named pyspark_…"""

from pandomq.spark.data_source import PandomqDataSource as DefaultSource

__all__ = ["DefaultSource"]

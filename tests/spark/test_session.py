"""The session that tests share: executors run our code, and it is this code."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import pandomq


def place_of_code(_partition: object) -> list[str]:
    return [pandomq.__file__]


@pytest.mark.proves("S7")
def test_executors_import_the_same_code_as_the_tests(spark: SparkSession) -> None:
    places = spark.sparkContext.parallelize(range(2), 2).mapPartitions(place_of_code).collect()
    assert set(places) == {pandomq.__file__}

"""Stream to stream in one process, while tasks fail, the query is stopped and restarted, and the root is killed: every
row once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.integration.cluster.cluster import Cluster, running
from tests.integration.waiting import wait_until

from . import ledger
from .rows import first_attempts_fail, through

PATIENCE_S = 60.0


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Cluster]:
    with running(Cluster(tmp_path / "brokers")) as brokers:
        yield brokers


def start(spark: SparkSession, brokers: Cluster, checkpoint: Path) -> StreamingQuery:
    place = {"url": ",".join(brokers.urls)}
    reader = spark.readStream.format("pandomq").options(streams="orders,returns", startingOffsets="earliest", **place)
    rows = reader.option("minPartitions", "4").load()
    frame = through(rows.selectExpr(ledger.TRANSFORMATION), first_attempts_fail)
    writer = frame.writeStream.format("pandomq").options(stream="copy", **place)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def wait_for_batches(query: StreamingQuery, count: int) -> None:
    def last() -> int:
        assert query.isActive, query.exception()
        progress = query.lastProgress
        return progress["batchId"] if progress is not None and progress["numInputRows"] else -1

    before = last()
    wait_until(lambda: last() >= before + count, f"{count} batches", PATIENCE_S)


@pytest.mark.timeout(500)
@pytest.mark.proves("S1", "S2", "S3")
def test_a_copy_outlives_failing_tasks_a_restart_and_the_root(
    spark: SparkSession, brokers: Cluster, tmp_path: Path
) -> None:
    for name in ("orders", "returns", "copy"):
        ledger.declare_stream(brokers.connect, name)
    with ledger.publishing(brokers.connect, "orders", "returns") as publishers:
        query = start(spark, brokers, tmp_path / "checkpoint")
        wait_for_batches(query, 2)
        query.stop()
        query = start(spark, brokers, tmp_path / "checkpoint")
        wait_for_batches(query, 2)
        killed = brokers.root
        killed.kill()
        brokers.wait_for_root(other_than=killed)
        wait_for_batches(query, 2)
    assert ledger.check_copy(brokers.connect, publishers, "copy") > 0
    assert query.isActive

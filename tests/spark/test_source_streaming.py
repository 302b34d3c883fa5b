"""Streaming reads with Spark itself, from a broker's double: restarts, limits, lag, new streams, failover."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .stream_port_double import StreamPortDouble
from .stream_rows import fill, offsets, run, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 90


@pytest.fixture
def port() -> Iterator[StreamPortDouble]:
    with StreamPortDouble() as double:
        yield double


def until(query: Any, found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert query.exception() is None
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.1)


def test_a_query_goes_on_where_it_was_and_shows_its_lag(
    spark: SparkSession, port: StreamPortDouble, tmp_path: Path
) -> None:
    fill(port, "orders", 4)
    options = {"stream": "orders", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "15"}
    query = run(stream(spark, port, **options), tmp_path)
    query.awaitTermination()
    sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    assert sizes == [15, 15, 10]
    first = query.recentProgress[0]["sources"][0]
    assert json.loads(_text(first["endOffset"])) == {"orders": 15}
    assert json.loads(_text(first["latestOffset"])) == {"orders": 40}
    assert "correct" not in str([progress.json for progress in query.recentProgress])
    fill(port, "orders", 2)
    run(stream(spark, port, **options), tmp_path).awaitTermination()
    assert offsets(spark, tmp_path) == [("orders", at) for at in range(60)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_a_running_query_reads_new_messages_and_streams_and_survives_a_failover(
    spark: SparkSession, port: StreamPortDouble, tmp_path: Path
) -> None:
    fill(port, "log.a", 1)
    frame = stream(spark, port, "stream STRING, offset BIGINT", streamPattern=r"log\..*", startingOffsets="earliest")
    query = run(frame, tmp_path, processingTime="0 seconds")

    def has(count: int) -> Callable[[], bool]:
        return lambda: (tmp_path / "out" / "_spark_metadata").exists() and len(offsets(spark, tmp_path)) >= count

    until(query, has(10))
    fill(port, "log.a", 1)
    fill(port, "log.b", 1)
    until(query, has(30))
    port.close()
    time.sleep(0.3)
    fill(port, "log.a", 1)
    port.open()
    until(query, has(40))
    query.stop()
    expected = [("log.a", at) for at in range(30)] + [("log.b", at) for at in range(10)]
    assert offsets(spark, tmp_path) == expected


def test_offsets_dropped_by_retention_end_the_query_or_are_left_out(
    spark: SparkSession, port: StreamPortDouble, tmp_path: Path
) -> None:
    fill(port, "orders", 2)
    options = {"stream": "orders", "startingOffsets": "earliest"}
    run(stream(spark, port, **options), tmp_path).awaitTermination()
    fill(port, "orders", 4)
    port.streams["orders"].drop_chunks(4)
    with pytest.raises(Exception, match="begins at offset 40, after the wanted offset 20"):
        run(stream(spark, port, **options), tmp_path).awaitTermination()
    run(stream(spark, port, failOnDataLoss="false", **options), tmp_path).awaitTermination()
    assert offsets(spark, tmp_path) == [("orders", at) for at in (*range(20), *range(40, 60))]


@pytest.mark.slow
def test_a_limit_in_bytes(spark: SparkSession, port: StreamPortDouble, tmp_path: Path) -> None:
    fill(port, "orders", 6)
    chunk_bytes = len(port.streams["orders"].chunks[0][1])
    options = {"stream": "orders", "startingOffsets": "earliest", "maxBytesPerTrigger": str(2 * chunk_bytes)}
    query = run(stream(spark, port, **options), tmp_path)
    query.awaitTermination()
    sizes = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    assert sum(sizes) == 60
    assert len(sizes) in (3, 4)
    assert max(sizes) <= 21


# Queues.


def lease_options(**more: str) -> dict[str, str]:
    return {"queue": "work", "lease": "nightly", **more}


def test_a_queue_is_read_once_and_released_when_spark_has_done_it(
    spark: SparkSession, port: StreamPortDouble, tmp_path: Path
) -> None:
    from .stream_rows import row

    port.queues["work"] = [row(at) for at in range(50)]
    frame = stream(spark, port, **lease_options(maxOffsetsPerTrigger="20"))
    query = run(frame, tmp_path)
    query.awaitTermination()
    assert [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]] == [20, 20, 10]
    found = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(bytes(one["body"]) for one in found.collect()) == sorted(f"body {at}".encode() for at in range(50))
    assert {one["stream"] for one in found.select("stream").collect()} == {"work"}
    # Batches that Spark has committed are released, also the last one.
    assert port.leases["work", "nightly"].taken == []
    port.queues["work"] += [row(at) for at in range(50, 60)]
    run(stream(spark, port, **lease_options()), tmp_path).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "out")).count() == 60


@pytest.mark.slow
def test_messages_of_an_expired_lease_come_again(spark: SparkSession, port: StreamPortDouble, tmp_path: Path) -> None:
    from .stream_rows import row

    port.queues["work"] = [row(at) for at in range(10)]
    run(stream(spark, port, **lease_options()), tmp_path).awaitTermination()
    port.expire_lease("work", "nightly")
    port.queues["work"] += [row(at) for at in range(10, 15)]
    with pytest.raises(Exception, match="the lease nightly on queue work has expired"):
        run(stream(spark, port, **lease_options()), tmp_path).awaitTermination()
    run(stream(spark, port, **lease_options(failOnDataLoss="false")), tmp_path).awaitTermination()
    found = [bytes(one["body"]) for one in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert set(found) == {f"body {at}".encode() for at in range(15)}
    assert len(found) == 15


def test_a_queue_that_is_not_there_is_named(spark: SparkSession, port: StreamPortDouble, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is no queue work"):
        run(stream(spark, port, **lease_options()), tmp_path).awaitTermination()

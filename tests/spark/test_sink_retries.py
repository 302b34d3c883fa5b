"""Every row once: through tasks that fail and come back in another order, commits that fail before and after they are
done, restarts, and answers that are lost. Against a data port in this process, which can be told when to fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from .rows import LARGE, reversed_if, reversed_later, second_partition_never_works, through
from .staging_double import HangUp, Refusal, StagingDouble

DIGITS = 8
pytestmark = pytest.mark.proves("S2")


def numbers(spark: SparkSession, count: int, partitions: int = 2, width: int = DIGITS) -> DataFrame:
    padded = f"lpad(cast(id as string), {width}, '0') as body"
    return spark.range(0, count, 1, partitions).selectExpr(padded, "concat('key.', id % 3) as routing_key")


def write(frame: DataFrame, double: StagingDouble, **options: str) -> None:
    frame.write.format("pandomq").options(url=double.url, exchange="orders", **options).mode("append").save()


def found(double: StagingDouble) -> list[int]:
    return [int(message.body[-DIGITS:]) for message in double.published]


def test_a_batch_is_published_in_order(spark: SparkSession, double: StagingDouble) -> None:
    write(numbers(spark, 1000, partitions=3), double, contentType="text/plain")
    assert found(double) == list(range(1000))
    assert {message.exchange for message in double.published} == {"orders"}
    assert [message.routing_key for message in double.published] == [f"key.{at % 3}" for at in range(1000)]
    assert {message.properties.content_type for message in double.published} == {"text/plain"}
    assert not double.staged


def test_two_writes_are_two_batches_unless_they_have_one_name(spark: SparkSession, double: StagingDouble) -> None:
    for _ in range(2):
        write(numbers(spark, 10), double)
    assert sorted(found(double)) == sorted([*range(10), *range(10)])
    for batch in (3, 3, 4):
        write(numbers(spark, 5), double, writeId="mine", batch=str(batch))
    assert len(double.published) == 20 + 5 + 5


def test_rows_in_another_order_at_the_second_attempt(spark: SparkSession, double: StagingDouble) -> None:
    first_attempts: dict[int, str] = {}

    def fail(asked: dict[str, Any]) -> None:
        if asked["ask"] != "stage":
            return
        first = first_attempts.setdefault(asked["partition"], asked["attempt"])
        if asked["attempt"] == first and asked["part"] == 1:
            raise Refusal(541, "as planned")

    double.before = fail
    write(through(numbers(spark, 100, width=LARGE).select("body"), reversed_later), double)
    assert found(double) == [*range(49, -1, -1), *range(99, 49, -1)], "the second attempts, and nothing of the first"
    assert len(first_attempts) == 2 and not double.staged


def test_parts_staged_by_a_failed_job_are_dropped(spark: SparkSession, double: StagingDouble) -> None:
    frame = through(numbers(spark, 100, width=LARGE).select("body"), second_partition_never_works)
    with pytest.raises(PySparkException):
        write(frame, double)
    assert any(ask["ask"] == "stage" for ask in double.asks)
    assert not double.published and not double.staged


def test_brokers_that_are_not_ready_and_answers_that_are_lost(spark: SparkSession, double: StagingDouble) -> None:
    trouble: Iterator[Exception | None] = iter([Refusal(503, "not now"), None, HangUp(), None] * 2)

    def fail(_asked: dict[str, Any]) -> None:
        if (failure := next(trouble, None)) is not None:
            raise failure

    double.before = double.after = fail
    write(numbers(spark, 100), double)
    assert found(double) == list(range(100))


class Copy:
    """A streaming query from text files to the double, which may be started again."""

    def __init__(self, spark: SparkSession, double: StagingDouble, directory: Path) -> None:
        self.spark, self.double, self.directory = spark, double, directory
        self.reversing = directory / "reversing"
        (directory / "in").mkdir()
        self._files = 0

    def add(self, values: range) -> None:
        self._files += 1
        draft = self.directory / f"{self._files}.txt"
        draft.write_text("".join(f"{value}\n" for value in values))
        draft.rename(self.directory / "in" / draft.name)

    def start(self) -> StreamingQuery:
        lines = self.spark.readStream.option("maxFilesPerTrigger", 1).text(str(self.directory / "in"))
        frame = through(lines.withColumnRenamed("value", "body"), reversed_if(self.reversing))
        writer = frame.writeStream.format("pandomq").options(url=self.double.url, exchange="orders")
        writer = writer.option("checkpointLocation", str(self.directory / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    def run(self) -> None:
        assert self.start().awaitTermination(60)

    def run_into_failure(self) -> None:
        with pytest.raises(PySparkException):
            self.run()


@pytest.fixture
def copy(spark: SparkSession, double: StagingDouble, tmp_path: Path) -> Copy:
    return Copy(spark, double, tmp_path)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_that_fails_is_repeated_by_the_restarted_query(double: StagingDouble, copy: Copy, when: str) -> None:
    def fail(asked: dict[str, Any]) -> None:
        if asked["ask"] == "commit" and asked["batch"] == 1:
            raise Refusal(541, "as planned")

    copy.add(range(50))
    copy.add(range(50, 100))
    setattr(double, when, fail)
    copy.run_into_failure()
    assert len(double.published) == (50 if when == "before" else 100)
    setattr(double, when, lambda asked: None)
    copy.reversing.touch()
    copy.add(range(100, 150))
    copy.run()
    assert sorted(found(double)) == list(range(150))
    assert {ask["query"] for ask in double.asks} == set(double.decided), "it is the same query"
    assert double.decided[double.asks[0]["query"]] == 2


def test_batches_of_a_stream_by_foreach(spark: SparkSession, double: StagingDouble, copy: Copy) -> None:
    def both_ways(frame: DataFrame, batch: int) -> None:
        write(frame.selectExpr("body"), double, writeId="twice", batch=str(batch))
        write(frame.selectExpr("body"), double, writeId="twice", batch=str(batch))

    copy.add(range(20))
    lines = spark.readStream.text(str(copy.directory / "in")).withColumnRenamed("value", "body")
    writer = lines.writeStream.foreachBatch(both_ways).trigger(availableNow=True)
    assert writer.option("checkpointLocation", str(copy.directory / "checkpoint")).start().awaitTermination(60)
    assert found(double) == list(range(20))


def test_errors_are_shown_without_secrets(spark: SparkSession, double: StagingDouble) -> None:
    with pytest.raises(PySparkException, match="column 'id' has no meaning for an exchange") as raised:
        write(spark.range(3).selectExpr("id", "'' as body"), double)
    assert "secret-of-the-double" not in str(raised.value)

    def refuse(asked: dict[str, Any]) -> None:
        raise Refusal(403, "no write access to exchange 'orders'")

    double.before = refuse
    with pytest.raises(PySparkException, match="no write access to exchange 'orders'") as raised:
        write(numbers(spark, 10), double)
    assert "secret-of-the-double" not in str(raised.value)

"""Batch writes by their names, without Spark: a writer as executors and the driver have it, and a double of a root."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pandomq.data_client.failures import Refused
from pandomq.spark.sink import sink
from pandomq.spark.sink.sink import batch_writer
from pandomq.spark.sink.staging import UnroutableRows
from tests.spark.staging_double import Refusal, StagingDouble

SCHEMA = StructType([StructField("body", StringType())])


@pytest.fixture
def double() -> Iterator[StagingDouble]:
    double = StagingDouble()
    try:
        yield double
    finally:
        double.end()


@pytest.fixture(autouse=True)
def first_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "_task", lambda: SimpleNamespace(partitionId=lambda: 0))


def write(double: StagingDouble, rows: int, **options: str) -> None:
    writer = batch_writer({"url": double.url, **options}, SCHEMA, False)
    batches = [pa.RecordBatch.from_pydict({"body": [str(number) for number in range(rows)]})]
    writer.commit([writer.write(iter(batches))])


def counts(double: StagingDouble) -> dict[tuple[str, str], int]:
    places = [(message.exchange, message.routing_key) for message in double.published]
    return {place: places.count(place) for place in places}


@pytest.mark.proves("S2")
def test_one_name_and_batch_to_several_targets_are_several_writes(double: StagingDouble) -> None:
    named = {"writeId": "both", "batch": "3"}
    for _ in range(2):
        write(double, 100, exchange="orders", **named)
        write(double, 100, stream="copy", **named)
        write(double, 100, exchange="orders", routingKey="late", **named)
    assert counts(double) == {("orders", ""): 100, ("", "copy"): 100, ("orders", "late"): 100}
    assert len({query.partition(".")[0] for query in double.decided}) == 1


def test_a_stream_and_the_default_exchange_with_its_name_are_one_target(double: StagingDouble) -> None:
    write(double, 10, stream="copy", writeId="w", batch="0")
    write(double, 10, exchange="", routingKey="copy", writeId="w", batch="0")
    assert counts(double) == {("", "copy"): 10}


@pytest.mark.proves("S2")
def test_batches_published_by_version_0_1_are_not_published_again(double: StagingDouble) -> None:
    """It named a write by its writeId alone. A checkpoint from then has the batch that is run again, and the next."""
    double.decided["mine"] = 17
    write(double, 10, exchange="orders", writeId="mine", batch="17")
    assert not double.published and not double.staged
    write(double, 10, exchange="orders", writeId="mine", batch="18")
    write(double, 10, stream="copy", writeId="mine", batch="18")
    assert counts(double) == {("orders", ""): 10, ("", "copy"): 10}
    assert double.decided["mine"] == 17, "the name of old stays as it was"


@pytest.mark.proves("S2")
def test_another_users_query_of_the_former_name_does_not_stop_a_write(double: StagingDouble) -> None:
    """As a broker of an earlier version refuses it."""

    def refuse(asked: dict[str, Any]) -> None:
        if asked["ask"] == "last_batch":
            raise Refusal(403, "query 'mine' in vhost '/' does not belong to user 'guest': choose another name")

    double.before = refuse
    write(double, 10, exchange="orders", writeId="mine", batch="17")
    assert counts(double) == {("orders", ""): 10}


def test_other_refusals_of_the_former_name_fail_the_task(double: StagingDouble) -> None:
    def refuse(asked: dict[str, Any]) -> None:
        if asked["ask"] == "last_batch":
            raise Refusal(400, "a bug")

    double.before = refuse
    with pytest.raises(Refused, match="a bug"):
        write(double, 10, exchange="orders", writeId="mine", batch="17")


# Rows that no queue takes.


def mixed(double: StagingDouble, **options: str) -> None:
    """Two keys in turn, of which the second was mistyped."""
    double.taken = lambda message: message.routing_key == "eu"
    schema = StructType([*SCHEMA.fields, StructField("routing_key", StringType())])
    writer = batch_writer({"url": double.url, "exchange": "orders", **options}, schema, False)
    rows = {"body": [str(number) for number in range(30)], "routing_key": ["eu", "eu", "ue"] * 10}
    writer.commit([writer.write(iter([pa.RecordBatch.from_pydict(rows)]))])


@pytest.mark.proves("S2")
def test_rows_that_no_queue_takes_fail_the_task(double: StagingDouble) -> None:
    with pytest.raises(UnroutableRows, match="routing key 'ue': bind a queue"):
        mixed(double)
    assert not double.published and not double.staged


@pytest.mark.parametrize(("rule", "warnings"), [("count", 1), ("ignore", 0), ("COUNT", 1)])
def test_rows_that_no_queue_takes_are_counted(
    double: StagingDouble, caplog: pytest.LogCaptureFixture, rule: str, warnings: int
) -> None:
    mixed(double, unroutable=rule)
    assert counts(double) == {("orders", "eu"): 20}
    assert [record.getMessage().startswith("10 rows") for record in caplog.records] == [True] * warnings


def test_rows_that_lose_their_queue_after_they_were_staged_are_counted(
    double: StagingDouble, caplog: pytest.LogCaptureFixture
) -> None:
    double.before = lambda asked: setattr(double, "taken", lambda _: asked["ask"] != "commit")
    write(double, 5, exchange="orders")
    assert not double.published
    assert "5 rows for exchange 'orders' were dropped" in caplog.text

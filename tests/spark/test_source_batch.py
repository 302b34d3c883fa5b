"""Batch reads with Spark itself, from a broker's double."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from .stream_port_double import PASSWORD, StreamPortDouble
from .stream_rows import START_US, batch, fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def port() -> Iterator[StreamPortDouble]:
    with StreamPortDouble() as double:
        fill(double, "orders", 6)
        fill(double, "payments", 2)
        bodies = [b'{"id": 1, "tags": ["a"], "at": "2026-11-16T03:00:00Z"}', b'{"id": "one"}', b"", b'{"id": 2}']
        fill(double, "documents", 1, bodies=bodies)
        yield double


def test_all_columns(spark: SparkSession, port: StreamPortDouble) -> None:
    rows = batch(spark, port, stream="orders").orderBy("offset").collect()
    assert [row["offset"] for row in rows] == list(range(60))
    seventh = rows[7]
    assert (seventh["stream"], seventh["exchange"], seventh["routing_key"]) == ("orders", "trade", "us.2")
    assert seventh["headers"] == {"number": "1"}
    assert seventh["properties"] == {"content_type": "text/plain"}
    assert bytes(seventh["body"]) == b"body 7"
    moment = datetime.fromtimestamp(START_US // 1_000_000 + 7, UTC)
    assert seventh["time"].replace(tzinfo=seventh["time"].tzinfo or UTC) == moment


def test_some_columns_in_another_order(spark: SparkSession, port: StreamPortDouble) -> None:
    rows = batch(spark, port, "body BINARY, offset BIGINT", stream="orders").collect()
    assert sorted((row[1], bytes(row[0])) for row in rows) == [(at, f"body {at}".encode()) for at in range(60)]


def test_partitions_and_edges(spark: SparkSession, port: StreamPortDouble) -> None:
    frame = batch(
        spark,
        port,
        "offset BIGINT",
        stream="orders",
        minPartitions="3",
        startingOffsets='{"orders": 5}',
        endingTimestamp=str(START_US // 1000 + 55_000),
    )
    assert frame.rdd.getNumPartitions() == 3
    assert [row[0] for row in frame.collect()] == list(range(5, 55))


def test_several_streams_by_names_and_by_pattern(spark: SparkSession, port: StreamPortDouble) -> None:
    for options in ({"streams": "orders,payments"}, {"streamPattern": "(order|payment)s"}):
        frame = batch(spark, port, **options)
        counts = {row["stream"]: row["count"] for row in frame.groupBy("stream").count().collect()}
        assert counts == {"orders": 60, "payments": 20}


def test_nothing_to_read(spark: SparkSession, port: StreamPortDouble) -> None:
    assert batch(spark, port, stream="orders", startingOffsets="latest").count() == 0
    assert batch(spark, port, streamPattern="nothing.*").count() == 0


def test_filters_are_pushed_down(spark: SparkSession, port: StreamPortDouble) -> None:
    frame = batch(spark, port, streams="orders,payments", pushFilters="true")
    moment = datetime.fromtimestamp(START_US // 1_000_000 + 40, UTC)
    port.asks.clear()
    some = frame.where("stream = 'orders' AND offset >= 12 AND routing_key LIKE 'eu.%'").where(frame.time < moment)
    assert sorted(row["offset"] for row in some.collect()) == list(range(12, 40, 2))
    # Offsets and times have become a range, of one stream only.
    assert port.asks.count("read") == 1
    assert frame.where("offset > 1000").count() == 0
    assert frame.where("routing_key IN ('us.1', 'eu.0') AND exchange = 'trade'").count() == 8 + 8


def test_json_bodies(spark: SparkSession, port: StreamPortDouble) -> None:
    frame = batch(spark, port, stream="documents", bodySchema="id BIGINT, tags ARRAY<STRING>, at TIMESTAMP")
    assert "body" not in frame.columns
    rows = frame.orderBy("offset").collect()
    assert [None if row["value"] is None else row["value"]["id"] for row in rows] == [1, None, None, 2]
    assert rows[0]["value"]["tags"] == ["a"]
    assert rows[0]["value"]["at"].replace(tzinfo=None) == datetime(2026, 11, 16, 3)
    assert [None if row["malformed"] is None else bytes(row["malformed"]) for row in rows] == [
        None,
        b'{"id": "one"}',
        b"",
        None,
    ]


@pytest.mark.parametrize(
    ("options", "columns", "complaint"),
    [
        ({"stream": "nowhere"}, None, "stream 'nowhere' does not exist"),
        ({"stream": "orders", "startingOffset": "earliest"}, None, "unknown option startingoffset"),
        ({"stream": "orders"}, "offset INT", "column 'offset' must be bigint, not int"),
        ({"stream": "orders"}, "ofset BIGINT", "column 'ofset' does not exist"),
        ({"stream": "orders", "endingOffsets": '{"orders": 1000}'}, None, "ends at offset 60, before 1000"),
    ],
)
def test_errors_give_their_cause(
    spark: SparkSession, port: StreamPortDouble, options: dict[str, str], columns: str | None, complaint: str
) -> None:
    with pytest.raises(Exception, match=complaint) as failed:
        batch(spark, port, columns, **options).collect()
    assert PASSWORD not in str(failed.value)
    assert PASSWORD.replace(" ", "%20") not in str(failed.value)


def test_a_wrong_password_is_reported_and_not_shown(spark: SparkSession, port: StreamPortDouble) -> None:
    reader = spark.read.format("pandomq").option("url", f"amqp://127.0.0.1:{port.port}").option("user", "ann")
    with pytest.raises(Exception, match="may not log in") as failed:
        reader.option("password", "wr0ng-w0rd").option("stream", "orders").load().collect()
    assert "wr0ng-w0rd" not in str(failed.value)


def test_plans_show_no_password(
    spark: SparkSession, port: StreamPortDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = batch(spark, port, stream="orders")
    for mode in ("extended", "formatted", "codegen", "cost"):
        frame.explain(mode)
    shown = capsys.readouterr().out + repr(frame)
    assert "pandomq" in shown
    assert "correct" not in shown

"""The options of a write, and its error messages."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pandomq.spark.option_values import BadOption
from pandomq.spark.sink.options import BadColumn, read_options
from pandomq.spark.sink.sink import batch_writer, stream_writer

PLACE = {"url": "amqp://guest:hush@localhost", "exchange": "orders"}
TEXT, OCTETS = StringType(), BinaryType()
TEXTS = MapType(TEXT, TEXT)
WHOLE = {"body": OCTETS, "routing_key": TEXT, "headers": TEXTS, "properties": TEXTS}


def schema(columns: dict[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_names_of_options_have_no_case_and_values_have_defaults() -> None:
    read = read_options({"URL": PLACE["url"], "Exchange": "", "ROUTINGKEY": "k", "timeout": "90s"})
    assert (read.exchange, read.routing_key, read.connection.timeout_ms, read.write_id) == ("", "k", 90_000, None)
    assert read.properties == (("delivery_mode", "2"),)
    read = read_options({"url": PLACE["url"], "stream": "s", "contentType": "text/plain", "deliveryMode": "1"})
    assert (read.exchange, read.routing_key) == ("", "s")
    assert read.properties == (("content_type", "text/plain"), ("delivery_mode", "1"))


def test_a_password_is_not_shown() -> None:
    assert "hush" not in repr(read_options(PLACE))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"exchange": "e"}, "option url is missing"),
        ({"url": "amqp://h"}, "option exchange or stream is missing"),
        ({**PLACE, "stream": "s"}, "options exchange and stream cannot be combined: give one of them"),
        ({"url": "amqp://h", "stream": "s", "routingKey": "k"}, "routingKey is for an exchange"),
        ({**PLACE, "routingKey": "k" * 256}, "option routingKey has 256 bytes"),
        ({**PLACE, "deliveryMode": "3"}, "delivery_mode is '3': expected a number of at most 2"),
        ({**PLACE, "writeId": "w"}, "writeId and batch must be given together"),
        ({**PLACE, "writeId": "a b", "batch": "1"}, "option writeId"),
        ({**PLACE, "writeId": "w", "batch": "-1"}, "option batch"),
        ({**PLACE, "unroutable": "drop"}, "expected fail, count or ignore"),
        ({"url": "amqp://h", "stream": "s", "unroutable": "fail"}, "option unroutable is for an exchange"),
        ({**PLACE, "exchnage": "e"}, "unknown option exchnage"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint):
        read_options(options)


@pytest.mark.parametrize("columns", [{"body": TEXT}, {"headers": MapType(TEXT, LongType()), "body": OCTETS}, WHOLE])
def test_columns_that_can_be_published(columns: dict[str, DataType]) -> None:
    batch_writer(PLACE, schema(columns), False)
    stream_writer(PLACE, schema(columns), False)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"routing_key": TEXT}, "column body is missing among routing_key"),
        ({"body": IntegerType()}, "column 'body' is int: expected binary or string"),
        ({"body": OCTETS, "routing_key": OCTETS}, "column 'routing_key' is binary: expected string"),
        ({"body": OCTETS, "headers": MapType(TEXT, ArrayType(TEXT))}, "column 'headers' is map<string,array<string>>"),
        ({"body": OCTETS, "headers": TEXT}, "column 'headers' is string: expected map"),
        ({"body": OCTETS, "properties": MapType(TEXT, IntegerType())}, "column 'properties' is map<string,int>"),
        (
            {"body": OCTETS, "offset": LongType()},
            "column 'offset' has no meaning for an exchange: select among body, routing_key",
        ),
    ],
)
def test_columns_that_cannot_be_published_are_named(columns: dict[str, DataType], complaint: str) -> None:
    with pytest.raises(BadColumn, match=complaint):
        batch_writer(PLACE, schema(columns), False)


def test_a_stream_is_reached_by_its_name_alone() -> None:
    with pytest.raises(BadColumn, match="rows reach a stream by its name"):
        batch_writer({"url": "amqp://h", "stream": "s"}, schema(WHOLE), False)


def test_nothing_is_overwritten() -> None:
    with pytest.raises(BadOption, match="mode append"):
        batch_writer(PLACE, schema(WHOLE), True)
    with pytest.raises(BadOption, match="output mode append"):
        stream_writer(PLACE, schema(WHOLE), True)
    with pytest.raises(BadOption, match="for batch writes"):
        stream_writer({**PLACE, "writeId": "w", "batch": "1"}, schema(WHOLE), False)

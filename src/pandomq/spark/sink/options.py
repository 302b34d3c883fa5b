"""The options and columns of a write, checked on the driver before anything runs."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
)

from pandomq.spark.connection import OPTIONS, ConnectionOptions
from pandomq.spark.option_values import BadOption, OptionValues
from pandomq.spark.sink.frames import BadRow, Pairs, describe, short_string
from pandomq.spark.sink.write_names import query_name

WRITE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
PERSISTENT: Final = "2"
KNOWN: Final = (
    *OPTIONS,
    "exchange",
    "stream",
    "routingKey",
    "contentType",
    "deliveryMode",
    "writeId",
    "batch",
    "unroutable",
)
OF_SPARK: Final = ("path", "checkpointLocation", "queryName")
"""Spark reads these itself, and passes them on."""

_HEADER_VALUES: Final = (StringType, BinaryType, BooleanType, ByteType, ShortType, IntegerType, LongType, DoubleType)


class BadColumn(ValueError):
    """A column is missing, unknown, or of the wrong type."""


class UnroutablePolicy(enum.Enum):
    """The treatment of rows that no queue takes."""

    FAIL = "fail"
    """The broker refuses to stage them, so the task fails. Rows that lose their queue later are counted."""
    COUNT = "count"
    """Unroutable messages are dropped when the batch is published; the broker counts them, and the driver logs how
    many."""
    IGNORE = "ignore"
    """Unroutable messages are dropped, and the log has no line about them."""


@dataclass(frozen=True)
class SinkOptions:
    """The target of rows, and the values for rows without their own."""

    connection: ConnectionOptions
    exchange: str
    routing_key: str
    to_stream: bool
    properties: Pairs
    write_id: str | None
    """With `batch`: the name under which a batch write happens once, however often it is run."""
    batch: int | None
    unroutable: UnroutablePolicy = UnroutablePolicy.FAIL

    @property
    def named_query(self) -> str | None:
        """The name of this write at the broker, if the user has named it."""
        return None if self.write_id is None else query_name(self.write_id, self.exchange, self.routing_key)


def read_options(options: Mapping[str, str]) -> SinkOptions:
    """Raises BadOption, or the client's BadUrl."""
    values = OptionValues(options)
    values.check_known((*KNOWN, *OF_SPARK))
    connection = ConnectionOptions.of(values)
    target = values.at_most_one("exchange", "stream")
    if target is None:
        raise BadOption("option exchange or stream is missing: it names the target of the rows")
    to_stream = target == "stream"
    if to_stream and "routingKey" in values:
        raise BadOption("option routingKey is for an exchange: rows reach a stream by its name. Remove the option")
    stream = values.text("stream")
    write_id, batch = _identity(values)
    read = SinkOptions(
        connection=connection,
        exchange="" if to_stream else values.raw("exchange") or "",
        routing_key=stream if stream is not None else values.raw("routingKey") or "",
        to_stream=to_stream,
        properties=_properties(values),
        write_id=write_id,
        batch=batch,
        unroutable=_unroutable(values, to_stream),
    )
    try:
        short_string(read.exchange, "option exchange")
        short_string(read.routing_key, "option stream" if to_stream else "option routingKey")
        describe((), read.properties)
    except BadRow as bad:
        raise BadOption(str(bad)) from None
    return read


def _identity(values: OptionValues) -> tuple[str | None, int | None]:
    write_id, batch = values.text("writeId"), values.number("batch", least=0)
    if (write_id is None) != (batch is None):
        raise BadOption(
            "options writeId and batch must be given together: the batch is a number that increases with each write"
        )
    if write_id is not None and not WRITE_ID.fullmatch(write_id):
        raise BadOption("option writeId must consist of up to 64 letters, digits, - and _")
    return write_id, batch


def _unroutable(values: OptionValues, to_stream: bool) -> UnroutablePolicy:
    word = values.text("unroutable")
    if word is None:
        return UnroutablePolicy.FAIL
    if to_stream:
        raise BadOption("option unroutable is for an exchange: a stream must exist. Remove the option")
    try:
        return UnroutablePolicy(word.strip().lower())
    except ValueError:
        raise BadOption(f"option unroutable is {word!r}: expected fail, count or ignore") from None


def _properties(values: OptionValues) -> Pairs:
    named = {"content_type": values.text("contentType"), "delivery_mode": values.text("deliveryMode") or PERSISTENT}
    return tuple((name, value) for name, value in named.items() if value is not None)


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Raises BadColumn, which names the wrong column, and the right type."""
    types = {field.name: field.dataType for field in schema.fields}
    if "body" not in types:
        raise BadColumn(f"column body is missing among {', '.join(types) or 'none'}")
    for name, kind in types.items():
        check = _COLUMNS.get(name)
        if check is None:
            wanted = ", ".join(_COLUMNS)
            raise BadColumn(f"column {name!r} has no meaning for an exchange: select among {wanted}")
        expected, accepts = check
        if not accepts(kind):
            raise BadColumn(f"column {name!r} is {kind.simpleString()}: expected {expected}")
    if options.to_stream and "routing_key" in types:
        raise BadColumn("column routing_key is for an exchange: rows reach a stream by its name. Drop the column")


def _is_text(kind: DataType) -> bool:
    return isinstance(kind, StringType)


def _is_body(kind: DataType) -> bool:
    return isinstance(kind, (BinaryType, StringType))


def _is_headers(kind: DataType) -> bool:
    return isinstance(kind, MapType) and _is_text(kind.keyType) and isinstance(kind.valueType, _HEADER_VALUES)


def _is_properties(kind: DataType) -> bool:
    return isinstance(kind, MapType) and _is_text(kind.keyType) and _is_text(kind.valueType)


_COLUMNS: Final = {
    "body": ("binary or string", _is_body),
    "routing_key": ("string", _is_text),
    "headers": ("map<string,string>, or a map of numbers, booleans or binary", _is_headers),
    "properties": ("map<string,string>", _is_properties),
}

"""The columns of a stream's messages in Spark, and chunks as Arrow batches of those columns.

The buffers of a chunk become the columns of a batch without conversion: there is no work per message, except in
`header_maps` and `bodies`. A reader may request some of the columns (`.schema("offset BIGINT, body BINARY")`), in any
order; other columns are not built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from pandomq import chunk_form
from pandomq.spark import bodies
from pandomq.spark.header_maps import HeaderMaps, text_array
from pandomq.spark.option_values import BadOption

COLUMNS: Final[Mapping[str, str]] = {
    "stream": "string",
    "offset": "bigint",
    "time": "timestamp",
    "exchange": "string",
    "routing_key": "string",
    "headers": "map<string,string>",
    "properties": "map<string,string>",
    "body": "binary",
}
VALUE: Final = "value"
MALFORMED: Final = "malformed"
TIME: Final = pa.timestamp("us", tz="UTC")

RowFilter = Callable[[pa.Array], pa.Array]
"""Maps routing keys to the wanted rows."""


class Shape(NamedTuple):
    """The columns of a batch, in order; their types as Spark requires them; and the type of decoded bodies, if they are
    to be decoded."""

    names: tuple[str, ...]
    schema: pa.Schema | None = None
    struct: pa.DataType | None = None


def ddl(body_schema: str | None) -> str:
    """All columns, in Spark's language. Decoded bodies replace the octets."""
    columns = dict(COLUMNS)
    if body_schema is not None:
        del columns["body"]
        columns |= {VALUE: f"struct<{body_schema}>", MALFORMED: "binary"}
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def shape_of(schema: Any, body_schema: str | None) -> Shape:
    """The shape for a schema of Spark. Raises BadOption if there is no such column, or if it has another type."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC")
    struct = None
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if field.name == VALUE and body_schema is not None:
            struct = arrow.field(VALUE).type
            continue
        expected = "binary" if field.name == MALFORMED and body_schema is not None else COLUMNS.get(field.name)
        if expected is None:
            known = [*COLUMNS, *([VALUE, MALFORMED] if body_schema is not None else [])]
            raise BadOption(f"column {field.name!r} does not exist; expected one of {', '.join(known)}")
        if kind != expected:
            raise BadOption(f"column {field.name!r} must be {expected}, not {kind}")
    names = tuple(field.name for field in schema.fields)
    if MALFORMED in names and struct is None:
        raise BadOption(f"column {MALFORMED} needs column {VALUE}")
    return Shape(names, arrow, struct)


class ChunkReader:
    """Makes batches of one stream's chunks."""

    def __init__(self, stream: str, shape: Shape, wanted: RowFilter | None = None) -> None:
        self._stream = stream
        self._shape = shape
        self._wanted = wanted
        self._maps = HeaderMaps(properties="properties" in shape.names, tables="headers" in shape.names)

    def batch(self, chunk: memoryview, first_offset: int, end_offset: int) -> pa.RecordBatch | None:
        """The messages of a sealed chunk, plain and checked, from one offset until another; None if none is wanted.
        Raises BadChunk."""
        head, parts = chunk_form.decode(chunk, checked=True)
        offsets = np.frombuffer(parts[chunk_form.OFFSETS], dtype=np.int64)
        begin, end = np.searchsorted(offsets, (first_offset, end_offset))
        if begin >= end:
            return None
        rows = _Rows(head.rows, parts, int(begin), int(end))
        if self._wanted is not None and not rows.keep(self._wanted):
            return None
        shape = self._shape
        found: dict[str, pa.Array] = {}
        if "headers" in shape.names or "properties" in shape.names:
            found["properties"], found["headers"] = self._maps.of(rows.octets(chunk_form.HEADER_ENDS))
        if shape.struct is not None:
            found[VALUE], found[MALFORMED] = bodies.decode(rows.octets(chunk_form.BODY_ENDS), shape.struct)
        arrays = [found[name] if name in found else _MAKERS[name](rows, self._stream) for name in shape.names]
        if shape.schema is None:
            return pa.RecordBatch.from_arrays(arrays, names=list(shape.names))
        return pa.RecordBatch.from_arrays(arrays, schema=shape.schema)


class _Rows:
    """A range of the rows of a chunk, column by column."""

    def __init__(self, total: int, parts: list[memoryview], begin: int, end: int) -> None:
        self._total = total
        self._parts = parts
        self._begin = begin
        self._chosen: pa.Array | None = None
        self.count = end - begin

    def keep(self, wanted: RowFilter) -> bool:
        """Keeps only the wanted rows; returns whether there are any."""
        mask = wanted(text_array(self.octets(chunk_form.KEY_ENDS)))
        chosen = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        if len(chosen) < self.count:
            self._chosen = pa.array(chosen)
        self.count = len(chosen)
        return self.count > 0

    def numbers(self, column: int, kind: pa.DataType) -> pa.Array:
        return self._cut(pa.Array.from_buffers(kind, self._total, [None, pa.py_buffer(self._parts[column])]))

    def octets(self, ends: int) -> pa.Array:
        buffers = [None, pa.py_buffer(self._parts[ends]), pa.py_buffer(self._parts[ends + 1])]
        return self._cut(pa.Array.from_buffers(pa.binary(), self._total, buffers))

    def _cut(self, array: pa.Array) -> pa.Array:
        array.validate()
        last = self._begin + (self.count if self._chosen is None else self._total - self._begin)
        cut = array[self._begin : last]
        return cut if self._chosen is None else cut.take(self._chosen)


_MAKERS: Final[Mapping[str, Callable[[_Rows, str], pa.Array]]] = {
    "stream": lambda rows, stream: pa.repeat(pa.scalar(stream), rows.count),
    "offset": lambda rows, _: rows.numbers(chunk_form.OFFSETS, pa.int64()),
    "time": lambda rows, _: rows.numbers(chunk_form.TIMES, TIME),
    "exchange": lambda rows, _: text_array(rows.octets(chunk_form.EXCHANGE_ENDS)),
    "routing_key": lambda rows, _: text_array(rows.octets(chunk_form.KEY_ENDS)),
    "body": lambda rows, _: rows.octets(chunk_form.BODY_ENDS),
}

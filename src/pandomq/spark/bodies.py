"""Bodies that are JSON objects, decoded with a schema for many messages at once.

A body decodes if Arrow's reader makes one row of it and nothing is left over: fields that the schema does not name are
left out, those that are missing are null, and a value of another type makes the body malformed. All bodies are read
together; if that fails each half is read, so that a malformed body affects only its own row.

Together means one document a line, each wrapped as the only field of an object. The field's name is random, so that no
body can contain it, and lines end where no string can continue: every body ends where its line ends, and a body with
more than one value makes more rows than there are lines.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

_FIELD: Final = token_hex(16)
_BEFORE: Final = pa.scalar(f'{{"{_FIELD}":'.encode(), pa.binary())
_AFTER: Final = pa.scalar(b"}\n", pa.binary())
_NOTHING: Final = pa.scalar(b"", pa.binary())


def decode(bodies: pa.Array, struct: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """The values, null where a body is malformed; and the malformed bodies, null elsewhere."""
    if not len(bodies):
        return pa.nulls(0, struct), bodies
    values = pa.concat_arrays(_decoded(bodies, struct))
    well_formed = values.is_valid()
    if pc.all(well_formed).as_py():
        return values, pa.nulls(len(bodies), pa.binary())
    return values, pc.if_else(well_formed, pa.scalar(None, pa.binary()), bodies)


def _decoded(bodies: pa.Array, struct: pa.DataType) -> list[pa.Array]:
    values = _together(bodies, struct)
    if values is not None:
        return [values]
    if len(bodies) == 1:
        return [pa.nulls(1, struct)]
    middle = len(bodies) // 2
    return _decoded(bodies[:middle], struct) + _decoded(bodies[middle:], struct)


def _together(bodies: pa.Array, struct: pa.DataType) -> pa.Array | None:
    """The values of all bodies; None if any is malformed."""
    lines = pc.binary_join_element_wise(_BEFORE, bodies, _AFTER, _NOTHING)
    _, ends, octets = lines.buffers()
    text = octets.slice(0, memoryview(ends).cast("i")[len(lines)])
    # Arrow's reader takes a zero octet for the end, and octets that are not UTF-8 for text.
    if not np.frombuffer(text, dtype=np.uint8).all() or not _is_text(lines):
        return None
    options = pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    form = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema([(_FIELD, struct)]), unexpected_field_behavior="ignore", newlines_in_values=True
    )
    try:
        table = pyarrow.json.read_json(pa.BufferReader(text), options, form)
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(bodies):
        return None
    return table.column(0).combine_chunks()


def _is_text(octets: pa.Array) -> bool:
    try:
        octets.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True

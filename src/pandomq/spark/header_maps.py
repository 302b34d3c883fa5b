"""Content headers of many messages at once, as maps of text: their properties, and their headers.

Content headers mostly differ only in the body's size, which is left out: equal ones are read once. Distinct ones are
walked for all messages together, property by property; only tables of headers are decoded one by one, and equal tables
once. A content header that is malformed gives null.

    property    its text; numbers in decimal, the timestamp in seconds since 1970
    header      text as it is, numbers in decimal, true and false; octets that are not text in base64; tables and lists
                as JSON; void is null
"""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pandomq.errors import Fault
from pandomq.fieldtable import decode_table

TEXT_MAP: Final = pa.map_(pa.string(), pa.string())

_SHORT_STRING, _TABLE, _OCTET, _UINT64 = range(4)
_PROPERTIES: Final = (
    ("content_type", _SHORT_STRING),
    ("content_encoding", _SHORT_STRING),
    ("headers", _TABLE),
    ("delivery_mode", _OCTET),
    ("priority", _OCTET),
    ("correlation_id", _SHORT_STRING),
    ("reply_to", _SHORT_STRING),
    ("expiration", _SHORT_STRING),
    ("message_id", _SHORT_STRING),
    ("timestamp", _UINT64),
    ("type", _SHORT_STRING),
    ("user_id", _SHORT_STRING),
    ("app_id", _SHORT_STRING),
    ("cluster_id", _SHORT_STRING),
)
PROPERTY_NAMES: Final = tuple(name for name, kind in _PROPERTIES if kind != _TABLE)

_SIZE: Final = 4
_FLAGS: Final = 12
"""Class and weight come first, then the body's size, then flags for the properties."""
_FLAGS_BYTES: Final = 2
_PLACES: Final = 16
_EQUAL_SHARE: Final = 2
"""If more than one in this many headers is distinct, looking for equal ones does not pay."""

Maps = tuple[pa.Array | None, pa.Array | None]
_Numbers = np.ndarray[Any, np.dtype[np.int64]]


class HeaderMaps:
    """Reads the headers of one chunk after the other; chunks often have the same few, which are then read once."""

    def __init__(self, *, properties: bool, tables: bool) -> None:
        """Selects the maps that are wanted."""
        self._properties = properties
        self._tables = tables
        self._known: pa.Array | None = None
        self._known_maps: Maps = None, None

    def of(self, headers: pa.Array) -> Maps:
        """Maps of properties and maps of headers from binary content headers, each if it is wanted."""
        sizeless = _without_sizes(headers)
        distinct = sizeless.dictionary_encode()
        if len(distinct.dictionary) * _EQUAL_SHARE > len(headers):
            return self._read(sizeless)
        if self._known is None or not self._known.equals(distinct.dictionary):
            self._known, self._known_maps = distinct.dictionary, self._read(distinct.dictionary)
        properties, tables = self._known_maps
        return (
            None if properties is None else properties.take(distinct.indices),
            None if tables is None else tables.take(distinct.indices),
        )

    def _read(self, headers: pa.Array) -> Maps:
        walk = _Walk(headers)
        return walk.property_maps() if self._properties else None, walk.table_maps() if self._tables else None


def _without_sizes(headers: pa.Array) -> pa.Array:
    """Returns the headers with a body of no size in each."""
    bounds, octets = _bounds(headers), _octets(headers).copy()
    sizes = bounds[:-1][np.diff(bounds) >= _FLAGS, None] + np.arange(_SIZE, _FLAGS)
    octets[sizes] = 0
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(octets)]
    return pa.Array.from_buffers(pa.binary(), len(headers), buffers)


def _bounds(headers: pa.Array) -> _Numbers:
    """The start of each, and the end of the last."""
    ends = np.frombuffer(headers.buffers()[1], dtype=np.int32)
    return ends[headers.offset : headers.offset + len(headers) + 1].astype(np.int64)


def _octets(headers: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(headers.buffers()[2] or b"\0", dtype=np.uint8)


class _Walk:
    """The position of each property of each message, found for all messages at once."""

    def __init__(self, headers: pa.Array) -> None:
        self.count = len(headers)
        self._octets = _octets(headers)
        bounds = _bounds(headers)
        starts, self._stops = bounds[:-1], bounds[1:]
        short = self._stops - starts < _FLAGS + _FLAGS_BYTES
        flags = np.where(short, 0, self._number(starts + _FLAGS, _FLAGS_BYTES))
        self._at = starts + _FLAGS + _FLAGS_BYTES
        self._tables: tuple[_Numbers, _Numbers, _Numbers] | None = None
        self._values: list[pa.Array] = []
        self._keys: list[_Numbers] = []
        for place, (_, kind) in enumerate(_PROPERTIES):
            rows = np.flatnonzero(flags & (1 << 15 - place))
            if len(rows):
                self._step(rows, place, kind)
        self.malformed = (self._at != self._stops) | short | (flags & 1 != 0)

    def _step(self, rows: _Numbers, place: int, kind: int) -> None:
        at = self._at[rows]
        if kind == _SHORT_STRING:
            self._keep(rows, place, text_array(self._spans(at + 1, size := self._number(at, 1))))
            size = size + 1
        elif kind == _TABLE:
            size = self._number(at, 4) + 4
            self._tables = rows, at, size
        else:
            size = np.full(len(rows), 1 if kind == _OCTET else 8)
            self._keep(rows, place, pc.cast(pa.array(self._number(at, int(size[0]))), pa.string()))
        # A value that would end behind its header makes the header malformed, since the walk ends at a wrong place.
        self._at[rows] = np.where(at + size <= self._stops[rows], at + size, -1)

    def _keep(self, rows: _Numbers, place: int, values: pa.Array) -> None:
        self._values.append(values)
        self._keys.append(rows * _PLACES + place)

    def _number(self, at: _Numbers, size: int) -> Any:
        """The big-endian number at each place; a place outside the header gives any number, and is detected by where
        the header ends."""
        number: Any = np.zeros(len(at), dtype=np.uint64 if size == 8 else np.int64)
        for octet in range(size):
            number = (number << number.dtype.type(8)) | self._octets[self._within(at + octet)]
        return number

    def _within(self, at: _Numbers) -> _Numbers:
        return np.minimum(np.maximum(at, 0), len(self._octets) - 1)

    def _spans(self, starts: _Numbers, sizes: _Numbers) -> pa.Array:
        """The octets of each span, as one array."""
        sizes = np.where((starts >= 0) & (starts + sizes <= len(self._octets)), sizes, 0)
        ends = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=ends[1:])
        octets = self._octets[np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes)]
        buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(octets)]
        return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)

    def property_maps(self) -> pa.Array:
        keys = np.concatenate(self._keys) if self._keys else np.zeros(0, dtype=np.int64)
        values = pa.concat_arrays(self._values) if self._values else pa.array([], pa.string())
        order = np.argsort(keys, kind="stable")
        names = pa.array([name for name, _ in _PROPERTIES]).take(pa.array(keys[order] % _PLACES))
        counts = np.bincount(keys // _PLACES, minlength=self.count)
        return self._of_well_formed(pa.MapArray.from_arrays(_ends(counts), names, values.take(pa.array(order))))

    def table_maps(self) -> pa.Array:
        """Each distinct table is decoded once, by the definition of field tables."""
        if self._tables is None:
            return self._of_well_formed(pa.array([()], TEXT_MAP).take(pa.array(np.zeros(self.count, dtype=np.int64))))
        rows, starts, sizes = self._tables
        distinct = self._spans(starts, sizes).dictionary_encode()
        decoded = [_decoded(table.as_py()) for table in distinct.dictionary]
        # The last one stands for messages without a table.
        which = np.full(self.count, len(decoded), dtype=np.int64)
        which[rows] = distinct.indices.to_numpy()
        return self._of_well_formed(pa.array([*decoded, ()], TEXT_MAP).take(pa.array(which)))

    def _of_well_formed(self, found: pa.Array) -> pa.Array:
        if not self.malformed.any():
            return found
        return pc.if_else(pa.array(self.malformed), pa.scalar(None, TEXT_MAP), found)


def text_array(octets: pa.Array) -> pa.Array:
    """Octets as text; octets that are not UTF-8 become replacement characters."""
    try:
        return octets.cast(pa.string())
    except pa.ArrowInvalid:
        distinct = octets.dictionary_encode()
        readable = [value.as_py().decode("utf-8", "replace") for value in distinct.dictionary]
        return pa.array(readable, pa.string()).take(distinct.indices)


def _ends(counts: _Numbers) -> pa.Array:
    ends = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=ends[1:])
    return pa.array(ends)


def _decoded(table: bytes) -> list[tuple[str, str | None]] | None:
    try:
        fields, end = decode_table(table)
    except Fault:
        return None
    if end != len(table):
        return None
    return [(_readable(name), header_text(value)) for name, value in fields.items()]


def header_text(value: Any) -> str | None:
    """A header's value as text."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return _readable(value)
        case bytes():
            return b64encode(value).decode()
        case float():
            return repr(float(value))
        case list() | dict():
            return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
        case _:
            return str(Decimal(value)) if isinstance(value, Decimal) else str(int(value))


def _plain(value: Any) -> Any:
    match value:
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {_readable(name): _plain(item) for name, item in value.items()}
        case bytes() | Decimal():
            return header_text(value)
        case str():
            return _readable(value)
        case _:
            return value


def _readable(text: str) -> str:
    # Names that are not UTF-8 come with surrogate escapes, which Arrow rejects.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

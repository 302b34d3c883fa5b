"""Field tables in RabbitMQ's dialect, both ways.

Decoding and encoding again gives the same bytes: a small subclass stands for a wire type that the plain Python type
would not preserve. Those subclasses compare equal to the plain values, as RabbitMQ compares numbers of different width.
Unmarked values are written as RabbitMQ's own broker writes them:

    bool t    int l    float d    str S    bytes x    Decimal D    list A    dict F    None V

Any malformed input is a syntax error of the peer. Keys that are not UTF-8 are kept by surrogate escapes. Of two equal
keys the first counts, as in RabbitMQ.
"""

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from pandomq.errors import syntax_error
from pandomq.limits import FIELD_TABLE_DEPTH_MAX, SHORT_STRING_BYTES_MAX

FieldTable = dict[str, Any]


class Int8(int):
    """b"""

    __slots__ = ()


class UInt8(int):
    """B"""

    __slots__ = ()


class Int16(int):
    """s"""

    __slots__ = ()


class UInt16(int):
    """u"""

    __slots__ = ()


class Int32(int):
    """I: the type of a small number in most clients"""

    __slots__ = ()


class UInt32(int):
    """i"""

    __slots__ = ()


class Int64L(int):
    """L: another letter for l, which RabbitMQ accepts as well"""

    __slots__ = ()


class Timestamp(int):
    """T: seconds since 1970"""

    __slots__ = ()


class Float32(float):
    """f"""

    __slots__ = ()


class OctetString(bytes):
    """S: a long string that is not UTF-8"""

    __slots__ = ()


_Reader = Callable[[bytes, int, int, int], tuple[Any, int]]
"""Reads a value that starts at an offset, within an end, at a depth; returns it and its end."""

_UINT32: Final = struct.Struct(">I")
_DECIMAL: Final = struct.Struct(">Bi")


def decode_table(buffer: bytes, offset: int = 0) -> tuple[FieldTable, int]:
    """The table whose length field is at `offset`, and its end."""
    try:
        return _read_table(buffer, offset, len(buffer), 0)
    except (struct.error, IndexError) as error:
        raise syntax_error("field table ends too early") from error


def encode_table(table: FieldTable) -> bytes:
    """The table with its length field before it."""
    parts: list[bytes] = []
    for key, value in table.items():
        name = key.encode("utf-8", "surrogateescape")
        if len(name) > SHORT_STRING_BYTES_MAX:
            raise ValueError(f"field name of {len(name)} bytes")
        parts.append(bytes((len(name),)))
        parts.append(name)
        parts.append(_encode_value(value))
    body = b"".join(parts)
    return _UINT32.pack(len(body)) + body


# Reading.


def _sized_end(buffer: bytes, offset: int, end: int) -> int:
    # The end of the bytes after a length field; it must lie within the enclosing value.
    (size,) = _UINT32.unpack_from(buffer, offset)
    value_end: int = offset + 4 + size
    if value_end > end:
        raise syntax_error("field value is longer than its table")
    return value_end


def _check_depth(depth: int) -> None:
    if depth >= FIELD_TABLE_DEPTH_MAX:
        raise syntax_error(f"field table nested deeper than {FIELD_TABLE_DEPTH_MAX}")


def _read_table(buffer: bytes, offset: int, end: int, depth: int) -> tuple[FieldTable, int]:
    _check_depth(depth)
    table_end = _sized_end(buffer, offset, end)
    offset += 4
    table: FieldTable = {}
    while offset < table_end:
        name_end = offset + 1 + buffer[offset]
        if name_end >= table_end:
            raise syntax_error("field name is longer than its table")
        name = buffer[offset + 1 : name_end].decode("utf-8", "surrogateescape")
        value, offset = _read_value(buffer, name_end, table_end, depth)
        if name not in table:
            table[name] = value
    return table, table_end


def _read_array(buffer: bytes, offset: int, end: int, depth: int) -> tuple[list[Any], int]:
    _check_depth(depth)
    array_end = _sized_end(buffer, offset, end)
    offset += 4
    array: list[Any] = []
    while offset < array_end:
        value, offset = _read_value(buffer, offset, array_end, depth)
        array.append(value)
    return array, array_end


def _read_value(buffer: bytes, offset: int, end: int, depth: int) -> tuple[Any, int]:
    reader = _READERS.get(buffer[offset])
    if reader is None:
        raise syntax_error(f"unknown field type {buffer[offset]}")
    value, offset = reader(buffer, offset + 1, end, depth + 1)
    if offset > end:
        raise syntax_error("field value is longer than its table")
    return value, offset


def _fixed(format_: str, make: Callable[[Any], Any] | None) -> _Reader:
    layout = struct.Struct(format_)
    size = layout.size
    unpack_from = layout.unpack_from

    def read_plain(buffer: bytes, offset: int, _end: int, _depth: int) -> tuple[Any, int]:
        return unpack_from(buffer, offset)[0], offset + size

    def read_marked(buffer: bytes, offset: int, _end: int, _depth: int) -> tuple[Any, int]:
        assert make is not None
        return make(unpack_from(buffer, offset)[0]), offset + size

    return read_plain if make is None else read_marked


def _read_long_string(buffer: bytes, offset: int, end: int, _depth: int) -> tuple[str | OctetString, int]:
    value_end = _sized_end(buffer, offset, end)
    octets = buffer[offset + 4 : value_end]
    try:
        return octets.decode("utf-8"), value_end
    except UnicodeDecodeError:
        return OctetString(octets), value_end


def _read_bytes(buffer: bytes, offset: int, end: int, _depth: int) -> tuple[bytes, int]:
    value_end = _sized_end(buffer, offset, end)
    return buffer[offset + 4 : value_end], value_end


def _read_decimal(buffer: bytes, offset: int, _end: int, _depth: int) -> tuple[Decimal, int]:
    scale, unscaled = _DECIMAL.unpack_from(buffer, offset)
    return Decimal(unscaled).scaleb(-scale), offset + _DECIMAL.size


def _read_void(_buffer: bytes, offset: int, _end: int, _depth: int) -> tuple[None, int]:
    return None, offset


_READERS: Final[dict[int, _Reader]] = {
    ord("t"): _fixed(">?", None),
    ord("b"): _fixed(">b", Int8),
    ord("B"): _fixed(">B", UInt8),
    ord("s"): _fixed(">h", Int16),
    ord("u"): _fixed(">H", UInt16),
    ord("I"): _fixed(">i", Int32),
    ord("i"): _fixed(">I", UInt32),
    ord("l"): _fixed(">q", None),
    ord("L"): _fixed(">q", Int64L),
    ord("T"): _fixed(">Q", Timestamp),
    ord("f"): _fixed(">f", Float32),
    ord("d"): _fixed(">d", None),
    ord("D"): _read_decimal,
    ord("S"): _read_long_string,
    ord("x"): _read_bytes,
    ord("A"): _read_array,
    ord("F"): _read_table,
    ord("V"): _read_void,
}


# Writing.


def _encode_value(value: Any) -> bytes:
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise TypeError(f"no field type for {type(value).__name__}")
    return writer(value)


def _write_decimal(value: Decimal) -> bytes:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"no field value for {value}")
    scale = max(0, -exponent)
    return b"D" + _DECIMAL.pack(scale, int(value.scaleb(scale)))


def _write_long_string(value: str) -> bytes:
    octets = value.encode("utf-8", "surrogateescape")
    return b"S" + _UINT32.pack(len(octets)) + octets


def _write_sized(letter: bytes) -> Callable[[bytes], bytes]:
    return lambda octets: letter + _UINT32.pack(len(octets)) + octets


def _write_array(values: list[Any]) -> bytes:
    body = b"".join(map(_encode_value, values))
    return b"A" + _UINT32.pack(len(body)) + body


def _write_fixed(letter: bytes, format_: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(">c" + format_).pack
    return lambda value: pack(letter, value)


_WRITERS: Final[dict[type, Callable[[Any], bytes]]] = {
    bool: _write_fixed(b"t", "?"),
    int: _write_fixed(b"l", "q"),
    Int8: _write_fixed(b"b", "b"),
    UInt8: _write_fixed(b"B", "B"),
    Int16: _write_fixed(b"s", "h"),
    UInt16: _write_fixed(b"u", "H"),
    Int32: _write_fixed(b"I", "i"),
    UInt32: _write_fixed(b"i", "I"),
    Int64L: _write_fixed(b"L", "q"),
    Timestamp: _write_fixed(b"T", "Q"),
    float: _write_fixed(b"d", "d"),
    Float32: _write_fixed(b"f", "f"),
    Decimal: _write_decimal,
    str: _write_long_string,
    OctetString: _write_sized(b"S"),
    bytes: _write_sized(b"x"),
    list: _write_array,
    dict: lambda table: b"F" + encode_table(table),
    type(None): lambda _: b"V",
}

"""Field tables: what is decoded encodes to the same bytes, and nothing malformed raises anything but a fault."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq import fieldtable
from pandomq.errors import ConnectionFault
from pandomq.fieldtable import decode_table, encode_table
from pandomq.limits import FIELD_TABLE_DEPTH_MAX
from tests.unit.amqp_values import TABLES, fault_of


def same(left: Any, right: Any) -> bool:
    """Equal in value and in type, all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return struct.pack(">d", left) == struct.pack(">d", right)
    if isinstance(left, Decimal):
        return left.as_tuple() == right.as_tuple()
    return bool(left == right)


def one_entry(value: bytes) -> bytes:
    body = b"\x01k" + value
    return len(body).to_bytes(4, "big") + body


@given(TABLES, st.binary(max_size=5), st.binary(max_size=5))
def test_decoding_undoes_encoding(table: dict[str, Any], before: bytes, after: bytes) -> None:
    encoded = encode_table(table)
    decoded, end = decode_table(before + encoded + after, len(before))
    assert same(decoded, table)
    assert end == len(before) + len(encoded)


@pytest.mark.parametrize(
    ("octets", "value"),
    [
        (b"t\x01", True),
        (b"t\x00", False),
        (b"b\xff", fieldtable.Int8(-1)),
        (b"B\xff", fieldtable.UInt8(255)),
        (b"s\xff\xfe", fieldtable.Int16(-2)),
        (b"u\xff\xfe", fieldtable.UInt16(65534)),
        (b"I\xff\xff\xff\xfd", fieldtable.Int32(-3)),
        (b"i\xff\xff\xff\xfd", fieldtable.UInt32(2**32 - 3)),
        (b"l" + b"\xff" * 8, -1),
        (b"L" + b"\xff" * 8, fieldtable.Int64L(-1)),
        (b"T" + b"\x00" * 7 + b"\x09", fieldtable.Timestamp(9)),
        (b"f\x3f\xc0\x00\x00", fieldtable.Float32(1.5)),
        (b"d\x3f\xf8" + b"\x00" * 6, 1.5),
        (b"D\x02\x00\x00\x00\x7b", Decimal("1.23")),
        (b"D\x05\x00\x00\x00\x00", Decimal("0.00000")),
        (b"D\x01\xff\xff\xff\xff", Decimal("-0.1")),
        (b"S\x00\x00\x00\x02\xc3\xbc", "ü"),
        (b"S\x00\x00\x00\x01\xff", fieldtable.OctetString(b"\xff")),
        (b"x\x00\x00\x00\x02ab", b"ab"),
        (b"A\x00\x00\x00\x03t\x01V", [True, None]),
        (b"F\x00\x00\x00\x04\x01at\x00", {"a": False}),
        (b"V", None),
    ],
)
def test_each_type_has_one_letter_in_both_directions(octets: bytes, value: Any) -> None:
    assert same(decode_table(one_entry(octets))[0], {"k": value})
    assert encode_table({"k": value}) == one_entry(octets)


def test_marked_numbers_compare_like_plain_ones() -> None:
    assert decode_table(one_entry(b"I\x00\x00\x00\x05"))[0] == {"k": 5}
    assert decode_table(one_entry(b"S\x00\x00\x00\x01\xff"))[0] == {"k": b"\xff"}


def test_any_octet_but_zero_is_true() -> None:
    assert decode_table(one_entry(b"t\x07"))[0] == {"k": True}


def test_the_first_of_equal_keys_counts() -> None:
    assert decode_table(b"\x00\x00\x00\x08\x01at\x01\x01at\x00")[0] == {"a": True}


def test_a_decimal_with_a_positive_exponent_is_written_out() -> None:
    assert encode_table({"k": Decimal("1.2E3")}) == one_entry(b"D\x00\x00\x00\x04\xb0")


@pytest.mark.parametrize("value", [object(), (1,), 1j])
def test_a_value_without_a_type_letter_is_a_bug(value: object) -> None:
    with pytest.raises(TypeError):
        encode_table({"k": value})


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity")])
def test_decimals_without_a_value_are_refused(value: Decimal) -> None:
    with pytest.raises(ValueError, match="no field value"):
        encode_table({"k": value})


def test_a_key_that_is_too_long_is_a_bug() -> None:
    encode_table({"k" * 255: 1})
    with pytest.raises(ValueError, match="256 bytes"):
        encode_table({"k" * 256: 1})


@pytest.mark.parametrize(
    "malformed",
    [
        b"",
        b"\x00\x00\x00",
        b"\x00\x00\x00\x01",
        b"\x00\x00\x00\x01\x05",
        b"\x00\x00\x00\x02\x01a",
        one_entry(b"Z"),
        one_entry(b"C\x00"),
        one_entry(b"l\x00"),
        one_entry(b"S\x00\x00"),
        one_entry(b"S\x00\x00\x00\x02a"),
        one_entry(b"S\xff\xff\xff\xff"),
        one_entry(b"A\x00\x00\x00\x05l\x00\x00"),
        # A value that ends within the buffer, but beyond its table.
        one_entry(b"A\x00\x00\x00\x02l\x00") + b"\x00" * 20,
        one_entry(b"I\x00\x00") + b"\x00" * 20,
    ],
)
def test_malformed_tables_are_syntax_errors(malformed: bytes) -> None:
    with pytest.raises(ConnectionFault) as caught:
        decode_table(malformed)
    assert caught.value.reply_code == 502
    assert caught.value.reply_text.startswith("SYNTAX_ERROR - ")


@given(TABLES, st.data())
def test_damaged_tables_decode_or_are_syntax_errors(table: dict[str, Any], data: st.DataObject) -> None:
    damaged = bytearray(encode_table(table))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    decodes_or_faults(bytes(damaged))
    decodes_or_faults(bytes(damaged)[: data.draw(st.integers(0, len(damaged)))])


@given(st.binary(max_size=200))
def test_noise_decodes_or_is_a_syntax_error(noise: bytes) -> None:
    decodes_or_faults(len(noise).to_bytes(4, "big") + noise)


def decodes_or_faults(octets: bytes) -> None:
    fault = fault_of(lambda: decode_table(octets))
    assert fault is None or fault.reply_code == 502


def nested(depth: int, kind: bytes) -> bytes:
    octets = b""
    for _ in range(depth - 1):
        entry = (b"" if kind == b"A" else b"\x01a") + kind + len(octets).to_bytes(4, "big") + octets
        octets = entry
    return one_entry(b"A" + len(octets).to_bytes(4, "big") + octets) if kind == b"A" else one_entry_of(octets)


def one_entry_of(octets: bytes) -> bytes:
    return len(octets).to_bytes(4, "big") + octets


@pytest.mark.parametrize("kind", [b"A", b"F"])
def test_nesting_is_bounded(kind: bytes) -> None:
    decode_table(nested(FIELD_TABLE_DEPTH_MAX - 1, kind))
    with pytest.raises(ConnectionFault, match="nested deeper"):
        decode_table(nested(FIELD_TABLE_DEPTH_MAX + 1, kind))
    with pytest.raises(ConnectionFault, match="nested deeper"):
        decode_table(nested(5000, kind))

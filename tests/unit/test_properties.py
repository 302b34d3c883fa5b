"""Content headers: whole, one property at a time, and rewritten in place."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.errors import ConnectionFault
from pandomq.properties import (
    Properties,
    body_size,
    decode_header,
    encode_header,
    read_headers,
    read_property,
    replace_headers,
)
from tests.unit.amqp_values import PROPERTIES, TABLES, fault_of

SIZES = st.integers(0, 2**64 - 1)


@given(SIZES, PROPERTIES)
def test_decoding_undoes_encoding(size: int, properties: Properties) -> None:
    payload = encode_header(size, properties)
    assert decode_header(payload) == (size, properties)
    assert body_size(payload) == size
    assert encode_header(*decode_header(payload)) == payload


def test_the_bytes_of_a_header() -> None:
    properties = Properties(content_type="a", headers={"k": True}, delivery_mode=2, timestamp=3, cluster_id="z")
    assert encode_header(5, properties) == (
        b"\x00\x3c\x00\x00" + b"\x00" * 7 + b"\x05" + b"\xb0\x44"
        b"\x01a" + b"\x00\x00\x00\x04\x01kt\x01" + b"\x02" + b"\x00" * 7 + b"\x03" + b"\x01z"
    )


@given(PROPERTIES)
def test_one_property_reads_as_it_does_in_the_whole(properties: Properties) -> None:
    payload = encode_header(0, properties)
    for name in Properties.__struct_fields__:
        assert read_property(payload, name) == getattr(properties, name)
    assert read_headers(payload) == (properties.headers or {})


@given(SIZES, PROPERTIES, st.none() | TABLES, st.booleans())
def test_replaced_headers_leave_the_rest(
    size: int, properties: Properties, headers: dict[str, Any] | None, drop_expiration: bool
) -> None:
    replaced = replace_headers(encode_header(size, properties), headers, drop_expiration=drop_expiration)
    expected = msgspec.structs.replace(properties, headers=headers)
    if drop_expiration:
        expected = msgspec.structs.replace(expected, expiration=None)
    assert replaced == encode_header(size, expected)


@pytest.mark.parametrize(
    "malformed",
    [
        b"",
        b"\x00\x3c" + b"\x00" * 11,
        b"\x00\x3c" + b"\x00" * 10 + b"\x00\x01\x00\x00",
        b"\x00\x3c" + b"\x00" * 10 + b"\x80\x00",
        b"\x00\x3c" + b"\x00" * 10 + b"\x80\x00\x05ab",
        b"\x00\x3c" + b"\x00" * 10 + b"\x80\x00\x02abc",
        b"\x00\x3c" + b"\x00" * 10 + b"\x20\x00\x00\x00",
        b"\x00\x3c" + b"\x00" * 10 + b"\x20\x00\x00\x00\x00\x03\x01aZ",
        b"\x00\x3c" + b"\x00" * 10 + b"\x00\x40\x00\x00",
        b"\x00\x3c" + b"\x00" * 10 + b"\x10\x00",
    ],
)
def test_malformed_headers_are_syntax_errors(malformed: bytes) -> None:
    with pytest.raises(ConnectionFault) as caught:
        decode_header(malformed)
    assert caught.value.reply_code == 502


@given(PROPERTIES, st.data())
def test_damaged_headers_decode_or_are_syntax_errors(properties: Properties, data: st.DataObject) -> None:
    damaged = bytearray(encode_header(7, properties))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    payload = bytes(damaged)[: data.draw(st.integers(0, len(damaged)))]
    for read in (decode_header, read_headers, lambda octets: replace_headers(octets, {}, drop_expiration=True)):
        fault = fault_of(partial(read, payload))
        assert fault is None or fault.reply_code == 502


def test_a_property_that_is_too_long_is_a_bug() -> None:
    with pytest.raises(ValueError, match="256 bytes"):
        encode_header(0, Properties(message_id="x" * 256))

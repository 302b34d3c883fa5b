"""Field tables as JSON and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.admin.field_json import amqp_table, json_table, json_text
from pandomq.admin.refusals import Refusal
from pandomq.fieldtable import Float32, Int32, OctetString, Timestamp, UInt8, decode_table, encode_table
from pandomq.limits import FIELD_TABLE_DEPTH_MAX

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=20), values, max_size=5))
def test_values_of_json_are_returned_as_they_were_sent(table: dict[str, Any]) -> None:
    sent = amqp_table(msgspec.json.decode(msgspec.json.encode(table)))
    received, _ = decode_table(encode_table(sent))
    assert msgspec.json.decode(msgspec.json.encode(json_table(received))) == sent


def test_types_that_json_does_not_have() -> None:
    table = {
        "int32": Int32(-5),
        "octet": UInt8(5),
        "time": Timestamp(123),
        "float": Float32(0.5),
        "decimal": Decimal("1.25"),
        "bytes": b"text",
        "octets": OctetString(b"\xff"),
        "deep": [{"inner": Int32(1)}],
    }
    shown = json_table(table)
    assert shown == {
        "int32": -5,
        "octet": 5,
        "time": 123,
        "float": 0.5,
        "decimal": 1.25,
        "bytes": "text",
        "octets": "\N{REPLACEMENT CHARACTER}",
        "deep": [{"inner": 1}],
    }
    assert {type(value) for value in shown.values()} <= {int, float, str, list}
    msgspec.json.encode(shown)


@given(st.binary(max_size=30))
def test_any_octets_can_be_shown(octets: bytes) -> None:
    text = octets.decode("utf-8", "surrogateescape")
    msgspec.json.encode(json_table({text: text}))
    assert json_text("plain") == "plain"


@pytest.mark.parametrize("value", [5, "x", None, [1], {"k": 2**63}, {"k": -(2**63) - 1}, {"k" * 256: 1}])
def test_values_that_no_table_can_hold_are_refused(value: object) -> None:
    with pytest.raises(Refusal) as refused:
        amqp_table(value)
    assert refused.value.status == 400


def test_no_deeper_than_can_be_read() -> None:
    def nested(depth: int) -> Any:
        return {"k": nested(depth - 1)} if depth else 1

    for depth in range(1, FIELD_TABLE_DEPTH_MAX + 5):
        try:
            table = amqp_table(nested(depth))
        except Refusal:
            assert depth > FIELD_TABLE_DEPTH_MAX // 2
            break
        decode_table(encode_table(table))
    else:
        raise AssertionError("there is a limit")

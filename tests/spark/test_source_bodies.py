"""JSON bodies with a schema, compared with decoding each alone; whatever bodies do, each row is its own."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.spark.bodies import decode

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.list_(pa.float64()))])

well_formed = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.text(max_size=6),
        "c": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        "other": st.booleans(),
    },
).map(lambda value: json.dumps(value).encode())
pieces = st.lists(
    st.sampled_from(
        [b"{", b"}", b'{"a":', b"1", b'"a"', b":", b",", b"\n", b" ", b"\0", b'"', b"[", b"]", b"null", b"\xff"]
    ),
    max_size=8,
).map(b"".join)


def decoded(bodies: list[bytes]) -> list[tuple[Any, bytes | None]]:
    values, malformed = decode(pa.array(bodies, pa.binary()), STRUCT)
    assert values.type == STRUCT
    assert malformed.type == pa.binary()
    return list(zip(values.to_pylist(), malformed.to_pylist(), strict=True))


def plain(body: bytes) -> tuple[Any, bytes | None]:
    value = json.loads(body)
    return {name: value.get(name) for name in ("a", "b", "c")}, None


@given(st.lists(well_formed, min_size=1, max_size=6))
def test_bodies_that_are_well_formed(bodies: list[bytes]) -> None:
    assert decoded(bodies) == [plain(body) for body in bodies]


@given(st.lists(well_formed | pieces, min_size=1, max_size=6))
def test_each_body_decodes_as_it_does_alone(bodies: list[bytes]) -> None:
    assert decoded(bodies) == [one for body in bodies for one in decoded([body])]


@given(pieces)
def test_bodies_that_are_not_json_are_malformed(body: bytes) -> None:
    try:
        is_object = isinstance(json.loads(body.decode()), dict)
    except ValueError:
        is_object = False
    if not is_object:
        assert decoded([body]) == [(None, body)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"17",
        b"[]",
        b'{"a": "text"}',
        b'{"a": 1',
        b'{"a": 1} {"a": 2}',
        b'{"a": 1}\n{"a": 2}',
        b'{"a": 1}}',
        b'{"a": 1},{"a": 2}',
        b'{"b": "\xff"}',
        b'{"a": 1}\0',
        b'{"b": "\n"}',
    ],
)
def test_a_malformed_body_is_shown_as_it_came_and_harms_no_other(body: bytes) -> None:
    good = (b'{"a": 1, "b": "x"}', b'{"c": [1.5],\n "unknown": {}}')
    first: Any = {"a": 1, "b": "x", "c": None}
    last: Any = {"a": None, "b": None, "c": [1.5]}
    assert decoded([good[0], body, good[1]]) == [(first, None), (None, body), (last, None)]


def test_bodies_larger_than_a_block_are_read() -> None:
    large = json.dumps({"a": 1, "b": "x" * 3_000_000}).encode()
    assert [value["a"] for value, _ in decoded([large, b'{"a": 2}'])] == [1, 2]


def test_no_bodies() -> None:
    values, malformed = decode(pa.array([], pa.binary()), STRUCT)
    assert len(values) == len(malformed) == 0

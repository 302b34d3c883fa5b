"""The content of the sink's frames, read by another definition of AMQP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.properties import Properties
from pandomq.spark.sink.frames import PART_BYTES, PART_BYTES_MAX, BadRow, FrameEncoder
from tests.spark.staging_double import Published, read_publishes

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = {
    "string": (pa.string(), TEXT),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False).filter(bool)),
    "boolean": (pa.bool_(), st.booleans()),
    "binary": (pa.binary(), st.binary(max_size=20)),
}
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "content_type": TEXT,
        "content_encoding": TEXT,
        "delivery_mode": st.sampled_from(["1", "2"]),
        "priority": st.integers(0, 255).map(str),
        "correlation_id": TEXT,
        "reply_to": TEXT,
        "expiration": st.integers(0).map(str),
        "message_id": TEXT,
        "timestamp": st.integers(0, 2**64 - 1).map(str),
        "type": TEXT,
        "user_id": TEXT,
        "app_id": TEXT,
        "cluster_id": TEXT,
    },
)
NUMBERS = ("delivery_mode", "priority", "timestamp")


def table(**columns: tuple[pa.DataType, list[Any]]) -> pa.RecordBatch:
    arrays = [pa.array(values, kind) for kind, values in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def written(encoder: FrameEncoder, *batches: pa.RecordBatch) -> list[Published]:
    return [message for part in encoder.parts(batches) for message in read_publishes(part)]


def expected_properties(
    given: Mapping[str, str | None], headers: dict[str, Any], defaults: dict[str, str]
) -> Properties:
    said = {name: value for name, value in {**defaults, **given}.items() if value is not None}
    values: dict[str, Any] = {name: int(value) if name in NUMBERS else value for name, value in said.items()}
    return Properties(**values, headers=headers or None)


@given(data=st.data(), kind=st.sampled_from(sorted(VALUES)), cut=st.integers(0, 3))
def test_each_row_is_one_message(data: st.DataObject, kind: str, cut: int) -> None:
    arrow, value = VALUES[kind]
    headers = st.none() | st.dictionaries(TEXT, value | st.none(), max_size=3)
    row = st.tuples(st.binary(max_size=50), st.none() | TEXT, headers, st.none() | PROPERTIES)
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    texts = pa.map_(pa.string(), pa.string())
    batch = table(
        body=(pa.binary(), [body for body, _, _, _ in rows]),
        routing_key=(pa.string(), [key for _, key, _, _ in rows]),
        headers=(pa.map_(pa.string(), arrow), [None if h is None else list(h.items()) for _, _, h, _ in rows]),
        properties=(texts, [None if p is None else list(p.items()) for _, _, _, p in rows]),
    )
    defaults = {"delivery_mode": "2", "content_type": "text/plain"}
    encoder = FrameEncoder("orders", "otherwise", tuple(defaults.items()))
    assert written(encoder, batch.slice(cut)) == [
        Published(
            "orders",
            "otherwise" if key is None else key,
            expected_properties(given or {}, headers or {}, defaults),
            body,
        )
        for body, key, headers, given in rows[cut:]
    ]


@given(bodies=st.lists(TEXT))
def test_text_is_a_body_and_other_columns_may_be_absent(bodies: list[str]) -> None:
    found = written(FrameEncoder("", "letters"), table(body=(pa.string(), bodies)))
    assert found == [Published("", "letters", Properties(), body.encode()) for body in bodies]


def test_large_bodies_are_cut_into_frames_and_parts_have_whole_messages() -> None:
    sizes = [0, 1, 131063, 131064, 131065, 262128, PART_BYTES - 500, PART_BYTES, PART_BYTES_MAX - 2000, 7, 0]
    bodies = [bytes([at]) * size for at, size in enumerate(sizes)]
    parts = list(FrameEncoder("e", "k").parts([table(body=(pa.binary(), bodies))]))
    assert all(len(part) <= PART_BYTES_MAX for part in parts)
    assert [message.body for part in parts for message in read_publishes(part)] == bodies


def test_parts_stay_small_however_small_the_rows() -> None:
    batch = table(body=(pa.binary(), [b""] * 100_000), routing_key=(pa.string(), ["k" * 200] * 100_000))
    parts = list(FrameEncoder("e").parts([batch]))
    assert len(parts) > 5 and all(len(part) < PART_BYTES + 1000 for part in parts)


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        (table(body=(pa.binary(), [b"", None])), "body is null"),
        (table(body=(pa.binary(), [b"x" * PART_BYTES_MAX])), "a body has 8388608 bytes"),
        (table(body=(pa.binary(), [b""]), routing_key=(pa.string(), ["é" * 128])), "routing_key has 256 bytes"),
    ],
)
def test_rows_that_cannot_be_encoded_are_refused(batch: pa.RecordBatch, complaint: str) -> None:
    with pytest.raises(BadRow, match=complaint):
        list(FrameEncoder("e").parts([batch]))


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("colour", "red", "property 'colour' does not exist: expected one of content_type"),
        ("headers", "x", "property 'headers' does not exist"),
        ("priority", "256", "priority is '256': expected a number of at most 255"),
        ("delivery_mode", "-1", "delivery_mode is '-1': expected a number of at most 2"),
        ("timestamp", "yesterday", "timestamp is 'yesterday': expected seconds since 1970"),
        ("type", "t" * 256, "type has 256 bytes"),
    ],
)
def test_a_property_that_makes_no_sense_is_refused(name: str, value: str, complaint: str) -> None:
    batch = table(body=(pa.binary(), [b""]), properties=(pa.map_(pa.string(), pa.string()), [[(name, value)]]))
    with pytest.raises(BadRow, match=complaint):
        list(FrameEncoder("e").parts([batch]))


def test_headers_that_do_not_fit_are_refused_by_name() -> None:
    kind = pa.map_(pa.string(), pa.string())
    with pytest.raises(BadRow, match="field name of 256 bytes"):
        list(FrameEncoder("e").parts([table(body=(pa.binary(), [b""]), headers=(kind, [[("n" * 256, "")]]))]))
    with pytest.raises(BadRow, match="they are limited to a frame"):
        list(FrameEncoder("e").parts([table(body=(pa.binary(), [b""]), headers=(kind, [[("n", "v" * 200_000)]]))]))

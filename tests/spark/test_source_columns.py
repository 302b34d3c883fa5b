"""Chunks as Arrow batches: compared with the chunk read message by message, and with headers decoded one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq import chunk_form
from pandomq.chunk_form import MessageRow
from pandomq.fieldtable import Timestamp
from pandomq.properties import Properties, decode_header, encode_header
from pandomq.spark.columns import COLUMNS, TIME, ChunkReader, RowFilter, Shape
from pandomq.spark.filters import KeyFilter
from pandomq.spark.header_maps import PROPERTY_NAMES, TEXT_MAP, HeaderMaps, header_text

ALL = Shape(tuple(COLUMNS))
PLAIN = encode_header(0, Properties())

names = st.text("abcä", max_size=5)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(width=64)
scalars = st.none() | st.booleans() | numbers | names | st.binary(max_size=4)
tables = st.dictionaries(names, scalars | st.lists(st.integers(0, 5), max_size=2), max_size=3)
properties = st.builds(
    Properties,
    content_type=st.none() | names,
    headers=st.none() | tables,
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    correlation_id=st.none() | names,
    message_id=st.none() | names,
    timestamp=st.none() | st.integers(0, 2**64 - 1).map(Timestamp),
    app_id=st.none() | names,
    cluster_id=st.none() | names,
)
headers = st.builds(encode_header, st.integers(0, 2**40), properties)


def expected(header: bytes) -> tuple[dict[str, str], dict[str, str | None]]:
    _, decoded = decode_header(header)
    known = {name: getattr(decoded, name) for name in PROPERTY_NAMES}
    shown = {name: str(value) for name, value in known.items() if value is not None}
    return shown, {name: header_text(value) for name, value in (decoded.headers or {}).items()}


def found(all_headers: list[bytes]) -> list[tuple[Any, Any]]:
    reader = HeaderMaps(properties=True, tables=True)
    array = pa.array(all_headers, pa.binary())
    shown, decoded = reader.of(array)
    assert reader.of(array) == (shown, decoded)
    assert shown is not None and decoded is not None
    assert shown.type == decoded.type == TEXT_MAP
    shown.validate(full=True)
    decoded.validate(full=True)
    as_dict = [None if one is None else dict(one) for one in (*shown.to_pylist(), *decoded.to_pylist())]
    return list(zip(as_dict[: len(all_headers)], as_dict[len(all_headers) :], strict=True))


@given(st.lists(headers, min_size=1, max_size=8), st.integers(1, 4))
def test_headers_of_many_messages_are_those_of_each(distinct: list[bytes], times: int) -> None:
    several = distinct * times
    assert found(several) == [expected(header) for header in several]


@given(st.lists(headers, min_size=1, max_size=4), headers, st.data())
def test_a_malformed_header_harms_no_other(well_formed: list[bytes], broken: bytes, data: st.DataObject) -> None:
    cut = broken[: data.draw(st.integers(0, len(broken)))] + data.draw(st.binary(max_size=3))
    several = [*well_formed, cut, *well_formed]
    shown = found(several)
    del shown[len(well_formed)]
    assert shown == [expected(header) for header in well_formed] * 2


def test_a_header_that_ends_too_early_or_late_is_null() -> None:
    whole = encode_header(5, Properties(content_type="text/plain", headers={"a": 1}, timestamp=Timestamp(3)))
    for broken in (whole[:-1], whole + b"x", whole[:20], whole[:13], b""):
        assert found([broken]) == [(None, None)]


# Chunks.


def row(offset: int, **fields: Any) -> MessageRow:
    given_fields = {"exchange": b"", "routing_key": b"orders", "header": PLAIN, "body": b"x" * (offset % 7), **fields}
    return MessageRow(offset, 1_700_000_000_000_000 + 1000 * offset, **given_fields)


def batch_of(
    chunk: memoryview, stream: str, first: int, end: int, shape: Shape, wanted: RowFilter | None = None
) -> pa.RecordBatch | None:
    return ChunkReader(stream, shape, wanted).batch(chunk, first, end)


def as_rows(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    names_of = ("offset", "exchange", "routing_key", "body")
    columns = [batch.column(name).to_pylist() for name in names_of]
    times = batch.column("time").cast(pa.int64()).to_pylist()
    return [
        (offset, time, exchange.encode(), key.encode(), body)
        for offset, exchange, key, body, time in zip(*columns, times, strict=True)
    ]


rows_of_chunk = st.lists(
    st.tuples(st.integers(1, 3), st.binary(max_size=40), names, names, headers), min_size=1, max_size=12
)


@given(rows_of_chunk, st.integers(0, 30), st.integers(0, 30))
def test_a_batch_has_the_rows_of_its_chunk_that_are_within_the_range(
    drawn: list[tuple[int, bytes, str, str, bytes]], first: int, size: int
) -> None:
    rows: list[MessageRow] = []
    for gap, body, exchange, key, header in drawn:
        offset = (rows[-1].offset if rows else 0) + gap
        rows.append(MessageRow(offset, offset * 10, exchange.encode(), key.encode(), header, body))
    batch = batch_of(memoryview(chunk_form.encode(rows)), "s", first, first + size, ALL)
    wanted = [one for one in rows if first <= one.offset < first + size]
    if not wanted:
        assert batch is None
        return
    assert batch is not None
    batch.validate(full=True)
    assert as_rows(batch) == [(*one[:4], one.body) for one in wanted]
    assert batch.column("stream").to_pylist() == ["s"] * len(wanted)
    assert [dict(one) for one in batch.column("properties").to_pylist()] == [expected(one.header)[0] for one in wanted]
    assert [dict(one) for one in batch.column("headers").to_pylist()] == [expected(one.header)[1] for one in wanted]


def test_types_are_those_that_spark_wants() -> None:
    batch = batch_of(memoryview(chunk_form.encode([row(1)])), "s", 0, 9, ALL)
    assert batch is not None
    types = [pa.string(), pa.int64(), TIME, pa.string(), pa.string(), TEXT_MAP, TEXT_MAP, pa.binary()]
    assert batch.schema.types == types


def test_only_wanted_columns_are_made_in_the_order_asked_for() -> None:
    batch = batch_of(memoryview(chunk_form.encode([row(1), row(2)])), "s", 0, 9, Shape(("body", "offset")))
    assert batch is not None
    assert batch.to_pydict() == {"body": [b"x", b"xx"], "offset": [1, 2]}


def test_names_that_are_not_text_are_made_readable() -> None:
    rows = [row(1, routing_key=b"\xff\xfe"), row(2, routing_key=b"fine", exchange="ö".encode())]
    batch = batch_of(memoryview(chunk_form.encode(rows)), "s", 0, 9, ALL)
    assert batch is not None
    assert batch.column("routing_key").to_pylist() == ["\ufffd\ufffd", "fine"]
    assert batch.column("exchange").to_pylist() == ["", "ö"]


def test_rows_whose_keys_are_not_wanted_are_left_out() -> None:
    rows = [row(at, routing_key=key) for at, key in enumerate((b"eu.de", b"us.ny", b"eu.fr", b"eu.de"))]
    data = memoryview(chunk_form.encode(rows))
    some = KeyFilter((frozenset({"eu.de", "us.ny"}),), ("eu",))
    batch = batch_of(data, "s", 1, 9, ALL, some)
    assert batch is not None
    assert batch.column("offset").to_pylist() == [3]
    assert batch.column("body").to_pylist() == [b"xxx"]
    assert batch_of(data, "s", 0, 9, ALL, KeyFilter((frozenset({"none"}),))) is None


def test_a_chunk_without_its_end_is_refused() -> None:
    """Its checksum was looked at when it came."""
    data = chunk_form.encode([row(1)])[:-1000]
    with pytest.raises(chunk_form.BadChunk):
        batch_of(memoryview(data), "s", 0, 9, ALL)

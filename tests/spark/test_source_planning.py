"""How a reader decides what to read: options, edges, partitions, limits of a micro-batch, filters."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.data_client.records import IndexedChunk, StreamRange
from pandomq.data_client.urls import parse_urls
from pandomq.spark.admission import limit_bytes, limit_rows, total
from pandomq.spark.filters import take_over
from pandomq.spark.offset_edges import EARLIEST, LATEST, STARTING, Edge
from pandomq.spark.option_values import BadOption, OptionValues
from pandomq.spark.source_options import SourceOptions
from pandomq.spark.splitting import OffsetRange, Weighed, split

URL = "amqp://ann:s3cret-word@127.0.0.1:5672/"


def options(**given_options: str) -> SourceOptions:
    return SourceOptions.of({"url": URL, "stream": "orders", **given_options}, streaming=False)


# Options.


@pytest.mark.parametrize(
    ("given_options", "complaint"),
    [
        ({"stream": "a"}, "url is missing"),
        ({"url": URL}, "the source is missing"),
        ({"url": URL, "stream": "a", "queue": "b"}, "cannot be combined"),
        ({"url": URL, "stream": "a", "startingOffset": "earliest"}, "unknown option startingOffset"),
        ({"url": URL, "stream": "a", "startingOffsets": "first"}, "earliest, latest, or JSON"),
        ({"url": URL, "stream": "a", "startingOffsets": '{"b": 1}'}, "b, which the query does not read"),
        ({"url": URL, "stream": "a", "startingOffsets": '{"a": true}'}, "not an offset"),
        ({"url": URL, "stream": "a", "startingOffsets": "{a"}, "not JSON"),
        ({"url": URL, "stream": "a", "startingTimestamp": "yesterday"}, "neither milliseconds"),
        ({"url": URL, "stream": "a", "minPartitions": "0"}, "at least 1"),
        ({"url": URL, "stream": "a", "failOnDataLoss": "maybe"}, "true or false"),
        ({"url": URL, "stream": "a", "maxOffsetsPerTrigger": "5"}, "streaming"),
        ({"url": URL, "streamPattern": "("}, "regular expression"),
        ({"url": URL, "queue": "a", "lease": "x"}, "readStream"),
        ({"url": URL, "stream": "a", "lease": "x"}, "need option queue"),
        ({"url": URL, "stream": "a", "user": "ann"}, "must be given together"),
        ({"url": URL, "stream": "a", "user": "ann", "password": "p"}, "contains a user already"),
    ],
)
def test_an_option_that_means_nothing_is_refused_with_a_reason(given_options: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint) as refused:
        SourceOptions.of(given_options, streaming=False)
    assert "s3cret" not in str(refused.value)


def test_a_streaming_query_of_a_queue_needs_a_name_for_its_lease() -> None:
    with pytest.raises(BadOption, match="option lease is missing"):
        SourceOptions.of({"url": URL, "queue": "a"}, streaming=True)
    assert SourceOptions.of({"url": URL, "queue": "a", "lease": "x"}, streaming=True).lease == "x"


def test_a_password_may_be_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret:/@\n")
    place = {"url": "amqp://host1/", "stream": "a", "user": "ann"}
    connection = SourceOptions.of({**place, "passwordFile": str(secret)}, streaming=True).connection
    assert parse_urls(connection.urls).login.password == "s3cret:/@"
    for options, complaint in (
        ({**place, "passwordFile": str(tmp_path / "none")}, ": No such file"),
        ({**place, "passwordFile": str(secret), "password": "p"}, "cannot be combined"),
        ({"url": "amqp://host1/", "stream": "a", "passwordFile": str(secret)}, "must be given together"),
    ):
        with pytest.raises(BadOption, match=complaint):
            SourceOptions.of(options, streaming=True)


def test_nothing_that_is_printed_shows_the_password() -> None:
    found = options(startingOffsets="latest")
    assert "s3cret" not in repr(found)
    assert "127.0.0.1:5672" in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found
    apart = SourceOptions.of(
        {"url": "amqp://host1,host2/", "stream": "a", "user": "ann", "password": "s3cret:/@"}, streaming=True
    )
    assert apart.connection.urls == "amqp://ann:s3cret%3A%2F%40@host1,host2/"
    assert "s3cret" not in repr(apart)


# Edges.


class Times:
    def offset_at(self, stream: str, time_us: int) -> int:
        return time_us // 1_000_000


KNOWN = StreamRange(10, 50, 0, 0, 1000)


@pytest.mark.parametrize(
    ("given_options", "found"),
    [
        ({}, {"a": 10, "b": 10}),
        ({"startingOffsets": "latest"}, {"a": 50, "b": 50}),
        ({"startingOffsets": '{"a": 17}'}, {"a": 17, "b": 10}),
        ({"startingOffsets": '{"a": -1, "b": "earliest"}'}, {"a": 50, "b": 10}),
        ({"startingTimestamp": "30000"}, {"a": 30, "b": 30}),
        ({"startingTimestamp": "1970-01-01T00:00:40"}, {"a": 40, "b": 40}),
        ({"startingTimestamp": "1970-01-01T01:00:20+01:00"}, {"a": 20, "b": 20}),
        ({"startingOffsetsByTimestamp": '{"b": 12000}'}, {"a": 10, "b": 12}),
    ],
)
def test_edges(given_options: dict[str, str], found: dict[str, int]) -> None:
    edge = Edge.of(OptionValues(given_options), STARTING, EARLIEST)
    assert {name: edge.resolve(name, KNOWN, Times()) for name in ("a", "b")} == found


def test_an_edge_without_options_is_the_one_of_its_kind() -> None:
    assert Edge.of(OptionValues({}), STARTING, LATEST).resolve("a", KNOWN, Times()) == 50


# Partitions.


@st.composite
def weighed(draw: Any) -> Weighed:
    rows = []
    at = draw(st.integers(0, 100))
    for _ in range(draw(st.integers(1, 20))):
        count = draw(st.integers(1, 500))
        rows.append(IndexedChunk(at, at + count - 1, count, draw(st.integers(count, 100_000)), 0, 0))
        at += count
    first = draw(st.integers(rows[0].first_offset, at - 1))
    return Weighed(OffsetRange(draw(st.sampled_from(["a", "b"])), first, draw(st.integers(first, at))), rows)


@given(st.lists(weighed(), max_size=3), st.integers(1, 12), st.integers(1000, 200_000))
def test_partitions_cover_each_range_once_and_are_as_many_as_wanted(
    several: list[Weighed], pieces_min: int, piece_bytes: int
) -> None:
    pieces = split(several, pieces_min, piece_bytes)
    wanted = [(one.range.stream, offset) for one in several for offset in range(one.range.first, one.range.end)]
    assert [(piece.stream, offset) for piece in pieces for offset in range(piece.first, piece.end)] == wanted
    # Ranges that are smaller than the number of pieces they should have cannot have it.
    assert len(pieces) >= min(pieces_min, *(one.range.end - one.range.first for one in several), 1) if several else True


def test_partitions_are_cut_between_chunks_where_that_is_near_enough() -> None:
    rows = [IndexedChunk(at * 100, at * 100 + 99, 100, 1_000, 0, 0) for at in range(10)]
    assert split([Weighed(OffsetRange("a", 0, 1000), rows)], 4, 10**9) == [
        OffsetRange("a", 0, 300),
        OffsetRange("a", 300, 500),
        OffsetRange("a", 500, 800),
        OffsetRange("a", 800, 1000),
    ] or all(piece.first % 100 == 0 for piece in split([Weighed(OffsetRange("a", 0, 1000), rows)], 4, 10**9))
    # One chunk alone is cut within.
    assert [piece.first for piece in split([Weighed(OffsetRange("a", 0, 100), rows)], 4, 10**9)] == [0, 25, 50, 75]
    # Large ranges have more partitions than were asked for.
    assert len(split([Weighed(OffsetRange("a", 0, 1000), rows)], 1, 2_000)) == 5


# Limits.


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(0, 1000), min_size=1), st.integers(1, 2000))
def test_a_limit_in_rows_is_used_up_and_shared(waiting: dict[str, int], rows: int) -> None:
    backlog = {name: OffsetRange(name, 7, 7 + count) for name, count in waiting.items()}
    limited = limit_rows(backlog, rows)
    assert total(limited) == min(rows, total(backlog))
    for name, one in limited.items():
        assert one.first == 7 and one.end <= backlog[name].end
        exact = waiting[name] * min(rows, total(backlog)) / max(1, total(backlog))
        assert abs(one.end - one.first - exact) <= 1


def test_a_limit_in_bytes_cuts_within_a_chunk_and_lets_one_message_pass() -> None:
    rows = [IndexedChunk(0, 99, 100, 1_000, 0, 0), IndexedChunk(100, 199, 100, 5_000, 0, 0)]
    whole = OffsetRange("a", 0, 200)
    assert limit_bytes(whole, rows, 6_000) == whole
    assert limit_bytes(whole, rows, 3_500).end == 150
    assert limit_bytes(whole, rows, 500).end == 50
    assert limit_bytes(whole, rows, 1).end == 1
    assert limit_bytes(OffsetRange("a", 90, 200), rows, 100).end == 100


# Filters.


def condition(kind: str, column: str, value: object = None) -> Any:
    made: Any = type(kind, (SimpleNamespace,), {})
    return made(attribute=(column,), value=value) if value is not None else made(attribute=(column,))


def test_conditions_on_offsets_times_streams_and_keys_are_taken_over_and_no_others() -> None:
    moment = datetime(2026, 11, 16, 3, tzinfo=UTC)
    taken = [
        condition("GreaterThan", "offset", 10),
        condition("LessThanOrEqual", "offset", 20),
        condition("GreaterThanOrEqual", "time", moment),
        condition("In", "stream", ("a", "b", None)),
        condition("EqualTo", "stream", "b"),
        condition("IsNotNull", "routing_key"),
        condition("StringStartsWith", "routing_key", "eu."),
    ]
    left = [
        condition("EqualTo", "exchange", "x"),
        condition("Not", "offset", 3),
        condition("StringEndsWith", "routing_key", ".gb"),
        condition("GreaterThan", "routing_key", "x"),
    ]
    narrowing, remaining = take_over([*taken, *left])
    assert remaining == left
    assert (narrowing.first_offset, narrowing.end_offset) == (11, 21)
    assert narrowing.first_us == int(moment.timestamp()) * 1_000_000
    assert narrowing.end_us is None
    assert narrowing.streams == frozenset({"b"})
    assert narrowing.keys.prefixes == ("eu.",)

"""Batches of trace events: what is decoded is what was encoded, and nothing else is taken for a batch."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.trace_form import (
    COLUMNS,
    EVENT_BYTES,
    HEAD,
    UNKNOWN_US,
    BadTrace,
    Event,
    Events,
    Kind,
    Reason,
    cluster_event,
    decode_events,
    encode_events,
    is_sampled,
    sample_threshold,
)

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
of_messages = st.builds(
    Event,
    kind=st.sampled_from([kind for kind in Kind if kind != Kind.CLUSTER]),
    reason=st.sampled_from(Reason),
    time_us=st.integers(0, 2**62),
    queue=names,
    queue_id=st.integers(0, 2**64 - 1),
    sequence=st.integers(0, 2**64 - 1),
    exchange=names,
    routing_key=names,
    consumer_tag=names,
    connection=names,
    size=st.integers(0, 2**32 - 1),
    since_us=st.integers(UNKNOWN_US, 2**62),
    text=st.just(""),
    held_us=st.integers(UNKNOWN_US, 2**62),
)
of_clusters = st.builds(
    cluster_event,
    time_us=st.integers(0, 2**62),
    name=st.sampled_from(["elected", "in-sync"]),
    facts=st.dictionaries(st.sampled_from(["broker", "term"]), st.one_of(names, st.integers())),
)


def batch_of(rows: list[Event]) -> Events:
    events = Events("n1", term=3, number=7, dropped=2, sample=0.01)
    for row in rows:
        events.add(row)
    return events


@given(st.lists(st.one_of(of_messages, of_clusters), max_size=20))
def test_events_are_decoded_as_they_were_encoded(rows: list[Event]) -> None:
    decoded = decode_events(encode_events(batch_of(rows)))
    assert list(decoded.rows()) == rows
    assert (decoded.broker, decoded.term, decoded.number) == ("n1", 3, 7)
    assert (decoded.dropped, decoded.sample) == (2, 0.01)


def test_the_form_is_the_documented_one() -> None:
    row = Event(Kind.ACKED, Reason.NONE, 5, "q", 9, 4, "x", "k", "c", "peer", 10, 1, held_us=2)
    body = encode_events(batch_of([row]))
    assert HEAD.size == 64
    assert body[:5] == b"PTRC\x01"
    assert body[64:114] == bytes.fromhex(
        "0500000000000000 0400000000000000 0100000000000000 0200000000000000 0a000000 01000000 01000000 01000000 07 00"
    )
    tables = b"\x02\x00n1" + b"\x09" + 7 * b"\x00" + b"\x01\x00q" + b"\x01x\x01k" + b"\x04\x00peer\x01c"
    assert body[114:] == tables


def test_a_column_is_as_wide_as_its_type() -> None:
    events = batch_of([])
    widths = {name: getattr(events, name).itemsize for name, _ in COLUMNS}
    assert sum(widths.values()) == EVENT_BYTES
    assert all(getattr(events, name).typecode == code for name, code in COLUMNS)


def test_a_cluster_event_has_its_facts_as_json() -> None:
    decoded = decode_events(encode_events(batch_of([cluster_event(8, "elected", {"broker": "n2", "term": 4})])))
    (row,) = decoded.rows()
    assert row.kind == Kind.CLUSTER
    assert json.loads(row.text) == {"event": "elected", "broker": "n2", "term": 4}


def test_names_that_are_no_utf_8_survive() -> None:
    name = b"\xff".decode("utf-8", "surrogateescape")
    row = Event(Kind.PUBLISHED, Reason.NONE, 5, name, 9, 4, name, name, name, name, 10, 1, "")
    assert list(decode_events(encode_events(batch_of([row]))).rows()) == [row]


@pytest.mark.parametrize("cut", [1, 10, 50, 100])
def test_truncated_or_extended_data_are_no_batch(cut: int) -> None:
    body = encode_events(batch_of([cluster_event(8, "elected", {"broker": "n2"})]))
    with pytest.raises(BadTrace):
        decode_events(body[:-cut])
    with pytest.raises(BadTrace):
        decode_events(body + b"\x00" * cut)


@pytest.mark.parametrize(("place", "octet"), [(0, 0), (4, 2), (100, 9), (112, 99), (112, 0), (113, 9)])
def test_impossible_values_are_no_batch(place: int, octet: int) -> None:
    row = Event(Kind.DELIVERED, Reason.NONE, 5, "q", 9, 4, "x", "k", "c", "peer", 10, 1, "")
    body = bytearray(encode_events(batch_of([row])))
    body[place] = octet
    with pytest.raises(BadTrace):
        decode_events(bytes(body))


@given(st.binary(max_size=200))
def test_other_bytes_are_no_batch(body: bytes) -> None:
    with pytest.raises(BadTrace):
        decode_events(body)


def test_samples_are_even() -> None:
    threshold = sample_threshold(0.01)
    sampled = [sequence for sequence in range(100_000) if is_sampled(sequence, threshold)]
    assert 990 <= len(sampled) <= 1010
    gaps = {after - before for before, after in pairwise(sampled)}
    assert max(gaps) < 250
    assert len({sequence % 100 for sequence in sampled}) > 50


def test_the_whole_is_sampled_whole() -> None:
    threshold = sample_threshold(1)
    assert all(is_sampled(sequence, threshold) for sequence in range(10_000))


@pytest.mark.parametrize("sample", [0, -0.1, 1.01, float("nan")])
def test_a_sample_is_a_part(sample: float) -> None:
    with pytest.raises(ValueError, match="a sample must be"):
        sample_threshold(sample)

"""Messages and the replica's own entries survive their bytes; other bytes are refused."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.kernel.records import VERSION as BROKER_VERSION
from pandomq.replica.members.membership import Member, Membership
from pandomq.replica.protocol.entries import (
    OWN_FIRST,
    EpochBegins,
    LearnerAdmitted,
    LogEntry,
    Members,
    OwnEntry,
    TermBegins,
    decode_entry,
    encode_entry,
    is_own,
)
from pandomq.replica.protocol.messages import BadMessage, Probe, ProbeAnswer, ReplicaMessage, decode, encode
from pandomq.replica.protocol.position import Position
from pandomq.replica.record import Record, decode_record, encode_record

numbers = st.integers(0, 2**63 - 1)
texts = st.text(max_size=20)
fields = {
    "epoch": numbers,
    "term": numbers,
    "end": st.builds(Position, numbers, numbers, numbers),
    "entries": st.lists(st.builds(LogEntry, numbers, st.binary(max_size=50)), max_size=4).map(tuple),
    "payload": st.none() | st.binary(max_size=50),
    "wanted": st.none() | numbers,
    "root": st.none() | texts,
}


def example(kind: type[ReplicaMessage]) -> st.SearchStrategy[ReplicaMessage]:
    plain = {"int": numbers, "str": texts, "bool": st.booleans(), "bytes": st.binary(max_size=50)}
    values = {}
    for field in msgspec.structs.fields(kind):
        name = getattr(field.type, "__name__", "")
        values[field.name] = fields[field.name] if field.name in fields else plain.get(name, numbers)
    return st.builds(kind, **values)


@given(st.one_of([example(kind) for kind in get_args(ReplicaMessage)]))
def test_a_message_survives_its_bytes(message: ReplicaMessage) -> None:
    assert decode(encode(message)) == message


OLDER: list[tuple[ReplicaMessage, int]] = [
    (Probe(1, "id", Term(2), 7), 2),
    (ProbeAnswer(1, "id", Term(2), 7, Position(1, Term(2), LogIndex(3)), None, True), 3),
]
"""Messages to which fields were added at the end, as brokers of the version before say them, and how many were."""


@pytest.mark.parametrize(("message", "added"), OLDER, ids=lambda one: type(one).__name__)
def test_a_message_of_the_version_before_is_read_and_reads_the_same_there(message: ReplicaMessage, added: int) -> None:
    data = encode(message)
    fields: list[Any] = msgspec.msgpack.decode(data[1:])
    older = data[:1] + msgspec.msgpack.encode(fields[:-added])
    assert decode(older) == message
    names = [field.encode_name for field in msgspec.structs.fields(message)[:-added]]
    before = msgspec.defstruct("Before", names, array_like=True, tag=fields[0])
    read = msgspec.msgpack.decode(data[1:], type=before)
    assert [getattr(read, name) for name in names] == fields[1:-added]


def test_a_record_of_the_version_before_is_read() -> None:
    """It knows of no epoch that was about to begin."""
    record = Record(joining=True)
    fields: dict[str, object] = msgspec.msgpack.decode(encode_record(record))
    del fields["claim"]
    assert decode_record(msgspec.msgpack.encode(fields)) == record


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_refused_in_one_way(data: bytes) -> None:
    for candidate in (data, b"\1" + data):
        try:
            decode(candidate)
        except BadMessage:
            continue


@pytest.mark.parametrize("data", [b"", b"\2", b"\1", b"\1\x93\1\2"])
def test_such_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(data)


ENTRIES: list[OwnEntry] = [
    TermBegins(NodeName("a")),
    Members(Membership((Member(NodeName("a"), "host:1"),), (Member(NodeName("b"), "host:2"),))),
    EpochBegins(3, "id", Membership((Member(NodeName("a")),)), (NodeName("b"),)),
    LearnerAdmitted(NodeName("c"), 2**62),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_an_own_entry_is_decoded_as_encoded_and_differs_from_a_brokers(entry: OwnEntry) -> None:
    payload = encode_entry(entry)
    assert is_own(payload) and decode_entry(payload) == entry


def test_an_entry_of_a_broker_is_not_ours() -> None:
    assert BROKER_VERSION < OWN_FIRST
    assert decode_entry(bytes((BROKER_VERSION,)) + b"anything") is None
    assert decode_entry(b"") is None


def test_an_entry_of_a_newer_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="newer broker"):
        decode_entry(b"\xff\x00")


def test_logs_compare_by_epoch_then_term_then_index() -> None:
    ordered = [
        Position(0, Term(0), LogIndex(0)),
        Position(0, Term(1), LogIndex(9)),
        Position(0, Term(2), LogIndex(3)),
        Position(1, Term(1), LogIndex(1)),
    ]
    assert sorted([ordered[2], ordered[0], ordered[3], ordered[1]]) == ordered

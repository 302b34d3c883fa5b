"""A log entry without its messages has its commands, in order, and its time."""

from __future__ import annotations

from types import ModuleType

import hypothesis
import hypothesis.strategies as st
import pytest

from pandomq.kernel.records import (
    ENTRY_START,
    VERSION,
    BadEntry,
    CommandRecord,
    decode_entry,
    encode_command,
    encode_dequeue,
    encode_enqueue,
)

COMMANDS = st.binary(max_size=20).map(encode_command)
MESSAGES = st.builds(
    encode_enqueue,
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=3),
    st.binary(max_size=9),
    st.binary(max_size=9),
    st.binary(max_size=30),
)
SETTLEMENTS = st.builds(encode_dequeue, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
RECORDS = st.lists(COMMANDS | MESSAGES | SETTLEMENTS, max_size=8)


def entry_of(records: list[bytes], now_ms: int = 7) -> bytes:
    return ENTRY_START.pack(VERSION, now_ms, len(records)) + b"".join(records)


@hypothesis.given(records=RECORDS, now_ms=st.integers(0, 2**63))
def test_the_commands_stay_in_their_order(
    plain: ModuleType, fast: ModuleType, records: list[bytes], now_ms: int
) -> None:
    entry = entry_of(records, now_ms)
    excerpt = plain.without_messages(entry)
    commands = tuple(record for record in decode_entry(entry).records if isinstance(record, CommandRecord))
    assert (decode_entry(excerpt).now_ms, decode_entry(excerpt).records) == (now_ms, commands)
    assert fast.without_messages(entry) == excerpt
    assert fast.without_messages(excerpt) == plain.without_messages(excerpt) == excerpt


def test_without_commands_only_the_time_is_left(kernel: ModuleType) -> None:
    entry = entry_of([encode_enqueue([(1, 2)], b"r", b"h", b"body"), encode_dequeue(1, 2, 1)])
    assert kernel.without_messages(entry) == entry_of([])


@hypothesis.given(records=RECORDS, cut=st.integers(0, 40), more=st.binary(max_size=2))
def test_malformed_entries_are_refused_by_both_twins(
    plain: ModuleType, fast: ModuleType, records: list[bytes], cut: int, more: bytes
) -> None:
    entry = entry_of(records)
    damaged = entry[: max(len(entry) - cut, 0)] + more
    outcomes = []
    for twin in (plain, fast):
        try:
            outcomes.append(twin.without_messages(damaged))
        except BadEntry as bad:
            outcomes.append(type(bad))
    assert outcomes[0] == outcomes[1]


def test_an_entry_of_another_version_is_refused(kernel: ModuleType) -> None:
    with pytest.raises(BadEntry):
        kernel.without_messages(bytes((VERSION + 1,)) + entry_of([])[1:])

"""Bodies are found where they are, and nowhere in what is none of ours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pandomq.chunk_form import MessageRow, encode
from pandomq.kernel.bodies import SHORT_BYTES, entry_bodies, page_bodies
from pandomq.kernel.constants import NEVER_MS
from pandomq.kernel.plain import page_form
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.ring import RingEntry
from pandomq.kernel.records import ENTRY_START, VERSION, encode_command, encode_dequeue, encode_enqueue

short = st.binary(max_size=40)
contents = st.lists(st.tuples(short, short, st.binary(max_size=300)), min_size=1, max_size=12)


@given(contents, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.booleans()), min_size=12, max_size=12))
def test_bodies_in_pages_are_found(
    messages: list[tuple[bytes, bytes, bytes]], more: list[tuple[int, int, bool]]
) -> None:
    entries = []
    for place, (message, (deadline, count, redelivered)) in enumerate(zip(messages, more, strict=False)):
        entry = RingEntry(Message(*message), 7 + place, count, NEVER_MS - deadline)
        entry.delivery_count, entry.redelivered = count, redelivered
        entries.append(entry)
    blob = page_form.encode(entries)
    found = [blob[offset : offset + length] for offset, length in page_bodies(blob)]
    assert found == [body for _, _, body in messages]
    assert page_bodies(blob[:-1]) == [] or not messages[-1][2]
    assert page_bodies(blob + b"x") == []


@given(contents)
def test_bodies_in_entries_are_found(messages: list[tuple[bytes, bytes, bytes]]) -> None:
    records = [encode_enqueue([(1, 2), (3, 4)], *message) for message in messages]
    records += [encode_dequeue(1, 2, 3), encode_command(b"a command")]
    entry = ENTRY_START.pack(VERSION, 5, len(records)) + b"".join(records)
    assert [entry[offset : offset + length] for offset, length in entry_bodies(entry)] == [
        body for _, _, body in messages
    ]
    assert entry_bodies(entry + b"x") == []


@given(st.binary(max_size=200))
def test_foreign_data_has_no_bodies_that_reach_beyond_its_end(data: bytes) -> None:
    for extents in (page_bodies(data), entry_bodies(data)):
        assert all(offset + length <= len(data) for offset, length in extents)


@given(contents)
def test_bodies_in_chunks_are_found(messages: list[tuple[bytes, bytes, bytes]]) -> None:
    rows = [MessageRow(place, 0, b"x", key, header, body) for place, (key, header, body) in enumerate(messages)]
    blob = encode(rows)
    found = [blob[offset : offset + length] for offset, length in page_bodies(blob)]
    bodies = [body for _, _, body in messages]
    short = sum(map(len, bodies)) < SHORT_BYTES * len(bodies)
    assert found == ([b"".join(bodies)] if short else bodies)
    assert page_bodies(blob[:-1]) == page_bodies(blob[:100]) == []

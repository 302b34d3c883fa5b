"""Bodies are found in a snapshot's stream, however it is cut into pieces."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pandomq.broker.log.snapshot import LENGTH, CommandPart, KeptMessage, Part, QueueMark
from pandomq.broker.log.snapshot_bodies import StreamBodies

parts = st.lists(
    st.one_of(
        st.builds(CommandPart, st.binary(max_size=40)),
        st.builds(QueueMark, st.integers(0, 9), st.integers(0, 9)),
        st.builds(KeptMessage, st.just([(1, 2, 3, 4, 5, True)]), st.binary(), st.binary(), st.binary(max_size=400)),
    ),
    max_size=12,
)


@given(parts, st.integers(1, 200))
def test_all_bodies_of_a_snapshot_are_found(stream_parts: list[Part], piece_bytes: int) -> None:
    encoded = [msgspec.msgpack.encode(part) for part in stream_parts]
    stream = b"".join(LENGTH.pack(len(record)) + record for record in encoded)
    finder = StreamBodies()
    extents = []
    for start in range(0, len(stream), piece_bytes):
        extents += finder(stream[start : start + piece_bytes])
    found = [stream[offset : offset + length] for offset, length in extents]
    assert found == [part.body for part in stream_parts if isinstance(part, KeptMessage)]


def test_a_file_that_is_no_snapshot_stream_has_no_bodies() -> None:
    assert StreamBodies()(b"\x04\0\0\0none of ours") == []

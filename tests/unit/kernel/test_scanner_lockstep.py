"""Both scanners give the same for any bytes in any reads."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import hypothesis
import hypothesis.strategies as st

from tests.support.examples import examples
from tests.unit.kernel.frames import ack, frame, header_payload, nack, properties, publish, publish_method
from tests.unit.kernel.test_scanner import CONVERSATION, FLOW, HEARTBEAT, flat

CHANNELS = st.integers(0, 3)
KEYS, BITS, CHUNKS = st.binary(max_size=5), st.integers(0, 7), st.integers(1, 20)
BODIES = st.binary(max_size=30)
PIECES = st.one_of(
    st.builds(
        publish, st.binary(max_size=5), BODIES, channel=CHANNELS, bits=st.integers(0, 7), chunk=st.integers(1, 20)
    ),
    st.builds(publish, st.just(b"k"), BODIES, st.just(properties(priority=1)), channel=st.just(1)),
    st.builds(ack, st.integers(0, 2**64 - 1), st.booleans(), channel=CHANNELS),
    st.builds(nack, st.integers(0, 9), st.booleans(), st.booleans(), channel=CHANNELS),
    st.builds(frame, st.just(1), CHANNELS, st.builds(publish_method, st.binary(max_size=3))),
    st.builds(frame, st.just(2), CHANNELS, st.builds(header_payload, st.integers(0, 40))),
    st.builds(frame, st.just(3), CHANNELS, BODIES),
    st.builds(frame, st.sampled_from([0, 1, 2, 3, 8, 9]), CHANNELS, st.binary(max_size=20)),
    st.sampled_from([FLOW, HEARTBEAT, CONVERSATION]),
    st.binary(max_size=12),
)


@hypothesis.settings(max_examples=examples(300))
@hypothesis.given(
    pieces=st.lists(PIECES, max_size=12),
    cuts=st.lists(st.integers(0, 600), max_size=6),
    frame_max=st.sampled_from([0, 16, 4096]),
    body_size_max=st.sampled_from([10, 1000]),
)
def test_same_bytes_same_outputs(
    plain: ModuleType, fast: ModuleType, pieces: list[bytes], cuts: list[int], frame_max: int, body_size_max: int
) -> None:
    data = b"".join(pieces)
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    one, other = (kernel.Scanner(frame_max, body_size_max) for kernel in (plain, fast))
    for start, end in pairwise(places):
        assert flat(fast, other.feed(data[start:end])) == flat(plain, one.feed(data[start:end]))
        assert other.buffered_bytes == one.buffered_bytes


@hypothesis.settings(max_examples=examples(300))
@hypothesis.given(at=st.integers(0, len(CONVERSATION) - 1), octet=st.integers(0, 255), cut=st.integers(0, 600))
def test_one_wrong_octet(plain: ModuleType, fast: ModuleType, at: int, octet: int, cut: int) -> None:
    data = CONVERSATION[:at] + bytes((octet,)) + CONVERSATION[at + 1 :]
    one, other = (kernel.Scanner(4096, 1 << 20) for kernel in (plain, fast))
    for part in (data[:cut], data[cut:]):
        assert flat(fast, other.feed(part)) == flat(plain, one.feed(part))

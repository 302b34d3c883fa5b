"""The input from another broker: deliveries, confirms, and other methods with content."""

from __future__ import annotations

import struct
from itertools import pairwise
from types import ModuleType
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from tests.support.examples import examples
from tests.unit.kernel.frames import (
    ack,
    deliver,
    deliver_method,
    frame,
    get_ok_method,
    header_payload,
    nack,
    properties,
    publish,
    return_method,
    routing,
    with_content,
)
from tests.unit.kernel.test_scanner import FLOW, HEARTBEAT, flat

PROPS = properties(priority=2)


def scan(kernel: ModuleType, *reads: bytes, frame_max: int = 4096, body_size_max: int = 1 << 20) -> list[Any]:
    scanner = kernel.Scanner(frame_max, body_size_max, inward=True)
    return flat(kernel, [output for data in reads for output in scanner.feed(data)])


def arrived(consumer: bytes, tag: int, body: bytes, redelivered: bool = False, channel: int = 1) -> tuple[Any, ...]:
    return (channel, consumer, tag, redelivered, routing(b"k"), header_payload(len(body)), body)


CONVERSATION = b"".join(
    (
        deliver(b"one", 1, b"a"),
        deliver(b"one", 2, b"b", redelivered=True),
        deliver(b"", 3, b"", PROPS, channel=2, key=b"long.key", exchange=b"x"),
        ack(7, True),
        HEARTBEAT,
        with_content(return_method(b"k", b"x"), b"back", PROPS, 3, 1 << 20),
        with_content(get_ok_method(9, True), b"got" * 9, PROPS, 3, 5),
        deliver(b"other", 2**64 - 1, b"long" * 30, chunk=7),
        nack(8, False, False, channel=9),
        FLOW,
        deliver(b"one", 4, b"c"),
    )
)


def test_deliveries_become_runs(kernel: ModuleType) -> None:
    scanner = kernel.Scanner(4096, 1 << 20, inward=True)
    data = deliver(b"one", 5, b"a") + deliver(b"two", 6, b"b", redelivered=True) + ack(1) + deliver(b"two", 7, b"")
    one, confirms, two = scanner.feed(data)
    assert flat(kernel, [one]) == [arrived(b"one", 5, b"a"), arrived(b"two", 6, b"b", True)]
    assert flat(kernel, [two]) == [arrived(b"two", 7, b"")]
    assert list(confirms) == [(1, 80, 1, False, False)]
    assert (one[-1][2], one[0][4].routing_key, one[0][4].body_size) == (6, "k", 1)
    with pytest.raises(IndexError):
        one[2]


def test_returns_and_get_oks_have_their_contents(kernel: ModuleType) -> None:
    for method in (return_method(b"k", b"x"), get_ok_method(3)):
        (content,) = kernel.Scanner(4096, 1 << 20, inward=True).feed(with_content(method, b"body", PROPS, 5, 2))
        assert (content.channel, content.payload, content.message.body) == (5, method, b"body")
        assert (content.message.routing_key, content.message.priority) == ("k", 2)


def test_any_cut_gives_the_same(kernel: ModuleType) -> None:
    whole = scan(kernel, CONVERSATION)
    for cut in range(len(CONVERSATION)):
        assert scan(kernel, CONVERSATION[:cut], CONVERSATION[cut:]) == whole


def test_methods_that_wait_for_their_content_are_counted(kernel: ModuleType) -> None:
    for method, kept in (
        (deliver_method(b"tag", key=b"key"), 3 + 5),
        (return_method(b"key"), len(return_method(b"key")) + 5),
    ):
        scanner = kernel.Scanner(4096, 1 << 20, inward=True)
        assert scanner.feed(frame(1, 1, method)) == []
        assert scanner.buffered_bytes == kept


def test_publishes_are_for_the_root(kernel: ModuleType) -> None:
    """They come as a frame; their content is out of place."""
    first, fault = scan(kernel, publish(b"k", b"x"))
    assert (first.kind, fault.reply_code) == (1, 505)


@pytest.mark.parametrize("method", [deliver_method(b"c", key=b"k"), return_method(), get_ok_method()])
def test_methods_that_cannot_be_read(kernel: ModuleType, method: bytes) -> None:
    ids = struct.unpack_from(">HH", method)
    for wrong in [*(method[:end] for end in range(4, len(method))), method + b"x"]:
        (fault,) = scan(kernel, frame(1, 1, wrong))
        assert (fault.reply_code, fault.class_id, fault.method_id) == (501, *ids)
    (fault,) = scan(kernel, frame(1, 0, method))
    assert (fault.reply_code, fault.class_id, fault.method_id) == (504, *ids)


def test_a_body_that_is_too_large_ends_it(kernel: ModuleType) -> None:
    (fault,) = scan(kernel, deliver(b"c", 1, b"x" * 11), body_size_max=10)
    assert fault.reply_code == 501
    assert len(scan(kernel, deliver(b"c", 1, b"x" * 10), body_size_max=10)) == 1


CHANNELS, BODIES, CHUNKS = st.integers(0, 3), st.binary(max_size=30), st.integers(1, 20)
TAGS = st.integers(0, 2**64 - 1)
METHODS = st.one_of(
    st.builds(deliver_method, st.binary(max_size=9), TAGS, st.booleans(), st.binary(max_size=5), st.binary(max_size=3)),
    st.builds(return_method, st.binary(max_size=5), st.binary(max_size=3), st.binary(max_size=4)),
    st.builds(get_ok_method, TAGS, st.booleans(), st.binary(max_size=5)),
)
PIECES = st.one_of(
    st.builds(deliver, st.sampled_from([b"a", b"b", b""]), TAGS, BODIES, channel=CHANNELS, chunk=CHUNKS),
    st.builds(with_content, METHODS, BODIES, st.sampled_from([properties(), PROPS]), CHANNELS, CHUNKS),
    st.builds(frame, st.just(1), CHANNELS, METHODS),
    st.builds(
        lambda method, cut, channel: frame(1, channel, method[: 4 + cut]), METHODS, st.integers(0, 30), st.just(1)
    ),
    st.builds(ack, TAGS, st.booleans(), channel=CHANNELS),
    st.builds(frame, st.sampled_from([0, 1, 2, 3, 8, 9]), CHANNELS, st.binary(max_size=20)),
    st.builds(publish, st.just(b"k"), BODIES),
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
    one, other = (kernel.Scanner(frame_max, body_size_max, True) for kernel in (plain, fast))
    for start, end in pairwise(places):
        assert flat(fast, other.feed(data[start:end])) == flat(plain, one.feed(data[start:end]))
        assert other.buffered_bytes == one.buffered_bytes


@hypothesis.settings(max_examples=examples(300))
@hypothesis.given(at=st.integers(0, len(CONVERSATION) - 1), octet=st.integers(0, 255), cut=st.integers(0, 600))
def test_one_wrong_octet(plain: ModuleType, fast: ModuleType, at: int, octet: int, cut: int) -> None:
    data = CONVERSATION[:at] + bytes((octet,)) + CONVERSATION[at + 1 :]
    one, other = (kernel.Scanner(4096, 1 << 20, True) for kernel in (plain, fast))
    for part in (data[:cut], data[cut:]):
        assert flat(fast, other.feed(part)) == flat(plain, one.feed(part))

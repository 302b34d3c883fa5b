"""However the octets are cut into pieces, the same comes of them; and whatever they are, nothing breaks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pandomq.kernel import Scanner
from pandomq.methods import (
    BasicAck,
    BasicNack,
    BasicPublish,
    BasicReject,
    ChannelOpen,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionUpdateSecret,
    QueueDeclare,
)
from pandomq.properties import Properties, encode_header
from pandomq.wire.codec import HEARTBEAT, encode_content, encode_frame
from tests.unit.amqp_values import METHOD_INSTANCES, instances
from tests.unit.wire.peer import HEADER, Conversation, body_frame, converse, open_vhost, start_ok, tune_ok

CLOSE_OK = b"\x00\x0a\x00\x33"
CLOSE_OK_FRAME = encode_frame(0, ConnectionCloseOk())
HANDSHAKE = HEADER + start_ok() + tune_ok() + open_vhost()
PIECES_OF_CONVERSATION = st.one_of(
    st.sampled_from(
        [
            HEADER,
            start_ok(),
            start_ok("FOO"),
            tune_ok(),
            tune_ok(channel_max=0),
            open_vhost(),
            HEARTBEAT,
            encode_frame(1, ChannelOpen()),
            encode_frame(1, QueueDeclare("q")),
            encode_frame(0, QueueDeclare("q")),
            encode_frame(0, ConnectionClose(200, "bye", 0, 0)),
            encode_frame(0, ConnectionCloseOk()),
            encode_frame(0, ConnectionUpdateSecret(b"s", "")),
            body_frame(b"x" * 100),
        ]
    ),
    st.builds(encode_frame, st.integers(0, 3), METHOD_INSTANCES),
    st.binary(max_size=30),
)
PUBLISHES = st.builds(
    lambda channel, key, body, frame_max: encode_content(
        channel, BasicPublish("", key), encode_header(len(body), Properties(delivery_mode=2)), body, frame_max
    ),
    st.integers(1, 3),
    st.text(max_size=5),
    st.binary(max_size=200),
    st.integers(20, 100),
)
SETTLEMENTS = st.builds(
    encode_frame, st.integers(1, 3), instances(BasicAck) | instances(BasicNack) | instances(BasicReject)
)
STREAMS = st.builds(
    lambda start, rest: start + b"".join(rest),
    st.sampled_from([b"", HEADER, HEADER + start_ok(), HANDSHAKE, HANDSHAKE]),
    st.lists(PIECES_OF_CONVERSATION, max_size=8),
)


def same(stream: bytes, left: Conversation, right: Conversation) -> bool:
    """The same inputs and the same answers.

    A close-ok only counts after our close, so when it comes too early the answers do depend on the time. And once
    frames cannot be told apart any more, a close among the debris is answered only if it is found.
    """
    answers, others = (side.octets.removesuffix(CLOSE_OK_FRAME) for side in (left, right))
    return left.inputs == right.inputs and (answers == others or CLOSE_OK in stream)


@given(STREAMS, st.lists(st.integers(0, 2000), max_size=8))
def test_the_cuts_do_not_matter(stream: bytes, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(bounds)]
    assert same(stream, converse(pieces), converse([stream]))


@given(STREAMS)
def test_octet_by_octet_is_the_same(stream: bytes) -> None:
    assert same(stream, converse([stream[place : place + 1] for place in range(len(stream))]), converse([stream]))


@given(STREAMS, st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=6), st.booleans())
def test_damaged_conversations_break_nothing(stream: bytes, damage: list[tuple[int, int]], let_in: bool) -> None:
    damaged = bytearray(stream)
    for place, octet in damage:
        if damaged:
            damaged[place % len(damaged)] = octet
    whole = bytes(damaged)
    half = len(whole) // 2
    assert same(whole, converse([whole], lambda _: let_in), converse([whole[:half], whole[half:]], lambda _: let_in))


@given(
    st.lists(PIECES_OF_CONVERSATION | PUBLISHES | SETTLEMENTS, max_size=8), st.lists(st.integers(0, 1500), max_size=8)
)
def test_the_cuts_do_not_matter_to_the_kernel_either(parts: list[bytes], cuts: list[int]) -> None:
    stream = HANDSHAKE + b"".join(parts)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(bounds)]
    cut, whole = converse(pieces, make_scanner=Scanner), converse([stream], make_scanner=Scanner)
    assert same(stream, cut, whole)

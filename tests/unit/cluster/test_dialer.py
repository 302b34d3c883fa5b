"""The dialing end of a link, against those who answer with what they should not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.cluster.dialer import Dialer
from pandomq.cluster.introduction import IntroductionStage, LinkRefused
from pandomq.cluster.limits import DIAL_MS_MAX, LINK_HEARTBEAT_S
from pandomq.limits import HANDSHAKE_FRAME_BYTES_MAX, HEARTBEATS_MISSED_MAX
from pandomq.methods import (
    ChannelOpenOk,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionTune,
)
from pandomq.wire.codec import HEARTBEAT, encode_frame
from pandomq.wire.handshake import PROTOCOL_HEADER
from tests.unit.cluster.meeting import KEY, NOW_MS, Meeting, hello


def dialer() -> Dialer:
    return Dialer(KEY, hello("n1"), NOW_MS)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        PROTOCOL_HEADER,
        b"\x01\x00\x00\x7f\xff\xff\xff",
        b"\x01\x00\x00" + (HANDSHAKE_FRAME_BYTES_MAX + 1).to_bytes(4, "big"),
        encode_frame(0, ConnectionTune(1, 131_072, 2)),
        encode_frame(0, ConnectionSecure(b"")),
        encode_frame(1, ChannelOpenOk()),
        b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0a\xce",
    ],
)
def test_frames_out_of_place_end_the_handshake(data: bytes) -> None:
    dialing = dialer()
    with pytest.raises(LinkRefused):
        dialing.receive(data)
    assert dialing.stage is IntroductionStage.OVER


@given(st.binary(max_size=200))
def test_no_octets_do_more_than_end_it(data: bytes) -> None:
    dialing = dialer()
    try:
        dialing.receive(data)
    except LinkRefused:
        assert dialing.stage is IntroductionStage.OVER
    else:
        assert dialing.stage is IntroductionStage.STARTING


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_no_answer_to_its_hello_but_a_proof_lets_it_go_on(challenges: list[bytes]) -> None:
    meeting = Meeting(hello("n1"), hello("n2"))
    meeting.heard(meeting.dialer.data_to_send())
    meeting.dialer.receive(meeting.connection.data_to_send())
    for number, challenge in enumerate(challenges):
        if number == 0:
            with pytest.raises(LinkRefused):
                meeting.dialer.receive(encode_frame(0, ConnectionSecure(challenge)))
        else:
            meeting.dialer.receive(encode_frame(0, ConnectionSecure(challenge)))
        assert meeting.dialer.theirs is None


def test_being_let_in_without_a_proof_is_refused() -> None:
    meeting = Meeting(hello("n1"), hello("n2"))
    meeting.heard(meeting.dialer.data_to_send())
    meeting.dialer.receive(meeting.connection.data_to_send())
    with pytest.raises(LinkRefused, match="without proving its own key"):
        meeting.dialer.receive(encode_frame(0, ConnectionTune(1, 131_072, 2)))


def test_a_close_is_answered_and_its_text_kept() -> None:
    meeting = Meeting(hello("n1"), hello("n2")).run()
    with pytest.raises(LinkRefused, match="the peer closed with a reason: so long"):
        meeting.dialer.receive(encode_frame(0, ConnectionClose(320, "so long", 0, 0)))
    assert meeting.dialer.data_to_send() == encode_frame(0, ConnectionCloseOk())


def test_an_open_link_accepts_heartbeats_and_nothing_else() -> None:
    meeting = Meeting(hello("n1"), hello("n2")).run()
    meeting.dialer.receive(HEARTBEAT * 3)
    with pytest.raises(LinkRefused, match=r"connection\.blocked"):
        meeting.dialer.receive(encode_frame(0, ConnectionBlocked("no")))


def test_a_silent_handshake_ends_in_time() -> None:
    dialing = dialer()
    dialing.tick(NOW_MS + DIAL_MS_MAX - 1)
    with pytest.raises(LinkRefused, match="did not finish the handshake"):
        dialing.tick(NOW_MS + DIAL_MS_MAX)


def test_heartbeats_are_sent_when_there_is_nothing_else_and_missed_when_they_do_not_come() -> None:
    meeting = Meeting(hello("n1"), hello("n2")).run()
    step_ms = LINK_HEARTBEAT_S * 250
    began_ms = NOW_MS + 1
    meeting.dialer.tick(began_ms)
    meeting.dialer.tick(began_ms + step_ms)
    meeting.dialer.tick(began_ms + 2 * step_ms)
    assert meeting.dialer.data_to_send() == HEARTBEAT
    meeting.dialer.wrote()
    meeting.dialer.tick(began_ms + 3 * step_ms)
    meeting.dialer.tick(began_ms + 3 * step_ms + 1)
    assert meeting.dialer.data_to_send() == b""
    missed_ms = HEARTBEATS_MISSED_MAX * LINK_HEARTBEAT_S * 1000
    for later_ms in range(4 * step_ms, missed_ms + 1, step_ms):
        meeting.dialer.tick(began_ms + later_ms)
    with pytest.raises(LinkRefused, match="nothing was received from the peer"):
        meeting.dialer.tick(began_ms + missed_ms + step_ms)


def test_open_ok_alone_is_not_enough() -> None:
    meeting = Meeting(hello("n1"), hello("n2"))
    dialing = meeting.dialer
    while dialing.stage is not IntroductionStage.OPENING:
        meeting.heard(dialing.data_to_send())
        dialing.receive(meeting.connection.data_to_send())
    stages = []
    for answer in (encode_frame(0, ConnectionOpenOk()), encode_frame(1, ChannelOpenOk())):
        dialing.receive(answer)
        stages.append(dialing.stage)
    assert stages == [IntroductionStage.OPENING, IntroductionStage.OPEN]

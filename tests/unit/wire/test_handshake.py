"""From the protocol header to open-ok."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq.errors import not_allowed
from pandomq.fieldtable import encode_table
from pandomq.ids import UserName, VhostName
from pandomq.limits import HANDSHAKE_HELD_BYTES_MAX
from pandomq.methods import (
    ChannelOpen,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionTune,
    Method,
    MethodInput,
    QueueDeclare,
)
from pandomq.wire.codec import HEARTBEAT, encode_frame
from pandomq.wire.inputs import Input, Login, Misgreeted, OpenVhost, PeerClosed
from pandomq.wire.offer import CAPABILITIES, Agreed, Offer
from pandomq.wire.states import ConnectionState
from tests.unit.wire.peer import (
    GUEST,
    HEADER,
    KNOWS_EVERYTHING,
    OFFER,
    Run,
    TinyScanner,
    body_frame,
    fault_in,
    in_state,
    logged_in,
    new_connection,
    open_vhost,
    running,
    sent,
    start_ok,
    started,
    tune_ok,
)


def test_start_has_the_properties_of_the_broker() -> None:
    offer = Offer(version="1.2.3", cluster_name="grove", more={"root": "n1"}, mechanisms=("PLAIN",))
    connection = new_connection(offer)
    connection.receive(HEADER)
    (start,) = sent(connection)
    assert isinstance(start, ConnectionStart)
    assert (start.version_major, start.version_minor) == (0, 9)
    assert (start.mechanisms, start.locales) == (b"PLAIN", b"en_US")
    properties = start.server_properties
    assert properties["capabilities"] == CAPABILITIES
    assert (properties["product"], properties["version"]) == ("PandoMQ", "1.2.3")
    assert (properties["cluster_name"], properties["root"]) == ("grove", "n1")


@pytest.mark.parametrize("header", [b"AMQP\x00\x00\x09\x02", b"AMQP\x00\x01\x00\x00", b"GET / HT", b"\x00" * 8])
def test_another_protocol_is_answered_with_ours(header: bytes) -> None:
    connection = new_connection()
    assert connection.receive(header + b"more of it") == [Misgreeted(header)]
    assert connection.data_to_send() == HEADER
    assert in_state(connection, ConnectionState.CLOSED)
    assert connection.receive(HEADER + start_ok()) == []
    assert connection.data_to_send() == b""


def test_a_short_header_is_waited_for() -> None:
    connection = new_connection()
    assert connection.receive(b"XMQ") == []
    assert connection.data_to_send() == b""
    assert in_state(connection, ConnectionState.HEADER)


def test_the_old_way_to_announce_0_9_is_understood() -> None:
    connection = new_connection()
    connection.receive(b"AMQP\x01\x01\x00\x09")
    assert in_state(connection, ConnectionState.STARTING)


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", GUEST),
        ("AMQPLAIN", encode_table({"LOGIN": "guest", "PASSWORD": "guest"})[4:]),
        ("AMQPLAIN", encode_table({"PASSWORD": "guest", "x": 1, "LOGIN": "guest"})[4:]),
    ],
)
def test_a_login_carries_user_and_password(mechanism: str, response: bytes) -> None:
    connection = started()
    inputs = connection.receive(start_ok(mechanism, response))
    assert inputs == [Login(mechanism, UserName("guest"), b"guest", KNOWS_EVERYTHING)]
    assert in_state(connection, ConnectionState.LOGIN)
    assert connection.accept_login() == []
    assert sent(connection) == [ConnectionTune(2047, 131072, 60)]


def test_passwords_may_be_any_octets() -> None:
    (login,) = started().receive(start_ok("PLAIN", b"\0\xff\0\xfe\xc3"))
    assert login == Login("PLAIN", UserName("\udcff"), b"\xfe\xc3", KNOWS_EVERYTHING)
    secret = b"\x05LOGINS\x00\x00\x00\x01g" + b"\x08PASSWORDS\x00\x00\x00\x01\xff"
    (login,) = started().receive(start_ok("AMQPLAIN", secret))
    assert login == Login("AMQPLAIN", UserName("g"), b"\xff", KNOWS_EVERYTHING)


def test_external_is_understood_where_it_is_offered() -> None:
    offer = Offer(version="1", mechanisms=("EXTERNAL",))
    (login,) = started(offer).receive(start_ok("EXTERNAL", b"whoever"))
    assert login == Login("EXTERNAL", UserName("whoever"), b"", KNOWS_EVERYTHING)


@pytest.mark.parametrize(
    ("mechanism", "response", "code"),
    [
        ("PLAIN", b"", 502),
        ("PLAIN", b"guest", 502),
        ("PLAIN", b"other\0guest\0guest", 502),
        ("PLAIN", b"\0guest\0guest\0more", 502),
        ("AMQPLAIN", b"", 502),
        ("AMQPLAIN", b"\x05LOGIN", 502),
        ("AMQPLAIN", encode_table({"LOGIN": "guest"})[4:], 502),
        ("AMQPLAIN", encode_table({"LOGIN": "guest", "PASSWORD": 5})[4:], 502),
        ("EXTERNAL", b"", 503),
        ("plain", GUEST, 503),
        ("", GUEST, 503),
    ],
)
def test_a_login_that_makes_no_sense_is_met_with_silence(mechanism: str, response: bytes, code: int) -> None:
    connection = started()
    fault = fault_in(connection.receive(start_ok(mechanism, response)))
    assert fault.reply_code == code
    connection.close(fault, 0)
    assert connection.data_to_send() == b""
    assert in_state(connection, ConnectionState.CLOSED)


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_a_refused_login_is_reported_to_clients_with_the_capability(mechanism: str) -> None:
    connection = started()
    response = GUEST if mechanism == "PLAIN" else encode_table({"LOGIN": "g", "PASSWORD": "p"})[4:]
    (login,) = connection.receive(start_ok(mechanism, response))
    assert isinstance(login, Login)
    connection.refuse_login(login, 0)
    text = f"ACCESS_REFUSED - Login was refused using authentication mechanism {mechanism}."
    assert sent(connection) == [ConnectionClose(403, f"{text} For details see the broker logfile.", 0, 0)]
    assert in_state(connection, ConnectionState.CLOSING)
    assert connection.receive(encode_frame(0, ConnectionCloseOk())) == []
    assert in_state(connection, ConnectionState.CLOSED)


@pytest.mark.parametrize(
    "client_properties",
    [
        {},
        {"capabilities": {}},
        {"capabilities": "all"},
        {"capabilities": {"authentication_failure_close": False}},
        {"capabilities": {"authentication_failure_close": "yes"}},
    ],
)
def test_a_refused_login_is_silence_to_others(client_properties: dict[str, Any]) -> None:
    connection = started()
    (login,) = connection.receive(start_ok(client_properties=client_properties))
    assert isinstance(login, Login)
    connection.refuse_login(login, 0)
    assert connection.data_to_send() == b""
    assert in_state(connection, ConnectionState.CLOSED)


@pytest.mark.parametrize(
    ("channel_max", "frame_max", "heartbeat"), [(2047, 131072, 60), (1, 4096, 1), (2047, 131072, 0), (5, 8192, 65535)]
)
def test_less_may_be_agreed_on(channel_max: int, frame_max: int, heartbeat: int) -> None:
    connection = logged_in()
    assert connection.receive(tune_ok(channel_max, frame_max, heartbeat)) == []
    assert connection.agreed == Agreed(channel_max, frame_max, heartbeat)
    assert in_state(connection, ConnectionState.OPENING)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"channel_max": 2048}, "channel_max = 2048 is higher than the maximum allowed value (2047)"),
        ({"channel_max": 0}, "channel_max = 0 (no limit) is higher than the maximum allowed value (2047)"),
        ({"frame_max": 131073}, "frame_max = 131073 is higher than the maximum allowed value (131072)"),
        ({"frame_max": 0}, "frame_max = 0 is higher than the maximum allowed value (131072)"),
        ({"frame_max": 4095}, "frame_max = 4095 is lower than the minimum allowed value (4096)"),
    ],
)
def test_more_is_not_allowed(answer: dict[str, int], text: str) -> None:
    connection = logged_in()
    fault = fault_in(connection.receive(tune_ok(**answer) + open_vhost()))
    connection.close(fault, 0)
    assert sent(connection) == [ConnectionClose(530, f"NOT_ALLOWED - negotiated {text}", 10, 30)]
    assert in_state(connection, ConnectionState.CLOSING)


def test_an_offer_without_limits_takes_any_number() -> None:
    offer = Offer(version="1", proposal=Agreed(0, 131072, 60))
    connection = logged_in(offer=offer)
    connection.receive(tune_ok(channel_max=65535))
    assert connection.agreed.channel_max == 65535


def test_the_scanner_keeps_to_the_agreed_limits() -> None:
    made: list[TinyScanner] = []

    def make(frame_max: int, body_size_max: int) -> TinyScanner:
        made.append(TinyScanner(frame_max, body_size_max))
        return made[-1]

    connection = type(running())(OFFER, make, 0)
    connection.receive(HEADER + start_ok())
    connection.accept_login()
    connection.receive(tune_ok(frame_max=4096) + open_vhost())
    assert made == []
    connection.accept_vhost(0)
    assert [(scanner.frame_max, scanner.body_size_max) for scanner in made] == [(4096, OFFER.message_bytes_max)]


def test_a_refused_vhost_names_the_open() -> None:
    connection = logged_in()
    assert connection.receive(tune_ok() + open_vhost("nope")) == [OpenVhost(VhostName("nope"))]
    connection.close(not_allowed("vhost nope not found"), 0)
    assert sent(connection) == [ConnectionClose(530, "NOT_ALLOWED - vhost nope not found", 10, 40)]


@pytest.mark.parametrize(
    "rubbish",
    [
        tune_ok(),
        open_vhost(),
        encode_frame(0, QueueDeclare("q")),
        encode_frame(1, ChannelOpen()),
        encode_frame(0, ConnectionCloseOk()),
        encode_frame(0, ConnectionClose(200, "", 0, 0)),
        b"\x01\x00\x00\x00\x00\x20\x00",
        b"\x01\x00\x00\x00\x00\x00\x01\x00\x00",
        b"\x02\x00\x00\x00\x00\x00\x00\xce",
        b"\x08\x00\x01\x00\x00\x00\x00\xce",
        b"\x01\x00\x00\x00\x00\x00\x01\x00\xce",
        b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x63\xce",
        b"\xff" * 20,
    ],
)
def test_before_the_login_nothing_is_explained(rubbish: bytes) -> None:
    connection = started()
    fault = fault_in(connection.receive(rubbish + start_ok()))
    connection.close(fault, 0)
    assert connection.data_to_send() == b""
    assert in_state(connection, ConnectionState.CLOSED)


@pytest.mark.parametrize(
    ("early", "expected"),
    [
        (start_ok(), ConnectionClose(504, "CHANNEL_ERROR - unexpected method in connection state tuning", 10, 11)),
        (open_vhost(), ConnectionClose(504, "CHANNEL_ERROR - unexpected method in connection state tuning", 10, 40)),
        (
            tune_ok() + start_ok(),
            ConnectionClose(504, "CHANNEL_ERROR - unexpected method in connection state opening", 10, 11),
        ),
        (
            tune_ok() + encode_frame(1, ChannelOpen()),
            ConnectionClose(505, "UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,0>>", 0, 0),
        ),
    ],
)
def test_after_the_login_everything_is_explained(early: bytes, expected: Method) -> None:
    connection = logged_in()
    connection.close(fault_in(connection.receive(early)), 0)
    assert sent(connection) == [expected]


@pytest.mark.parametrize("before", [b"", tune_ok()])
def test_a_client_may_leave_before_it_opens(before: bytes) -> None:
    connection = logged_in()
    leaving = encode_frame(0, ConnectionClose(200, "bye", 0, 0))
    assert connection.receive(before + leaving + open_vhost()) == [PeerClosed(200, "bye")]
    connection.confirm_close()
    assert sent(connection) == [ConnectionCloseOk()]
    assert in_state(connection, ConnectionState.CLOSED)


def test_heartbeats_are_welcome_at_any_time() -> None:
    connection = started()
    (login,) = connection.receive(HEARTBEAT + start_ok() + HEARTBEAT)
    assert isinstance(login, Login)
    connection.accept_login()
    assert connection.receive(HEARTBEAT + tune_ok() + HEARTBEAT + open_vhost()) == [OpenVhost(VhostName("/"))]


def test_frames_sent_ahead_wait_for_the_answers() -> None:
    connection = new_connection()
    ahead = body_frame(b"one") + encode_frame(1, ChannelOpen())
    inputs = connection.receive(HEADER + start_ok() + tune_ok() + open_vhost() + ahead)
    assert [type(item) for item in inputs] == [Login]
    assert [type(method) for method in sent(connection)] == [ConnectionStart]
    assert connection.receive(body_frame(b"two")) == []
    assert connection.accept_login() == [OpenVhost(VhostName("/"))]
    assert [type(method) for method in sent(connection)] == [ConnectionTune]
    expected: list[Any] = [Run(b"one"), MethodInput(1, ChannelOpen()), Run(b"two")]
    assert connection.accept_vhost(0) == expected
    assert sent(connection) == [ConnectionOpenOk()]


def test_too_much_sent_ahead_is_refused() -> None:
    connection = started()
    inputs: list[Input] = connection.receive(start_ok() + b"x" * HANDSHAKE_HELD_BYTES_MAX)
    assert [type(item) for item in inputs] == [Login]
    fault = fault_in(connection.receive(b"x"))
    assert fault.reply_code == 506

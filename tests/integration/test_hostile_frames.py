"""Clients that send garbage: closed with RabbitMQ's code for it and logged in one line; no other client notices."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.support.client import Connection
from tests.support.fields import content_header
from tests.support.frames import BODY, HEADER, HEARTBEAT, METHOD, PROTOCOL_HEADER, frame
from tests.support.methods import encode

from .bystander import Bystander
from .configured_broker import ConfiguredBroker, running

pytestmark = pytest.mark.only_ours("its log is looked at")

MESSAGE_BYTES = 100_000
ROUNDS = 30

Act = Callable[[Connection], None]


@pytest.fixture(scope="module")
def broker_of_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    limits = {"message_bytes_max": MESSAGE_BYTES}
    with running(ConfiguredBroker(tmp_path_factory.mktemp("hostile"), limits=limits)) as broker:
        yield broker


@pytest.fixture(scope="module")
def bystander(broker_of_ours: ConfiguredBroker) -> Iterator[Bystander]:
    with Bystander(broker_of_ours.address()) as watching:
        yield watching


def octets(data: bytes) -> Act:
    return lambda connection: connection.send_bytes(data)


def on_channel_1(*frames: tuple[int, bytes]) -> Act:
    """Frames on a channel that is open."""

    def act(connection: Connection) -> None:
        connection.channel(1)
        connection.send_bytes(b"".join(frame(kind, 1, payload) for kind, payload in frames))

    return act


PUBLISH = (METHOD, encode("basic.publish", routing_key="nowhere"))
FIVE = (HEADER, content_header(5, {}))
DECLARE = encode("queue.declare", queue="q")
BAD_TABLE = DECLARE[:-4] + b"\x00\x00\x00\x05\x01aQ12"

TOO_LARGE = "FRAME_ERROR - type {}, all octets = <<>>: {{frame_too_large,{},131064}}"
EXPECTED_HEADER = "UNEXPECTED_FRAME - expected content header for class 60, got {} instead"
EXPECTED_BODY = "UNEXPECTED_FRAME - expected content body, got non content body frame instead"
EXPECTED_METHOD = "UNEXPECTED_FRAME - expected method frame, got non method frame instead"
UNEXPECTED = "CHANNEL_ERROR - unexpected method in connection state running"

OUT_OF_ORDER: dict[str, tuple[Act, int, str]] = {
    "garbage": (octets(b"garbage, garbage, garbage"), 501, TOO_LARGE.format(103, 1650550629)),
    "random octets": (octets(random.Random(7).randbytes(4096)), 501, TOO_LARGE.format(56, 1390693799)),
    "the greeting again": (octets(PROTOCOL_HEADER), 501, TOO_LARGE.format(65, 1342177289)),
    "four gigabytes": (octets(b"\x01\x00\x00\xff\xff\xff\xff"), 501, TOO_LARGE.format(1, 2**32 - 1)),
    "no end mark": (
        octets(frame(METHOD, 0, b"\x00\x0a\x00\x33")[:-1] + b"\x00"),
        501,
        "FRAME_ERROR - type 1, all octets = <<0,10,0,51>>: {invalid_frame_end_marker,0}",
    ),
    "an unknown frame": (octets(frame(9, 0, b"")), 501, "FRAME_ERROR - type 9, all octets = <<>>: unknown_frame"),
    "a heartbeat on a channel": (octets(frame(HEARTBEAT, 1, b"")), 505, "UNEXPECTED_FRAME - type 8, all octets = <<>>"),
    "a heartbeat with content": (
        octets(frame(HEARTBEAT, 0, b"x")),
        501,
        'FRAME_ERROR - type 8, all octets = <<"x">>: unknown_frame',
    ),
    "a method of three octets": (
        octets(frame(METHOD, 1, b"\x00\x0a\x00")),
        501,
        "FRAME_ERROR - type 1, all octets = <<0,10,0>>: unknown_frame",
    ),
    "an unknown method": (on_channel_1((METHOD, b"\x00\xff\x00\xff")), 540, "NOT_IMPLEMENTED - unknown method 255.255"),
    "a closed channel": (octets(frame(METHOD, 7, DECLARE)), 504, "CHANNEL_ERROR - expected 'channel.open'"),
    "a channel opened twice": (
        on_channel_1((METHOD, encode("channel.open"))),
        504,
        "CHANNEL_ERROR - second 'channel.open' seen",
    ),
    "a method of the connection on a channel": (
        on_channel_1((METHOD, encode("connection.close-ok"))),
        503,
        "COMMAND_INVALID - unimplemented method",
    ),
    "a method of a channel on the connection": (octets(frame(METHOD, 0, DECLARE)), 504, UNEXPECTED),
    "a second login": (octets(frame(METHOD, 0, encode("connection.tune-ok"))), 504, UNEXPECTED),
    "a broken table": (on_channel_1((METHOD, BAD_TABLE)), 502, "SYNTAX_ERROR - unknown field type 81"),
    "a method cut short": (on_channel_1((METHOD, DECLARE[:7])), 501, "FRAME_ERROR - cannot decode <<0,0,1>>"),
    "a body out of nowhere": (on_channel_1((BODY, b"x")), 505, EXPECTED_METHOD),
    "a header out of nowhere": (on_channel_1(FIVE), 505, EXPECTED_METHOD),
    "a method in place of a header": (
        on_channel_1(PUBLISH, PUBLISH),
        505,
        EXPECTED_HEADER.format("non content header frame"),
    ),
    "a body in place of a header": (
        on_channel_1(PUBLISH, (BODY, b"12345")),
        505,
        EXPECTED_HEADER.format("non content header frame"),
    ),
    "a header of another class": (
        on_channel_1(PUBLISH, (HEADER, b"\x00\x32" + FIVE[1][2:])),
        505,
        EXPECTED_HEADER.format("one for class 50"),
    ),
    "two headers": (on_channel_1(PUBLISH, FIVE, FIVE), 505, EXPECTED_BODY),
    "a method in the middle of a body": (
        on_channel_1(PUBLISH, FIVE, (BODY, b"12"), (METHOD, DECLARE)),
        505,
        EXPECTED_BODY,
    ),
    "more body than was promised": (
        on_channel_1(PUBLISH, FIVE, (BODY, b"123456")),
        501,
        "FRAME_ERROR - content body of 6 octets where 5 are missing",
    ),
    "a content on channel 0": (
        octets(frame(BODY, 0, b"hi")),
        505,
        'UNEXPECTED_FRAME - type 3, all octets = <<"hi">>',
    ),
}


@pytest.mark.parametrize(("act", "code", "text"), OUT_OF_ORDER.values(), ids=OUT_OF_ORDER.keys())
def test_a_frame_out_of_order(
    broker_of_ours: ConfiguredBroker, bystander: Bystander, act: Act, code: int, text: str
) -> None:
    mark = broker_of_ours.mark()
    connection = broker_of_ours.open()
    act(connection)
    closed = connection.expect("connection.close")
    assert (closed.reply_code, closed.reply_text) == (code, text)
    connection.send("connection.close-ok")
    connection.expect_eof()
    connection.drop()
    (line,) = broker_of_ours.lines("WARNING|ERROR", mark)
    assert line.endswith(f"closed: {code} {text}")
    bystander.goes_on()


BEFORE_THE_LOGIN: dict[str, tuple[bytes, str]] = {
    "garbage": (b"garbage, garbage, garbage", "501 FRAME_ERROR"),
    "a frame that is too large": (b"\x01\x00\x00\x00\x01\x00\x00", "501 FRAME_ERROR"),
    "open before login": (frame(METHOD, 0, encode("connection.open", virtual_host="/")), "504 CHANNEL_ERROR"),
    "a channel before login": (frame(METHOD, 1, encode("channel.open")), "505 UNEXPECTED_FRAME"),
    "a mechanism that is not offered": (
        frame(METHOD, 0, encode("connection.start-ok", mechanism="EXTERNAL", response=b"guest")),
        "503 COMMAND_INVALID",
    ),
    "half a login": (
        frame(METHOD, 0, encode("connection.start-ok", mechanism="PLAIN", response=b"no zero in it")),
        "502 SYNTAX_ERROR",
    ),
}


@pytest.mark.parametrize(("data", "reason"), BEFORE_THE_LOGIN.values(), ids=BEFORE_THE_LOGIN.keys())
def test_a_client_that_has_not_logged_in_gets_no_reason(
    broker_of_ours: ConfiguredBroker, bystander: Bystander, data: bytes, reason: str
) -> None:
    """As AMQP defines it, the socket is closed. The log has the reason."""
    mark = broker_of_ours.mark()
    connection = Connection(broker_of_ours.address())
    connection.send_bytes(PROTOCOL_HEADER)
    connection.expect("connection.start")
    connection.send_bytes(data)
    connection.expect_eof()
    connection.drop()
    (line,) = broker_of_ours.lines("WARNING|ERROR", mark)
    assert f"closed: {reason}" in line
    bystander.goes_on()


def test_incomplete_messages_are_bounded(broker_of_ours: ConfiguredBroker, bystander: Bystander) -> None:
    """Each channel may have one, and together they would take as much as there are channels."""
    mark = broker_of_ours.mark()
    connection = broker_of_ours.open()
    channels = [connection.channel(number) for number in range(1, 8)]
    for number, channel in enumerate(channels, start=1):
        channel.send("basic.publish", routing_key="nowhere")
        connection.send_frame(HEADER, number, content_header(MESSAGE_BYTES, {}))
        connection.send_frame(BODY, number, b"x" * (MESSAGE_BYTES - 1))
        if number == 2:
            # The limit allows this much: the broker still answers.
            connection.channel(9).declare_queue()
    closed = connection.expect("connection.close")
    assert (closed.reply_code, closed.reply_text.split(" - ")[0]) == (506, "RESOURCE_ERROR")
    connection.drop()
    broker_of_ours.wait_for_line("closed: 506 RESOURCE_ERROR - partly received messages take more than", mark)
    bystander.goes_on()


def test_octets_at_random_after_a_good_start(broker_of_ours: ConfiguredBroker, bystander: Bystander) -> None:
    """Valid frames with one octet changed: whatever they mean then, the broker and the bystander continue."""
    chance = random.Random(11)
    good = b"".join(
        frame(METHOD, 1, encode(name, **arguments))
        for name, arguments in (
            ("queue.declare", {"queue": "victim", "exclusive": True, "arguments": {"x-max-length": 5}}),
            ("queue.bind", {"queue": "victim", "exchange": "amq.topic", "routing_key": "a.#"}),
            ("basic.consume", {"queue": "victim", "consumer_tag": "t"}),
            ("basic.qos", {"prefetch_count": 3}),
        )
    ) + b"".join(frame(kind, 1, payload) for kind, payload in (PUBLISH, FIVE, (BODY, b"12345")))
    for _ in range(ROUNDS):
        spoiled = bytearray(good)
        spoiled[chance.randrange(len(spoiled))] ^= 1 << chance.randrange(8)
        connection = broker_of_ours.open()
        connection.channel(1)
        connection.send_bytes(bytes(spoiled))
        connection.drop()
    bystander.goes_on()
    broker_of_ours.check()

"""From the first byte to connection.open-ok, and the errors that end the handshake."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pandomq import __version__
from tests.support.client import CAPABILITIES, Address, Connect, Connection
from tests.support.fields import table
from tests.support.frames import PROTOCOL_HEADER, frame

REFUSED = "ACCESS_REFUSED - Login was refused using authentication mechanism {}. For details see the broker logfile."
PLAIN: dict[str, Any] = {"mechanism": "PLAIN", "response": b"\0guest\0guest", "locale": "en_US"}
# Clients read these without checking whether they exist.
EXPECTED_CAPABILITIES = {
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
}


def test_start_names_version_mechanisms_and_locale(raw: Connection) -> None:
    raw.send_bytes(PROTOCOL_HEADER)
    start = raw.expect("connection.start")
    assert (start.version_major, start.version_minor) == (0, 9)
    assert {b"PLAIN", b"AMQPLAIN"} <= set(start.mechanisms.split())
    assert b"en_US" in start.locales.split()


def test_server_properties_have_the_entries_that_clients_use(raw: Connection) -> None:
    raw.send_bytes(PROTOCOL_HEADER)
    properties = raw.expect("connection.start").server_properties
    assert all(properties["capabilities"][name] is True for name in EXPECTED_CAPABILITIES)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", properties["version"])
    for name in ("product", "platform", "cluster_name", "copyright", "information"):
        assert isinstance(properties[name], str), name


def test_the_product_is_named_rabbitmq(connection: Connection) -> None:
    assert connection.server_properties["product"] == "RabbitMQ"


@pytest.mark.ours_only
def test_our_own_name_and_version_stand_beside_it(connection: Connection) -> None:
    properties = connection.server_properties
    assert (properties["implementation"], properties["pandomq_version"]) == ("PandoMQ", __version__)


@pytest.mark.parametrize(
    "greeting",
    [b"AMQP\x00\x00\x09\x02", b"AMQP\x00\x01\x00\x00", b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x00\x0a\x00", b"HTTP/1.1"],
)
def test_another_protocol_is_answered_with_ours(raw: Connection, greeting: bytes) -> None:
    raw.send_bytes(greeting)
    assert raw.read_rest() == PROTOCOL_HEADER


def test_a_request_of_http_is_answered_with_the_protocol_header(raw: Connection) -> None:
    raw.send_bytes(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert raw.read_rest() == PROTOCOL_HEADER


def test_open_ok_follows_the_open(raw: Connection) -> None:
    raw.log_in()
    raw.send("connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
    raw.send("connection.open", virtual_host="/", capabilities="ignored", insist=True)
    assert raw.expect("connection.open-ok").known_hosts == ""
    raw.close()


def test_amqplain_logs_in(raw: Connection) -> None:
    # The response is a field table without its length.
    raw.log_in(mechanism="AMQPLAIN", response=table({"LOGIN": "guest", "PASSWORD": "guest"})[4:])
    raw.tune_and_open()
    raw.close()


def test_any_locale_will_do(raw: Connection) -> None:
    raw.send_bytes(PROTOCOL_HEADER)
    raw.expect("connection.start")
    raw.send("connection.start-ok", 0, **(PLAIN | {"locale": "xx_XX"}))
    raw.expect("connection.tune")


@pytest.mark.parametrize("login", [b"\0guest\0wrong", b"\0nobody\0guest", b"\0guest\0", b"\0\0"])
def test_a_refused_login_is_a_close_with_403_for_clients_that_know_it(raw: Connection, login: bytes) -> None:
    start_with(raw, PLAIN | {"response": login}, {"capabilities": CAPABILITIES})
    raw.expect_close(403, REFUSED.format("PLAIN"))


def test_a_refused_amqplain_login_names_the_mechanism(raw: Connection) -> None:
    login = table({"LOGIN": "guest", "PASSWORD": "wrong"})[4:]
    start_with(raw, {"mechanism": "AMQPLAIN", "response": login, "locale": "en_US"}, {"capabilities": CAPABILITIES})
    raw.expect_close(403, REFUSED.format("AMQPLAIN"))


def test_a_refused_login_is_silence_for_clients_that_do_not(raw: Connection) -> None:
    start_with(raw, PLAIN | {"response": b"\0guest\0wrong"}, {})
    raw.expect_eof()


@pytest.mark.parametrize(
    "answer",
    [
        {"mechanism": "PLAIN", "response": b"no separators"},
        {"mechanism": "PLAIN", "response": b""},
        {"mechanism": "AMQPLAIN", "response": b"\x05LOGIN"},
        {"mechanism": "AMQPLAIN", "response": table({"LOGIN": "guest"})[4:]},
        {"mechanism": "UNKNOWN", "response": b"\0guest\0guest"},
        {"mechanism": "", "response": b"\0guest\0guest"},
    ],
)
def test_a_login_that_makes_no_sense_ends_the_conversation(raw: Connection, answer: dict[str, Any]) -> None:
    start_with(raw, {"locale": "en_US"} | answer, {})
    raw.expect_end()


def start_with(raw: Connection, answer: dict[str, Any], client_properties: dict[str, Any]) -> None:
    raw.send_bytes(PROTOCOL_HEADER)
    raw.expect("connection.start")
    raw.send("connection.start-ok", 0, client_properties=client_properties, **answer)


def test_an_unknown_vhost_is_not_allowed(raw: Connection) -> None:
    raw.log_in()
    raw.send("connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
    raw.send("connection.open", virtual_host="no-such-vhost")
    raw.expect_close(530, "NOT_ALLOWED - vhost no-such-vhost not found", "connection.open")


@pytest.mark.parametrize(
    "method", ["connection.tune-ok", "connection.open", "channel.open", "queue.declare", "connection.close-ok"]
)
def test_start_ok_has_to_come_first(raw: Connection, method: str) -> None:
    raw.send_bytes(PROTOCOL_HEADER)
    raw.expect("connection.start")
    raw.send(method)
    raw.expect_end()


@pytest.mark.parametrize("method", ["connection.start-ok", "connection.open", "channel.open"])
def test_tune_ok_has_to_come_second(raw: Connection, method: str) -> None:
    raw.log_in()
    raw.send(method)
    raw.expect_end()


def test_no_channel_before_the_open(raw: Connection) -> None:
    raw.log_in()
    raw.send("connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
    raw.send("channel.open", 1)
    raw.expect_close(505, "UNEXPECTED_FRAME - …")


def test_a_method_of_another_time_instead_of_the_open(raw: Connection) -> None:
    raw.log_in()
    raw.send("connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
    raw.send("connection.start-ok", 0, **PLAIN)
    text = "CHANNEL_ERROR - unexpected method in connection state opening"
    raw.expect_close(504, text, "connection.start-ok")


@pytest.mark.parametrize(
    "rubbish",
    [
        frame(9, 0, b""),
        frame(1, 0, b"\x00"),
        frame(2, 0, b"\x00" * 14),
        frame(1, 0, b"\x00\x0a\x00\x0b\xff\xff\xff\xff"),
        frame(1, 0, b"x" * 20_000),
        b"\x01\x00\x00\x7f\xff\xff\xff" + b"x" * 100,
        b"\xff" * 64,
    ],
    ids=["type", "short", "header", "table", "large", "endless", "noise"],
)
def test_rubbish_in_place_of_start_ok_ends_the_conversation(raw: Connection, rubbish: bytes) -> None:
    raw.send_bytes(PROTOCOL_HEADER)
    raw.expect("connection.start")
    raw.send_bytes(rubbish)
    raw.expect_end()


@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_the_whole_handshake_may_come_in_any_pieces(raw: Connection, how: str) -> None:
    with raw.in_segments(how):
        raw.send_bytes(PROTOCOL_HEADER)
        raw.send("connection.start-ok", 0, **PLAIN)
        raw.send("connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
        raw.send("connection.open", virtual_host="/")
        raw.send("channel.open", 1)
        raw.send("channel.flow", 1, active=True)
    for name in ("connection.start", "connection.tune", "connection.open-ok"):
        raw.expect(name)
    raw.expect("channel.open-ok", 1)
    raw.expect("channel.flow-ok", 1)
    raw.close()


def test_connecting_and_disconnecting_harms_no_other_client(address: Address, connect: Connect) -> None:
    for greeting in (b"", b"A", b"AMQP\x00", PROTOCOL_HEADER) * 5:
        passer_by = Connection(address)
        passer_by.send_bytes(greeting)
        passer_by.drop()
    connect().channel().expect_nothing()


def test_disconnecting_in_the_middle_of_the_handshake_harms_no_other_client(address: Address, connect: Connect) -> None:
    for _ in range(5):
        passer_by = Connection(address)
        passer_by.log_in()
        passer_by.drop()
    connect().channel().expect_nothing()


def test_client_properties_of_every_kind_are_taken(connect: Connect) -> None:
    properties = {"product": "x", "n": 5, "nested": {"list": [1, "two", {"three": 3.0}]}, "nothing": None, "b": b"\xff"}
    connect(client_properties=properties).channel().expect_nothing()

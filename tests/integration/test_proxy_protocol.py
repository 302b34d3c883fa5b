"""The PROXY protocol: a client behind a proxy has the address in the header, and a connection without a header is
refused."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_address

import pika
import pytest
from pika.exceptions import AMQPConnectionError, ProbableAuthenticationError

from pandomq.data_client.connection import DataConnection
from pandomq.data_client.discovery import server_properties
from pandomq.data_client.failures import NotAllowed
from pandomq.data_client.urls import Address, UrlLogin
from tests.support.client import Connection
from tests.support.frames import PROTOCOL_HEADER, FrameSocket

from .broker_under_test import BrokerUnderTest
from .cable import Cable
from .configured_broker import ConfiguredBroker, running
from .pika_mailbox import put, take
from .waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.only_ours("it is configured to stand behind a proxy")

USER, PASSWORD = "paula", "a secret of Paula's"
HANDSHAKE_MS = 800
BINARY_START = b"\r\n\r\n\0\r\nQUIT\n"


def text(host: str, port: int = 50000, family: str = "TCP4", to: str = "192.0.2.1") -> bytes:
    return f"PROXY {family} {host} {to} {port} 5672\r\n".encode()


def binary(host: str, port: int = 50000, *, command: int = 0x21, more: bytes = b"") -> bytes:
    source = ip_address(host)
    target = ip_address("192.0.2.1" if source.version == 4 else "2001:db8::1")
    addresses = source.packed + target.packed + struct.pack(">HH", port, 5672) + more
    family = 0x11 if source.version == 4 else 0x21
    return BINARY_START + struct.pack(">BBH", command, family, len(addresses)) + addresses


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    broker = ConfiguredBroker(
        tmp_path_factory.mktemp("proxied"),
        node={"proxy_protocol": True},
        limits={"handshake_ms_max": HANDSHAKE_MS},
        auth={"default_user": USER, "default_password": PASSWORD, "loopback_only_users": [USER]},
    )
    with running(broker):
        yield broker


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    """Its user may connect from any address."""
    broker = ConfiguredBroker(
        tmp_path_factory.mktemp("open"),
        node={"proxy_protocol": True},
        auth={"default_user": USER, "default_password": PASSWORD},
    )
    with running(broker):
        yield broker


def connect(cable: Cable, user: str = USER, password: str = PASSWORD) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", cable.port, credentials=credentials))


@pytest.mark.parametrize(
    ("header", "peer"),
    [
        (text("198.51.100.7"), "198.51.100.7:50000"),
        (text("2001:db8::7", family="TCP6", to="2001:db8::1"), "[2001:db8::7]:50000"),
        (binary("198.51.100.8"), "198.51.100.8:50000"),
        (binary("2001:db8::8"), "[2001:db8::8]:50000"),
        (binary("198.51.100.9", more=b"\x04\x00\x05hello"), "198.51.100.9:50000"),
    ],
    ids=["text", "text, IPv6", "binary", "binary, IPv6", "binary with more in it"],
)
def test_the_peer_is_the_address_in_the_header(open_to_all: ConfiguredBroker, header: bytes, peer: str) -> None:
    with Cable("127.0.0.1", open_to_all.port, header) as cable:
        connection = connect(cable)
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        put(channel, queue, [b"m"])
        assert take(channel, queue).body == b"m"
        cable.cut()
        open_to_all.wait_for_line(f"connection {re.escape(peer)} was closed by the client without connection.close")


def test_the_header_may_come_octet_by_octet(open_to_all: ConfiguredBroker) -> None:
    for header in (text("198.51.100.7"), binary("198.51.100.7")):
        stream = socket.create_connection(("127.0.0.1", open_to_all.port), PATIENCE_S)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(open_to_all.address(USER, PASSWORD), stream)
        with connection.in_segments("bytewise"):
            connection.send_bytes(header + PROTOCOL_HEADER)
        assert connection.expect("connection.start").version_major == 0
        connection.drop()


def test_bytes_after_the_header_in_one_segment_are_read(open_to_all: ConfiguredBroker) -> None:
    connection = Connection(open_to_all.address(USER, PASSWORD))
    connection.send_bytes(text("198.51.100.7") + PROTOCOL_HEADER)
    assert connection.expect("connection.start").version_minor == 9
    connection.drop()


@pytest.mark.parametrize(
    "header",
    [
        text("198.51.100.7"),
        binary("2001:db8::7"),
        b"PROXY UNKNOWN\r\n",
        binary("127.0.0.1", command=0x20),
    ],
    ids=["text", "binary", "text: nobody is named", "binary: nobody is named"],
)
def test_a_loopback_user_from_elsewhere_is_refused(proxied: ConfiguredBroker, header: bytes) -> None:
    """The user is refused although the proxy itself is on the loopback, and the password is right."""
    mark = proxied.mark()
    with Cable("127.0.0.1", proxied.port, header) as cable, pytest.raises(ProbableAuthenticationError):
        connect(cable)
    line = proxied.wait_for_line("login from .* failed", mark)
    assert f"user '{USER}' may connect from this machine only" in line


@pytest.mark.parametrize(
    "header",
    [
        text("127.0.0.9"),
        text("::1", family="TCP6", to="::1"),
        binary("127.0.0.1"),
    ],
    ids=["text", "text, IPv6", "binary"],
)
def test_a_loopback_user_from_the_loopback_comes_in(proxied: ConfiguredBroker, header: bytes) -> None:
    with Cable("127.0.0.1", proxied.port, header) as cable:
        connect(cable).close()


BROKEN = {
    "no header": PROTOCOL_HEADER,
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01",
    "no addresses": b"PROXY TCP4\r\n",
    "no numbers": b"PROXY TCP4 nobody nowhere 1 2\r\n",
    "an address of another family": b"PROXY TCP5 192.0.2.7 192.0.2.1 50000 5672\r\n",
    "a port that is none": b"PROXY TCP4 192.0.2.7 192.0.2.1 70000 5672\r\n",
    "a digit that is none": b"PROXY TCP4 192.0.2.7 192.0.2.1 \xb2 5672\r\n",
    "a line without an end": b"PROXY TCP4 " + b"1" * 200,
    "a wrong signature": BINARY_START[:-1] + b"X" + binary("192.0.2.7")[12:],
    "an unknown version": binary("192.0.2.7", command=0x31),
    "an unknown command": binary("192.0.2.7", command=0x2F),
    "addresses cut short": BINARY_START + struct.pack(">BBH", 0x21, 0x11, 4) + b"\x01\x02\x03\x04",
    "too much": BINARY_START + struct.pack(">BBH", 0x21, 0x11, 60000),
}


@pytest.mark.parametrize("header", BROKEN.values(), ids=BROKEN.keys())
def test_a_malformed_header_is_dropped_and_logged(proxied: ConfiguredBroker, header: bytes) -> None:
    mark = proxied.mark()
    stranger = FrameSocket(socket.create_connection(("127.0.0.1", proxied.port), PATIENCE_S))
    stranger.send_bytes(header)
    assert stranger.read_rest() == b"", "nobody is told what is spoken here"
    stranger.drop()
    proxied.wait_for_line("dropped: the connection does not begin with a PROXY header", mark)
    assert len(proxied.lines("WARNING|ERROR", mark)) == 1


def test_half_a_header_has_the_handshakes_time(proxied: ConfiguredBroker) -> None:
    mark = proxied.mark()
    strangers = [socket.create_connection(("127.0.0.1", proxied.port), PATIENCE_S) for _ in range(3)]
    for stranger, header in zip(strangers, (b"PROXY TCP4", BINARY_START, b""), strict=True):
        stranger.sendall(header)
    for stranger in strangers:
        with contextlib.suppress(ConnectionError):
            assert stranger.recv(1) == b""
        stranger.close()
    wait_until(lambda: len(proxied.lines("dropped: the handshake was not completed in time", mark)) == 3)


def test_a_client_without_a_proxy_gets_an_error_from_its_library(proxied: ConfiguredBroker) -> None:
    with pytest.raises(AMQPConnectionError):
        proxied.connect(USER, PASSWORD)


def test_the_data_port_has_the_same_proxy(proxied: ConfiguredBroker) -> None:
    with Cable("127.0.0.1", proxied.port, text("198.51.100.7")) as cable:
        told = server_properties(Address("127.0.0.1", cable.port), None, PATIENCE_S)["data"]
    port, login = int(told.removeprefix(":")), UrlLogin(USER, PASSWORD, "/")
    with Cable("127.0.0.1", port, text("127.0.0.9")) as cable:
        DataConnection(Address("127.0.0.1", cable.port), None, login, PATIENCE_S).close()
    with Cable("127.0.0.1", port, text("198.51.100.7")) as cable, pytest.raises(NotAllowed):
        DataConnection(Address("127.0.0.1", cable.port), None, login, PATIENCE_S)
    proxied.wait_for_line(f"login from 198.51.100.7:50000 failed: user '{USER}' may connect from this machine only")
    mark = proxied.mark()
    with pytest.raises(ConnectionError):
        DataConnection(Address("127.0.0.1", port), None, login, PATIENCE_S)
    proxied.wait_for_line("data port client .* disconnected: the connection does not begin with a PROXY header", mark)


def test_a_header_where_none_is_expected(broker: BrokerUnderTest) -> None:
    assert broker.process is not None
    for header in (text("198.51.100.7"), binary("198.51.100.7")):
        before = len(broker.process.log_text())
        stranger = FrameSocket(socket.create_connection((broker.host, broker.port), PATIENCE_S))
        stranger.send_bytes(header + PROTOCOL_HEADER)
        assert stranger.read_rest() == PROTOCOL_HEADER
        stranger.drop()
        assert (
            "the client speaks the PROXY protocol, which node.proxy_protocol does not enable here"
            in broker.process.log_text()[before:]
        )

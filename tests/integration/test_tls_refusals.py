"""Clients that the TLS port refuses: how soon, and with which one line in the log; no other client notices."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.client import Connection
from tests.support.frames import PROTOCOL_HEADER

from .certificates import Authority, BadKind, bad_certificate, client_context
from .tls_brokers import USER, TlsBroker, tls_broker
from .waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.only_ours("it listens with certificates that were made for the tests")

HANDSHAKE_MS: Final = 1200
SOON_S: Final = 1.0
"""Less than the time limit of the handshake: they are refused for their errors, not for being slow."""


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    with tls_broker(tmp_path_factory.mktemp("asking"), "ask") as broker:
        yield broker


@pytest.fixture(scope="module")
def requiring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    limits = {"handshake_ms_max": HANDSHAKE_MS, "connections_max": 20}
    with tls_broker(tmp_path_factory.mktemp("requiring"), "require", limits=limits) as broker:
        yield broker


@pytest.fixture
def bystander(requiring: TlsBroker) -> Iterator[Connection]:
    """A client whose connection has to survive the test."""
    connection = requiring.open(requiring.authority.client(USER))
    channel = connection.channel()
    yield connection
    queue = channel.declare_queue()
    channel.publish(b"alive", queue)
    assert channel.drain(queue) == [b"alive"]
    connection.close()


def read_to_end(stream: socket.socket) -> bytes:
    """Reads everything before the end of the connection, in whatever way it ends."""
    stream.settimeout(PATIENCE_S)
    received = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := stream.recv(65536):
            received += data
    stream.close()
    return received


def greet_in_vain(broker: TlsBroker, context: ssl.SSLContext) -> None:
    """In TLS 1.3 a client considers itself connected before the broker has checked its certificate."""
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        stream = broker.dial(context)
        stream.sendall(PROTOCOL_HEADER)
        assert read_to_end(stream) == b""


def the_line(broker: TlsBroker, mark: int, reason: str) -> None:
    """Checks that one line has the reason, and that there is no second line."""
    line = broker.broker.wait_for_line(reason, mark)
    assert broker.broker.lines("WARNING|ERROR", mark) == [line]


@pytest.mark.parametrize("mode", ["asking", "requiring"])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("expired", "certificate has expired"),
        ("of another authority", "unable to get local issuer certificate"),
        ("self-signed", "self-signed certificate"),
    ],
)
def test_a_bad_certificate_is_refused_also_where_none_is_required(
    request: pytest.FixtureRequest, mode: str, kind: BadKind, reason: str
) -> None:
    checking: TlsBroker = request.getfixturevalue(mode)
    mark = checking.broker.mark()
    greet_in_vain(checking, checking.context(bad_certificate(checking.authority, kind)))
    the_line(checking, mark, f"TLS handshake with 127.0.0.1:.* certificate of the client was rejected: {reason}")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_without_a_certificate_where_one_is_required(
    requiring: TlsBroker, bystander: Connection, version: ssl.TLSVersion
) -> None:
    context = requiring.context()
    context.minimum_version = context.maximum_version = version
    mark = requiring.broker.mark()
    greet_in_vain(requiring, context)
    the_line(requiring, mark, "TLS handshake with 127.0.0.1:.* peer did not return a certificate")


def test_a_client_that_does_not_trust_the_broker(requiring: TlsBroker, bystander: Connection) -> None:
    other = Authority(requiring.authority.directory / "distrust", "distrust")
    mark = requiring.broker.mark()
    with pytest.raises(ssl.SSLCertVerificationError):
        requiring.dial(client_context(other))
    the_line(requiring, mark, "TLS handshake with 127.0.0.1:.* unknown ca")


def old_context(version: ssl.TLSVersion) -> ssl.SSLContext:
    """For a version that OpenSSL offers only with a special setting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_versions_are_refused(requiring: TlsBroker, bystander: Connection, version: ssl.TLSVersion) -> None:
    mark = requiring.broker.mark()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        requiring.dial(old_context(version))
    the_line(requiring, mark, "TLS handshake with 127.0.0.1:.* unsupported protocol")


@pytest.mark.parametrize(
    "words",
    [PROTOCOL_HEADER, b"GET / HTTP/1.1\r\n\r\n", b"A", b"\0" * 300],
    ids=["AMQP", "HTTP", "one octet", "zeros"],
)
def test_a_client_that_does_not_speak_tls_is_closed_at_once(
    requiring: TlsBroker, bystander: Connection, words: bytes
) -> None:
    mark = requiring.broker.mark()
    began = time.monotonic()
    plain = socket.create_connection(("127.0.0.1", requiring.port), PATIENCE_S)
    plain.sendall(words)
    assert read_to_end(plain) == b""
    assert time.monotonic() - began < SOON_S
    the_line(requiring, mark, "TLS handshake with 127.0.0.1:.* the peer does not speak TLS")


def test_garbage_in_place_of_a_hello(requiring: TlsBroker, bystander: Connection) -> None:
    mark = requiring.broker.mark()
    plain = socket.create_connection(("127.0.0.1", requiring.port), PATIENCE_S)
    plain.sendall(b"\x16\x03\x01\x02\x00" + b"\xff" * 600)
    read_to_end(plain)
    the_line(requiring, mark, "TLS handshake with 127.0.0.1:.* failed")


def test_tls_on_the_plain_port(requiring: TlsBroker, bystander: Connection) -> None:
    mark = requiring.broker.mark()
    plain = socket.create_connection(("127.0.0.1", requiring.broker.port), PATIENCE_S)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        requiring.context().wrap_socket(plain, server_hostname="localhost")
    plain.close()
    the_line(requiring, mark, "connection 127.0.0.1:.* rejected: the client speaks TLS")


def test_half_a_hello_has_a_limited_time(requiring: TlsBroker, bystander: Connection) -> None:
    mark = requiring.broker.mark()
    began = time.monotonic()
    plain = socket.create_connection(("127.0.0.1", requiring.port), PATIENCE_S)
    plain.sendall(b"\x16\x03\x01\x02\x00\x01")
    assert read_to_end(plain) == b""
    assert HANDSHAKE_MS / 1000 * 0.9 < time.monotonic() - began < PATIENCE_S / 2
    the_line(requiring, mark, "TLS handshake with 127.0.0.1:.* handshake is taking longer")


def test_a_client_that_is_silent_after_the_tls_handshake_has_a_limited_time(
    requiring: TlsBroker, bystander: Connection
) -> None:
    mark = requiring.broker.mark()
    stream = requiring.dial(requiring.context(requiring.authority.client(USER)))
    assert read_to_end(stream) == b""
    the_line(requiring, mark, "connection 127.0.0.1:.* dropped: the handshake was not completed in time")


def test_connections_in_the_tls_handshake_count_towards_the_limit(requiring: TlsBroker) -> None:
    """The limit is 20: clients that connected first and send nothing keep others out only until their time is over."""
    mark = requiring.broker.mark()
    silent = [socket.create_connection(("127.0.0.1", requiring.port), PATIENCE_S) for _ in range(25)]
    wait_until(
        lambda: len(requiring.broker.lines("rejected connection from .* before TLS: too many connections", mark)) == 5
    )
    for stream in silent:
        assert read_to_end(stream) == b""
    wait_until(lambda: len(requiring.broker.lines("TLS handshake with .* longer", mark)) == 20)
    requiring.open(requiring.authority.client(USER)).close()


def test_looking_whether_the_port_is_open_is_no_event(requiring: TlsBroker, bystander: Connection) -> None:
    mark = requiring.broker.mark()
    for _ in range(5):
        socket.create_connection(("127.0.0.1", requiring.port), PATIENCE_S).close()
    # Clients that are refused after them are logged after them.
    greet_in_vain(requiring, requiring.context())
    the_line(requiring, mark, "did not return a certificate")


def test_a_cut_in_the_middle_of_a_record(requiring: TlsBroker, bystander: Connection) -> None:
    mark = requiring.broker.mark()
    connection = requiring.open(requiring.authority.client(USER))
    assert isinstance(connection.socket, ssl.SSLSocket)
    raw = socket.socket(fileno=connection.socket.detach())
    raw.sendall(b"\x17\x03\x03\x40\x00 only the start of a record")
    raw.close()
    the_line(requiring, mark, "connection 127.0.0.1:.* was closed by the client without connection.close")


def test_octets_that_are_no_record_end_only_this_connection(requiring: TlsBroker, bystander: Connection) -> None:
    mark = requiring.broker.mark()
    connection = requiring.open(requiring.authority.client(USER))
    assert isinstance(connection.socket, ssl.SSLSocket)
    raw = socket.socket(fileno=connection.socket.detach())
    raw.sendall(b"this is not how a record begins")
    read_to_end(raw)
    the_line(requiring, mark, "connection 127.0.0.1:.* was closed by the client without connection.close")


def test_each_event_is_one_line_and_bears_a_time(requiring: TlsBroker) -> None:
    for line in requiring.broker.words.splitlines():
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO|WARNING|ERROR) ", line), line

"""SIGHUP: certificates and limits change for later connections; a wrong value changes nothing and is named."""

from __future__ import annotations

import signal
import socket
import ssl
from collections.abc import Iterator

import pytest
from cryptography import x509
from pika.exceptions import ProbableAccessDeniedError

from tests.support.client import Connection

from .certificates import Authority, Pair
from .configured_broker import ConfiguredBroker
from .tls_brokers import PASSWORD, USER, TlsBroker, tls_broker
from .waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.only_ours("it is a process that the tests may signal")

NONSENSE = b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"
READ = "certificates and settings were reloaded"
LIMITS = {"channel_max": 10, "queues_max": 2, "connections_per_user_max": 0}
STAYED = "certificates and settings were not reloaded, and remain as they were: "


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    with tls_broker(tmp_path_factory.mktemp("secured"), "ask", limits=LIMITS) as broker:
        yield broker


@pytest.fixture
def secured(started: TlsBroker) -> Iterator[TlsBroker]:
    """Changes of its files and its configuration by a test are reverted."""
    files = (started.server.certificate, started.server.key, started.authority.certificate)
    contents = [file.read_bytes() for file in files]
    yield started
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    started.broker.change(limits=LIMITS, node={"log_level": "info"})
    assert READ in started.broker.hang_up()


def serial_of(pair: Pair) -> int:
    return x509.load_pem_x509_certificate(pair.certificate.read_bytes()).serial_number


def serial_shown(broker: TlsBroker, host: str = "127.0.0.1") -> int:
    """Returns the serial number of the certificate that a new connection receives."""
    with (
        socket.create_connection((host, broker.port), PATIENCE_S) as plain,
        broker.context().wrap_socket(plain, server_hostname="localhost") as stream,
    ):
        shown = stream.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def works(connection: Connection) -> bool:
    channel = connection.channel()
    queue = channel.declare_queue()
    channel.publish(b"m", queue)
    return channel.drain(queue) == [b"m"] and bool(channel.rpc("queue.delete", queue=queue))


def test_new_certificates_are_for_new_connections(secured: TlsBroker) -> None:
    old, new = serial_of(secured.server), secured.authority.server("renewed")
    before = secured.open(channel_max=5)
    assert serial_shown(secured) == old
    secured.server.replace(new)
    assert serial_shown(secured) == old, "nobody has been told yet"
    assert READ in secured.broker.hang_up()
    assert serial_shown(secured) == serial_of(new) != old
    if "amqps://[::1]" in secured.broker.words:
        assert serial_shown(secured, "::1") == serial_of(new)
    assert works(before)
    before.close()


def test_new_authorities_are_for_new_connections(secured: TlsBroker) -> None:
    ours = secured.authority.client(USER)
    theirs = Authority(secured.authority.directory / "theirs", "theirs").client(USER)
    before = secured.open(ours, channel_max=5)
    secured.authority.certificate.write_bytes((theirs.certificate.parent / "theirs.pem").read_bytes())
    assert READ in secured.broker.hang_up()
    # The broker's own certificate is still signed by the old authority, which the client must still trust.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(theirs.certificate, theirs.key)
    after = Connection.opened(secured.broker.address(USER, PASSWORD), stream=secured.dial(context), channel_max=5)
    assert works(before) and works(after)
    context.load_cert_chain(ours.certificate, ours.key)
    with pytest.raises((AssertionError, OSError)):
        Connection.opened(secured.broker.address(USER, PASSWORD), stream=secured.dial(context), channel_max=5)
    secured.broker.wait_for_line("TLS handshake with .* certificate of the client was rejected")
    for connection in (before, after):
        connection.close()


@pytest.mark.parametrize("fault", ["missing", "empty", "another's key", "nonsense", "authorities"])
def test_files_that_are_no_good_change_nothing(secured: TlsBroker, fault: str) -> None:
    old = serial_of(secured.server)
    before = secured.open(channel_max=5)
    match fault:
        case "missing":
            secured.server.key.rename(secured.server.key.with_suffix(".gone"))
        case "empty":
            secured.server.certificate.write_bytes(b"")
        case "another's key":
            secured.server.key.write_bytes(secured.authority.server("another").key.read_bytes())
        case "nonsense":
            secured.server.certificate.write_bytes(
                b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"
            )
        case _:
            secured.authority.certificate.write_bytes(b"nobody")
    # A limit that changes at the same time waits, too.
    secured.broker.change(limits={"channel_max": 20})
    mark = secured.broker.mark()
    answer = secured.broker.hang_up()
    assert STAYED in answer
    assert str(secured.authority.directory) in answer, "it names the file"
    assert len(secured.broker.lines("ERROR", mark)) == 1
    assert serial_shown_without_trust(secured) == old
    assert works(before)
    assert tuned_channel_max(secured.broker) == 10
    before.close()


def serial_shown_without_trust(broker: TlsBroker) -> int:
    """For a test that has damaged the authority's file, which clients read, too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with broker.dial(context) as stream:
        shown = stream.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def tuned_channel_max(broker: ConfiguredBroker) -> int:
    connection = Connection(broker.address(USER, PASSWORD))
    offered: int = connection.log_in().channel_max
    connection.drop()
    return offered


def test_a_configuration_that_is_no_good_changes_no_certificate(secured: TlsBroker) -> None:
    old = serial_of(secured.server)
    secured.server.replace(secured.authority.server("renewed"))
    secured.broker.change(limits={"chanel_max": 20})
    answer = secured.broker.hang_up()
    assert STAYED in answer and "did you mean channel_max?" in answer
    assert serial_shown(secured) == old
    secured.broker.remove("limits", "chanel_max")
    assert READ in secured.broker.hang_up()
    assert serial_shown(secured) != old


def test_limits_change_for_later_requests(secured: TlsBroker) -> None:
    with secured.broker.connect(USER, PASSWORD) as connection:
        for _ in range(2):
            connection.channel().queue_declare("", exclusive=True)
        secured.broker.change(limits={"channel_max": 20, "queues_max": 4, "connections_per_user_max": 2})
        assert READ in secured.broker.hang_up()
        assert tuned_channel_max(secured.broker) == 20
        assert connection._impl.params.channel_max == 10, "what was agreed on holds"
        for _ in range(2):
            connection.channel().queue_declare("", exclusive=True)
        with secured.broker.connect(USER, PASSWORD), pytest.raises(ProbableAccessDeniedError, match=r"limit \(2\)"):
            secured.broker.connect(USER, PASSWORD)


def test_the_log_level_changes(secured: TlsBroker) -> None:
    secured.broker.change(node={"log_level": "error"}, limits={"channel_max": 20})
    secured.broker.process.send_signal(signal.SIGHUP)
    # At this level the broker does not log that it received the signal.
    wait_until(lambda: tuned_channel_max(secured.broker) == 20)
    mark = secured.broker.mark()
    stray = socket.create_connection(("127.0.0.1", secured.broker.port), PATIENCE_S)
    stray.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert stray.recv(8) == b"AMQP\x00\x00\x09\x01"
    stray.close()
    assert works(secured.open(channel_max=5))
    secured.broker.change(node={"log_level": "info"})
    assert READ in secured.broker.hang_up()
    assert secured.broker.lines("WARNING", mark) == []


def test_many_signals_in_a_row(secured: TlsBroker) -> None:
    connection = secured.open(channel_max=5)
    for _ in range(50):
        secured.broker.process.send_signal(signal.SIGHUP)
    assert READ in secured.broker.hang_up()
    assert works(connection)
    connection.close()

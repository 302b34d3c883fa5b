"""TLS clients: with and without a certificate of their own, logins by certificate, large messages."""

from __future__ import annotations

import json
import random
import ssl
import subprocess
from collections.abc import Iterator

import aio_pika
import amqp
import pika
import pytest
from kombu.connection import Connection
from pika.credentials import ExternalCredentials
from pika.exceptions import AuthenticationError, ProbableAuthenticationError

from .certificates import BAD_KINDS, BadKind, Pair, bad_certificate
from .conftest import NODE_DIRECTORY
from .pika_mailbox import Mailbox, put, take
from .tls_brokers import PASSWORD, USER, TlsBroker, tls_broker
from .waiting import PATIENCE_S

pytestmark = pytest.mark.only_ours("it listens with certificates that were made for the tests")

BODY = random.Random(5).randbytes(5 * 1024 * 1024)
ONE_AND_A_BIT = 131072 + 1


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    with tls_broker(tmp_path_factory.mktemp("asking"), "ask", external=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def ignoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    with tls_broker(tmp_path_factory.mktemp("ignoring"), "ignore") as broker:
        yield broker


@pytest.fixture(scope="module")
def requiring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    with tls_broker(tmp_path_factory.mktemp("requiring"), "require") as broker:
        yield broker


@pytest.fixture
def clara(asking: TlsBroker) -> Pair:
    return asking.authority.client(USER)


@pytest.mark.parametrize("mode", ["ignoring", "asking", "requiring"])
def test_a_large_message_there_and_back(request: pytest.FixtureRequest, mode: str) -> None:
    """With a certificate that all three accept."""
    secured: TlsBroker = request.getfixturevalue(mode)
    with secured.connect(secured.authority.client(USER)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        bodies = [b"", b"x", BODY[:ONE_AND_A_BIT], BODY]
        put(channel, queue, bodies)
        mailbox = Mailbox(channel, queue, auto_ack=True)
        mailbox.wait_for(len(bodies))
        assert mailbox.bodies == bodies


def test_an_authority_is_enough_where_no_certificate_is_required(asking: TlsBroker) -> None:
    with asking.connect() as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        put(channel, queue, [b"m"])
        assert take(channel, queue).body == b"m"


@pytest.mark.parametrize("kind", BAD_KINDS)
def test_a_bad_certificate_does_not_matter_where_none_is_requested(ignoring: TlsBroker, kind: BadKind) -> None:
    pair = bad_certificate(ignoring.authority, kind)
    ignoring.connect(pair).close()
    assert "EXTERNAL" not in mechanisms(ignoring, pair).split()


def test_external_logs_in_as_the_certificates_name(asking: TlsBroker, clara: Pair) -> None:
    with asking.connect(clara, ExternalCredentials()) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        # The broker compares this property with the user of the connection.
        channel.confirm_delivery()
        channel.basic_publish("", queue, b"mine", pika.BasicProperties(user_id=USER))
        assert take(channel, queue).properties.user_id == USER


def test_a_password_is_still_good_with_a_certificate(asking: TlsBroker, clara: Pair) -> None:
    asking.connect(clara).close()
    with pytest.raises(ProbableAuthenticationError):
        asking.connect(clara, pika.PlainCredentials(USER, "wrong"))


def test_external_is_offered_only_to_clients_with_a_certificate(asking: TlsBroker, clara: Pair) -> None:
    assert "EXTERNAL" in mechanisms(asking, clara).split()
    assert "EXTERNAL" not in mechanisms(asking, None).split()
    with pytest.raises(AuthenticationError):
        asking.connect(None, ExternalCredentials())


def test_external_is_offered_only_when_it_is_configured(requiring: TlsBroker) -> None:
    """py-amqp prefers EXTERNAL to a password if it is offered, and the certificate's name need not be a user."""
    stranger = requiring.authority.client("somebody else", "stranger")
    assert mechanisms(requiring, stranger).split() == ["AMQPLAIN", "PLAIN"]
    files = {"ca_certs": requiring.authority.certificate, "certfile": stranger.certificate, "keyfile": stranger.key}
    options = {name: str(path) for name, path in files.items()}
    with amqp.Connection(f"localhost:{requiring.port}", USER, PASSWORD, ssl=options) as connection:
        connection.channel().close()


def mechanisms(broker: TlsBroker, pair: Pair | None) -> str:
    connection = broker.open(pair)
    offered: bytes = connection.methods_seen[0].mechanisms
    connection.close()
    return offered.decode()


def test_a_name_that_is_no_user_is_refused(asking: TlsBroker) -> None:
    stranger = asking.authority.client("somebody else", "stranger")
    with pytest.raises(ProbableAuthenticationError, match="mechanism EXTERNAL"):
        asking.connect(stranger, ExternalCredentials())
    asking.broker.wait_for_line("failed: the certificate's name 'somebody else' is not the name of a user")


async def test_aio_pika(asking: TlsBroker, clara: Pair) -> None:
    context = asking.context(clara)
    connection = await aio_pika.connect(
        host="localhost", port=asking.port, login=USER, password=PASSWORD, ssl=True, ssl_context=context
    )
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        await channel.default_exchange.publish(aio_pika.Message(BODY), queue.name)
        message = await queue.get(timeout=PATIENCE_S)
        assert message.body == BODY


def test_kombu(asking: TlsBroker, clara: Pair) -> None:
    files = {"ca_certs": asking.authority.certificate, "certfile": clara.certificate, "keyfile": clara.key}
    options = {name: str(path) for name, path in files.items()}
    for login in ({"userid": USER, "password": PASSWORD}, {"login_method": "EXTERNAL"}):
        with Connection(
            hostname="localhost",
            port=asking.port,
            ssl={**options, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "localhost"},
            **login,
        ) as connection:
            queue = connection.SimpleQueue("tls", queue_opts={"durable": False, "auto_delete": True})
            queue.put({"number": 7})
            assert queue.get(timeout=PATIENCE_S).payload == {"number": 7}
            queue.close()


AMQPLIB = """
const fs = require('fs'), amqp = require('amqplib');
const { port, ca, cert, key, user, password, external } = JSON.parse(process.argv[1]);
const options = { ca: [fs.readFileSync(ca)], cert: fs.readFileSync(cert), key: fs.readFileSync(key) };
if (external) options.credentials = amqp.credentials.external();
(async () => {
  const login = external ? '' : `${user}:${encodeURIComponent(password)}@`;
  const connection = await amqp.connect(`amqps://${login}localhost:${port}`, options);
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  const body = Buffer.alloc(5 * 1024 * 1024, 'x');
  channel.sendToQueue(queue, body);
  await channel.waitForConfirms();
  const message = await channel.get(queue, { noAck: true });
  if (!message.content.equals(body)) throw new Error('another body');
  await connection.close();
  console.log('done');
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.mark.parametrize("external", [False, True])
def test_amqplib(node: str, asking: TlsBroker, clara: Pair, external: bool) -> None:
    given = {
        "port": asking.port,
        "ca": str(asking.authority.certificate),
        "cert": str(clara.certificate),
        "key": str(clara.key),
        "user": USER,
        "password": PASSWORD,
        "external": external,
    }
    run = subprocess.run(
        [node, "-e", AMQPLIB, json.dumps(given)],
        cwd=NODE_DIRECTORY,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr


def test_nothing_secret_is_in_the_log(asking: TlsBroker) -> None:
    """The log is checked after all other tests here, at the most detailed level."""
    assert PASSWORD not in asking.broker.words
    assert "PRIVATE KEY" not in asking.broker.words

"""The Python blocks of the pages in docs/, run by an interpreter of their own, with this broker's address.

A fragment gets what it lacks: imports, names that the text around it explains, and a check of its result.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives import serialization

from tests.support.shell import HTTP_PORT, shell
from tests.support.traces import batches, bodies

from .certificates import Authority
from .configured_broker import ConfiguredBroker, quick_hash, running
from .documented import PYTHON, TLS, Place, block_at

pytestmark = [pytest.mark.slow, pytest.mark.only_ours("extensions of ours"), pytest.mark.timeout(300)]

PROGRAM_S: Final = 120.0
HOST: Final = re.compile(r"@(?:balancer|h\d)(?::5672)?(?:,h\d:5672)*")
STREAM: Final = """
import pika
connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", PORT))
channel = connection.channel()
"""
DECLARED: Final = """
channel.queue_declare("orders", durable=True, arguments={"x-queue-type": "stream"})
channel.confirm_delivery()
channel.basic_publish("", "orders", b"one")
"""


@dataclass(frozen=True)
class Fragment:
    before: str = ""
    after: str = ""
    replaced: tuple[tuple[str, str], ...] = ()
    in_coroutine: bool = False


FRAGMENTS: Final[dict[Place, Fragment]] = {
    ("data-port", "The client", 1): Fragment(
        STREAM + DECLARED, "assert (there.first_offset, there.end_offset, first_offset) == (0, 1, 0)"
    ),
    ("failover", "aio-pika", 2): Fragment("import aio_pika", "await connection.close()", in_coroutine=True),
    ("pipelines", "Ledgers", 1): Fragment(
        "from pandomq.ledger import Ledger",
        'assert len(open("publisher-7.jsonl").readlines()) == 3  # with the line that opens it',
        replaced=(("…", "..."),),
    ),
    ("streams", "Streams", 1): Fragment(
        after="""
            connection.process_data_events(1)
            assert channel.queue_declare("orders", passive=True).method.message_count == 1
        """,
        replaced=(("BlockingConnection()", 'BlockingConnection(pika.ConnectionParameters("127.0.0.1", PORT))'),),
    ),
    ("streams", "Archived streams", 1): Fragment(STREAM, 'channel.queue_declare("orders", passive=True)'),
    ("tracing", "The stream", 1): Fragment("body = BODY", "assert len(list(events.rows())) > 1"),
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def documented_broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[ConfiguredBroker]:
    """With the pages' user, and with `ann`, who has no password."""
    server = authority.server()
    tls = {"listen": "127.0.0.1:0", "certificate": server.certificate, "key": server.key}
    tls |= {"authorities": authority.certificate, "client_certificates": "ask"}
    broker = ConfiguredBroker(
        tmp_path_factory.mktemp("documented") / "b",
        node={"http": "127.0.0.1:0"},
        node_tls=tls,
        auth={"mechanisms": ["PLAIN", "AMQPLAIN", "EXTERNAL"]},
    )
    with running(broker):
        users = [("user", quick_hash("password")), ("ann", {"password_hash": ""})]
        broker.define(
            users=[{"name": name, "tags": "", **secret} for name, secret in users],
            permissions=[
                {"user": name, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"} for name, _ in users
            ],
        )
        yield broker


@pytest.fixture
def no_orders(documented_broker: ConfiguredBroker) -> Iterator[None]:
    """The pages' queue has other arguments on each page."""
    yield
    with documented_broker.connect() as connection:
        connection.channel().queue_delete("orders")


def run(code: str, directory: Path) -> None:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    assert done.returncode == 0, f"{code}\n{done.stderr}"


def whole(fragment: Fragment, text: str, port: int) -> str:
    for old, new in fragment.replaced:
        assert old in text
        text = text.replace(old, new)
    after = textwrap.dedent(fragment.after)
    if fragment.in_coroutine:
        inside = textwrap.indent(f"{text}\n{after}", "    ")
        text, after = f"import asyncio\nasync def main():\n{inside}", "asyncio.run(main())"
    (body,) = bodies(batches(1, messages=5, spacing_us=1000))
    code = f"PORT = {port}\nBODY = {body!r}\n{fragment.before}\n{text}\n{after}\n"
    return HOST.sub(f"@127.0.0.1:{port}", code)


def test_every_fragment_is_run() -> None:
    assert set(FRAGMENTS) == PYTHON


@pytest.mark.usefixtures("no_orders")
@pytest.mark.parametrize("place", sorted(FRAGMENTS), ids=str)
def test_python(documented_broker: ConfiguredBroker, place: Place, tmp_path: Path) -> None:
    run(whole(FRAGMENTS[place], block_at(place).text, documented_broker.port), tmp_path)


def test_login_with_a_certificate(documented_broker: ConfiguredBroker, authority: Authority, tmp_path: Path) -> None:
    """A certificate by the page's commands from the clients' authority, and a login by the page's parameters."""
    make, connect = (block_at(place) for place in sorted(TLS))
    with shell(tmp_path / "here", {HTTP_PORT: HTTP_PORT}) as bash:
        for name in ("clients-ca.pem", "broker-ca.pem"):
            (bash.directory / name).write_bytes(authority.certificate.read_bytes())
        (bash.directory / "clients-ca.key").write_bytes(
            authority._key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        for command in make.commands:
            bash.run(command)
        begin = "pika.ConnectionParameters("
        assert connect.text.count(begin) == 1
        code = connect.text.replace(begin, f"parameters = {begin}").replace("broker.example", "localhost")
        code = code.replace("5671", str(documented_broker.tls_port))
        check = "connection = pika.BlockingConnection(parameters)\nconnection.close()\n"
        run(f"import ssl\nimport pika\n{code}{check}", bash.directory)
    assert documented_broker.lines("ann")

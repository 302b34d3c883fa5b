"""Brokers with TLS, one for each policy on clients' certificates, and the settings that clients need to reach them."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pika

from tests.support.client import Connection
from tests.support.frames import dial

from .certificates import Authority, Pair, client_context
from .configured_broker import ConfiguredBroker, running

Mode = Literal["ignore", "ask", "require"]

USER, PASSWORD = "clara", "a secret of Clara's"
AUTH = {"default_user": USER, "default_password": PASSWORD}


@dataclass
class TlsBroker:
    broker: ConfiguredBroker
    authority: Authority
    server: Pair

    @property
    def port(self) -> int:
        return self.broker.tls_port

    def context(self, pair: Pair | None = None) -> ssl.SSLContext:
        return client_context(self.authority, pair)

    def connect(self, pair: Pair | None = None, credentials: Any = None, **more: Any) -> pika.BlockingConnection:
        return pika.BlockingConnection(
            pika.ConnectionParameters(
                "localhost",
                self.port,
                credentials=credentials or pika.PlainCredentials(USER, PASSWORD),
                ssl_options=pika.SSLOptions(self.context(pair), "localhost"),
                **more,
            )
        )

    def dial(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        """Opens a TLS connection without AMQP. A client with a bad certificate may receive the refusal only when it
        reads."""
        plain = dial("127.0.0.1", self.port)
        try:
            return context.wrap_socket(plain, server_hostname="localhost")
        except OSError:
            plain.close()
            raise

    def open(self, pair: Pair | None = None, **tune: Any) -> Connection:
        """A connection of the tests' own client."""
        return Connection.opened(self.broker.address(USER, PASSWORD), stream=self.dial(self.context(pair)), **tune)


@contextlib.contextmanager
def tls_broker(directory: Path, mode: Mode, *, external: bool = False, **sections: Any) -> Iterator[TlsBroker]:
    authority = Authority(directory / "tls")
    server = authority.server()
    files = {"certificate": server.certificate, "key": server.key, "authorities": authority.certificate}
    tls = {"listen": "127.0.0.1:0", "client_certificates": mode, **files}
    auth = {**AUTH, "mechanisms": ["PLAIN", "EXTERNAL"]} if external else AUTH
    broker = ConfiguredBroker(directory, node_tls=tls, auth=auth, **sections)
    with running(broker):
        yield TlsBroker(broker, authority, server)

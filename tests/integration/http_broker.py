"""A broker of ours with its HTTP API, and clients of both."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pika
from pika.exceptions import AMQPError

from tests.support.http import NO_TLS
from tests.support.ports import free_port

from .watched_broker import WatchedBroker

PATIENCE_S = 20.0


class HttpBroker:
    def __init__(self, directory: Path, *options: str) -> None:
        self.http_port = free_port()
        self.process = WatchedBroker(directory, "--http", f"127.0.0.1:{self.http_port}", *options)
        self._opened: list[httpx.Client] = []

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        for client in self._opened:
            client.close()
        self.process.check()
        self.process.stop()

    def client(self, user: str = "guest", password: str = "guest") -> httpx.Client:
        """Its paths are relative to /api/."""
        client = httpx.Client(
            base_url=f"http://127.0.0.1:{self.http_port}/api/",
            auth=(user, password),
            timeout=PATIENCE_S,
            verify=NO_TLS,
        )
        self._opened.append(client)
        return client

    def fetch(self, path: str, **more: Any) -> httpx.Response:
        """Sends the request without a login."""
        return httpx.get(f"http://127.0.0.1:{self.http_port}{path}", timeout=PATIENCE_S, verify=NO_TLS, **more)

    @contextlib.contextmanager
    def amqp(
        self, user: str = "guest", password: str = "guest", vhost: str = "/", name: str = ""
    ) -> Iterator[pika.BlockingConnection]:
        """`name` is the client's name of its connection."""
        parameters = pika.ConnectionParameters(
            "127.0.0.1",
            self.process.port,
            vhost,
            pika.PlainCredentials(user, password),
            client_properties={"connection_name": name},
        )
        connection = pika.BlockingConnection(parameters)
        try:
            yield connection
        finally:
            # The broker may have closed it meanwhile, on purpose.
            with contextlib.suppress(AMQPError):
                if connection.is_open:
                    connection.close()


def unique(prefix: str = "h") -> str:
    return f"{prefix}.{uuid.uuid4().hex[:12]}"


def escaped(name: str) -> str:
    """Escapes a name as a part of a path."""
    return quote(name, safe="")

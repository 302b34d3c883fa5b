"""One broker in memory with its HTTP API, asked without sockets."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import msgspec

from pandomq.admin.access.key_login import authorization
from pandomq.admin.application import Application
from pandomq.node.node import Node
from pandomq.node.output import VerifyPassword
from pandomq.node.settings import NodeSettings
from pandomq.runtime.clock import Clock
from pandomq.runtime.http import CONNECTION, HAS_DISCONNECTED
from pandomq.runtime.http_connections import OpenConnection

GUEST = "Basic " + base64.b64encode(b"guest:guest").decode()
JSON = {"host": "127.0.0.1:15672", "content-type": "application/json"}
LOOPBACK = ("127.0.0.1", 50000)


class Answer(NamedTuple):
    status: int
    body: bytes
    read_bytes: int
    """Of the request's body."""

    @property
    def reason(self) -> Any:
        return msgspec.json.decode(self.body)["reason"]


class OneBroker:
    def __init__(self, **settings: Any) -> None:
        self.settings = NodeSettings(password_log_cost=1, **settings)
        self.clock = Clock()
        self.node = Node(self.settings, Random(1), self.clock.now_ms())
        self.application = Application(self.node, self.settings, self.clock, self.wake)

    def wake(self) -> None:
        asyncio.get_running_loop().call_soon(self.step)

    def step(self) -> None:
        self.node.tick(self.clock.now_ms())
        output = self.node.step(self.clock.now_ms())
        for control in output.controls:
            if isinstance(control, VerifyPassword):
                attempt, question = control
                self.node.verified(attempt, question, fits=question.fits(), now_ms=self.clock.now_ms())
                self.wake()
        if output.more:
            self.wake()

    def ask(
        self,
        method: str,
        path: str,
        body: object = b"",
        *,
        headers: dict[str, str] | None = None,
        login: str | None = GUEST,
        client: tuple[str, int] = LOOPBACK,
        connection: OpenConnection | None = None,
    ) -> Answer:
        octets = body if isinstance(body, bytes) else msgspec.json.encode(body)
        given = {**JSON, "content-length": str(len(octets)), **(headers or {})}
        if login is not None:
            given["authorization"] = login
        return asyncio.run(self._ask(method, path, octets, given, client, connection))

    def by_key(self, key: bytes, method: str, path: str, body: object = b"") -> Answer:
        octets = body if isinstance(body, bytes) else msgspec.json.encode(body)
        login = authorization(key, method, path.encode(), octets, int(time.time()))
        return self.ask(method, path, octets, login=login)

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: dict[str, str],
        client: tuple[str, int],
        connection: OpenConnection | None = None,
        has_disconnected: Callable[[], bool] = lambda: False,
    ) -> Answer:
        pieces = _pieces(body)
        read_bytes, status, said = 0, 0, b""

        async def receive() -> Any:
            nonlocal read_bytes
            piece = next(pieces, b"")
            read_bytes += len(piece)
            return {"type": "http.request", "body": piece, "more_body": read_bytes < len(body)}

        async def send(event: Any) -> None:
            nonlocal status, said
            status = event.get("status", status)
            said += event.get("body", b"")

        target, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": target,
            "raw_path": target.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": client,
            "extensions": {
                HAS_DISCONNECTED: has_disconnected,
                CONNECTION: connection or OpenConnection(client[0], lambda: None),
            },
        }
        ticking = asyncio.create_task(self._tick())
        try:
            async with asyncio.timeout(20):
                await self.application(scope, receive, send)
        finally:
            ticking.cancel()
        return Answer(status, said, read_bytes)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.02)
            self.step()


def _pieces(body: bytes) -> Iterator[bytes]:
    return iter([body[start : start + 65536] for start in range(0, len(body), 65536)])

"""A broker's HTTP API for tests: real sockets, canned answers, and a record of what was asked."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    """As it stood in the request line."""
    login: str
    body: Any
    headers: dict[str, str]


@dataclass
class FakeApi:
    port: int = 0
    answers: dict[tuple[str, str], tuple[int, bytes, str]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://guest:guest@127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.target}" for request in self.requests]

    def on(self, method: str, target: str, answer: Any = None, status: int = 200) -> None:
        content = b"" if answer is None else json.dumps(answer).encode()
        self.answers[method, target] = (status, content, "application/json")

    def on_bytes(self, method: str, target: str, content: bytes, status: int = 200, kind: str = "text/html") -> None:
        self.answers[method, target] = (status, content, kind)

    def answer(self, request: Request) -> tuple[int, bytes, str]:
        self.requests.append(request)
        missing = (404, b'{"error":"Object Not Found","reason":"Not Found"}', "application/json")
        return self.answers.get((request.method, request.target), missing)


@contextmanager
def serving() -> Iterator[FakeApi]:
    api = FakeApi()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length)
            header = self.headers.get("Authorization") or ""
            login = base64.b64decode(header.removeprefix("Basic ")).decode() if header.startswith("Basic ") else ""
            body = json.loads(content) if content else None
            status, answer, kind = api.answer(Request(self.command, self.path, login, body, dict(self.headers)))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PUT = do_POST = do_DELETE = do  # noqa: N815 (http.server's names)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    api.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

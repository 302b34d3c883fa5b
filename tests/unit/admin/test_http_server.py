"""The server's patience with slow clients, with limits made small."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from pandomq.runtime import http
from pandomq.runtime.http import HttpServer
from pandomq.runtime.http_connections import ConnectionLimits
from pandomq.runtime.listen import ListenAddress

LARGE = b"x" * 20_000_000
LIMITS = ConnectionLimits()
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    body = LARGE if scope["path"] == "/large" else b"hello"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def serve(
    test: Callable[[HttpServer, int], Awaitable[None]],
    app: Any = application,
    limits: ConnectionLimits = LIMITS,
) -> None:
    async def run() -> None:
        server = HttpServer(app, limits)
        [address, *_] = await server.listen(ListenAddress("127.0.0.1", 0))
        try:
            async with asyncio.timeout(20):
                await test(server, address.port)
        finally:
            await server.shut_down()

    uvloop.run(run())


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Until the server hangs up, which it may do abruptly."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(int(length.split(b":")[1]))


def test_a_silent_client_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_S_MAX", 0.2)

    async def test(_server: HttpServer, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await rest(reader) == b""
        writer.close()

    serve(test)


@pytest.mark.parametrize("first", [False, True])
def test_a_head_that_comes_byte_by_byte_ends_in_time(monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    """This includes the head of a second request on the same connection."""
    monkeypatch.setattr(http, "HEAD_S_MAX", 0.3)

    async def test(_server: HttpServer, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if not first:
            writer.write(GET)
            assert b"hello" in await answer(reader)
        trickling = asyncio.create_task(trickle(writer))
        assert await rest(reader) == b""
        trickling.cancel()
        writer.close()

    serve(test)


async def trickle(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b"G")
            await writer.drain()
            await asyncio.sleep(0.02)


def test_a_client_that_does_not_read_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "WRITE_S_MAX", 0.3)

    async def test(server: HttpServer, port: int) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        writer.write(GET.replace(b" / ", b" /large "))
        while not server._state.connections:
            await asyncio.sleep(0.01)
        while server._state.connections:
            await asyncio.sleep(0.01)
        writer.close()

    serve(test)


def test_the_time_to_read_an_answer_ends_when_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the client has sent the next request, which takes longer, before it read the answer."""
    monkeypatch.setattr(http, "WRITE_S_MAX", 1.0)

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/":
            await asyncio.sleep(1.5)
        await application(scope, receive, send)

    async def test(_server: HttpServer, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        writer.write(GET.replace(b" / ", b" /large ") + GET)
        assert len(await answer(reader)) > len(LARGE)
        assert b"hello" in await answer(reader)
        writer.close()

    serve(test, slow)


def test_a_connection_whose_answer_is_not_sent_is_not_idle() -> None:
    """A message that the broker has removed from its queue may be in it."""

    async def logged_in(scope: Any, receive: Any, send: Any) -> None:
        scope["extensions"][http.CONNECTION].is_logged_in = True
        await application(scope, receive, send)

    async def test(_server: HttpServer, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        writer.write(GET.replace(b" / ", b" /large "))
        await asyncio.sleep(0.1)
        for _ in range(3):
            _, writer_of_other = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.sleep(0.02)
            writer_of_other.close()
        assert len(await answer(reader)) > len(LARGE)
        other, writer_of_other = await asyncio.open_connection("127.0.0.1", port)
        # Now it makes room.
        assert await rest(reader) == b""
        writer_of_other.write(GET)
        assert b"hello" in await answer(other)
        for one in (writer, writer_of_other):
            one.close()

    serve(test, logged_in, ConnectionLimits(connections_max=1))


def test_a_slow_application_is_no_slow_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_S_MAX", 0.1)

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.4)
        await application(scope, receive, send)

    async def test(_server: HttpServer, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        assert b"hello" in await answer(reader)
        writer.close()

    serve(test, slow)


def test_a_shutdown_lets_answers_be_finished() -> None:
    begun = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        await asyncio.sleep(0.2)
        await application(scope, receive, send)

    async def test(server: HttpServer, port: int) -> None:
        idle, writer_of_idle = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await begun.wait()
        stopping = asyncio.create_task(server.shut_down())
        assert b"hello" in await answer(reader)
        await stopping
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert await idle.read() == b""
        for one in (writer, writer_of_idle):
            one.close()

    serve(test, slow)


def test_a_client_that_closes_before_the_answer_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    """The server may or may not know of the close when it answers."""
    count, begun, answered = 20, asyncio.Event(), 0

    async def late(scope: Any, receive: Any, send: Any) -> None:
        nonlocal answered
        begun.set()
        while not scope["extensions"][http.HAS_DISCONNECTED]():
            await asyncio.sleep(0)
        await application(scope, receive, send)
        answered += 1

    async def test(server: HttpServer, port: int) -> None:
        for _ in range(count):
            begun.clear()
            _reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET)
            await begun.wait()
            writer.transport.abort()
        while server._state.tasks:
            await asyncio.sleep(0.01)

    serve(test, late)
    assert answered == count
    assert not caplog.records


@pytest.mark.parametrize("passes", range(8))
def test_a_client_that_connects_while_the_server_stops_is_answered_or_closed(
    passes: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(server: HttpServer, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(GET)
            for _ in range(passes):
                await asyncio.sleep(0)
            await server.shut_down()
            client.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(4) in (b"HTTP", b"")

    serve(test)
    assert not caplog.records


class ClosedTransport(asyncio.Transport):
    def is_closing(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is written."""

    def close(self) -> None:
        """It is."""


def test_a_request_that_is_read_when_the_connection_is_given_up_is_not_answered() -> None:
    asked: list[str] = []

    async def remembering(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])

    async def run() -> None:
        protocol = HttpServer(remembering, ConnectionLimits())._connected()
        protocol.connection_made(ClosedTransport())
        protocol.data_received(GET)
        await asyncio.sleep(0)
        protocol.connection_lost(None)

    asyncio.run(run())
    assert asked == []

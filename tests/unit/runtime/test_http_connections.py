"""HTTP connections: the limits of all and of one network, and which connection makes room."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pandomq.runtime import http, http_connections
from pandomq.runtime.http import CONNECTION, HttpServer
from pandomq.runtime.http_connections import ConnectionLimits, HttpConnections, OpenConnection
from pandomq.runtime.listen import ListenAddress

LIMITS = ConnectionLimits(connections_max=6, per_network_max=2)


class Crowd:
    """Connections with names, and which of them were closed, in order."""

    def __init__(self, limits: ConnectionLimits = LIMITS) -> None:
        self.connections = HttpConnections(limits)
        self.closed: list[str] = []

    def enter(self, name: str, host: str) -> OpenConnection:
        connection = OpenConnection(host, lambda: self.closed.append(name))
        self.connections.enter(connection)
        return connection

    def fill(self, *, busy: bool = False) -> list[OpenConnection]:
        entered = [
            self.enter(f"c{number}", f"10.0.0.{number}") for number in range(self.connections.limits.connections_max)
        ]
        for connection in entered if busy else ():
            self.connections.is_busy(connection)
            connection.is_logged_in = True
        return entered


def test_the_longest_idle_connection_makes_room() -> None:
    crowd = Crowd()
    c0, c1, *_ = crowd.fill()
    c0.is_logged_in = True
    crowd.connections.is_busy(c0)
    crowd.connections.is_busy(c1)
    crowd.connections.is_idle(c1)
    for name in ("c2", "c3", "c4", "c5", "c1"):
        assert crowd.enter("new", f"10.0.1.{name[1]}").refusal is None
        assert crowd.closed[-1] == name
    assert len(crowd.connections) == 6


def test_a_connection_without_a_login_makes_room_before_one_with_a_login() -> None:
    crowd = Crowd()
    c0, *_, last = crowd.fill()
    for connection in crowd.connections._all.idle:
        connection.is_logged_in = connection is not last
    crowd.enter("new 1", "10.0.1.1").is_logged_in = True
    assert crowd.closed == ["c5"]
    crowd.enter("new 2", "10.0.1.2")
    assert crowd.closed == ["c5", "c0"]
    assert c0.crowds == ()


def test_a_request_without_a_login_makes_room_before_a_connection_with_a_login() -> None:
    """Logins that wait in line could once take all connections: the oldest goes first, after the silent ones."""
    crowd = Crowd()
    entered = crowd.fill()
    for connection in entered[:2]:
        connection.is_logged_in = True
    for connection in (entered[0], entered[4], entered[3], entered[5], entered[4]):
        crowd.connections.is_busy(connection)
    for number in range(5):
        new = crowd.enter(f"new {number}", f"10.0.1.{number}")
        assert new.refusal is None
        new.is_logged_in = True
        crowd.connections.is_busy(new)
    assert crowd.closed == ["c2", "c4", "c3", "c5", "c1"]
    assert crowd.enter("late", "10.0.1.9").refusal is not None


@pytest.mark.parametrize(
    ("hosts", "limit"),
    [
        (["10.0.0.1"] * 4, 2),
        ([f"2001:db8::{number}" for number in range(1, 5)], 2),
        (["::ffff:10.0.0.1", "10.0.0.1"] * 2, 2),
        (["127.0.0.1", "127.0.0.2", "::1", "127.0.0.1"] * 2, 6),
        ([f"2001:db8:0:{number}::1" for number in range(1, 5)], None),
    ],
)
def test_a_network_makes_room_for_its_own(hosts: list[str], limit: int | None) -> None:
    crowd = Crowd(ConnectionLimits(connections_max=100, per_network_max=2))
    crowd.enter("another's", "192.0.2.1")
    for number, host in enumerate(hosts):
        assert crowd.enter(str(number), host).refusal is None
    assert crowd.closed == ([] if limit is None else [str(number) for number in range(len(hosts) - limit)])


@pytest.mark.parametrize("host", ["10.0.0.1", "10.0.1.1"])
def test_beyond_the_limits_there_is_room_for_health_checks(host: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of the network whose connections are all busy, and of another one."""
    crowd = Crowd(ConnectionLimits(connections_max=6, per_network_max=1))
    crowd.fill(busy=True)
    spare = [crowd.enter(f"s{number}", host) for number in range(http_connections.SPARE_MAX + 2)]
    key = "http_connections_per_network_max" if host == "10.0.0.1" else "http_connections_max"
    assert all(f"(limits.{key})" in str(one.refusal) for one in spare)
    assert crowd.closed == ["s0", "s1"]
    assert len(caplog.records) == 1
    for one in spare:
        crowd.connections.is_busy(one)
    crowd.enter("late", host)
    assert crowd.closed == ["s0", "s1", "s2"]
    assert len(crowd.connections) == 6 + http_connections.SPARE_MAX


def test_all_connections_leave_no_trace() -> None:
    crowd = Crowd()
    entered = [*crowd.fill(), crowd.enter("new", "10.0.0.1")]
    for connection in entered:
        crowd.connections.leave(connection)
        crowd.connections.is_idle(connection)
    assert (len(crowd.connections), crowd.connections._of_network, crowd.connections._all.idle) == (0, {}, {})


# With sockets.


def request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode()


def serve(test: Callable[[int], Awaitable[None]], limits: ConnectionLimits, hold: asyncio.Event | None = None) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        connection = scope["extensions"][CONNECTION]
        if scope["path"] in ("/login", "/held"):
            connection.is_logged_in = True
        if scope["path"] in ("/held", "/login-in-line"):
            assert hold is not None
            await hold.wait()
        body = (connection.refusal or "fine").encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    async def run() -> None:
        server = HttpServer(application, limits)
        [address, *_] = await server.listen(ListenAddress("127.0.0.1", 0))
        try:
            async with asyncio.timeout(20):
                await test(address.port)
        finally:
            if hold is not None:
                hold.set()
            while clients:
                clients.pop().close()
            await server.shut_down()

    asyncio.run(run())


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, path: str) -> None:
        self._writer.write(request(path))

    async def answer(self) -> str:
        head = await self._reader.readuntil(b"\r\n\r\n")
        return (await self._reader.readexactly(int(head.rpartition(b"content-length: ")[2].split()[0]))).decode()

    async def ask(self, path: str) -> str:
        self.send(path)
        return await self.answer()

    async def is_closed(self) -> bool:
        with contextlib.suppress(ConnectionResetError):
            assert await self._reader.read() == b""
        return True

    def close(self) -> None:
        self._writer.close()


clients: list[Client] = []


async def dial(port: int) -> Client:
    clients.append(Client(*await asyncio.open_connection("127.0.0.1", port)))
    return clients[-1]


def test_silent_clients_keep_no_other_client_out() -> None:
    """A thousand open sockets once were all that it took."""

    async def test(port: int) -> None:
        silent = [await dial(port) for _ in range(6)]
        administrator = await dial(port)
        assert await administrator.ask("/login") == "fine"
        silent += [await dial(port) for _ in range(6)]
        for client in silent[:7]:
            assert await client.is_closed()
        assert await administrator.ask("/") == "fine"

    serve(test, LIMITS)


def test_while_all_are_busy_a_health_check_has_room() -> None:
    hold = asyncio.Event()

    async def test(port: int) -> None:
        busy = [await dial(port) for _ in range(6)]
        for client in busy:
            client.send("/held")
        await asyncio.sleep(0.05)
        late = await dial(port)
        assert "limits.http_connections_per_network_max" in await late.ask("/readyz")
        hold.set()
        assert [await client.answer() for client in busy] == ["fine"] * 6
        assert await (await dial(port)).ask("/") == "fine"

    serve(test, LIMITS, hold)


def test_logins_in_line_keep_no_other_client_out() -> None:
    hold = asyncio.Event()

    async def test(port: int) -> None:
        guesses = [await dial(port) for _ in range(6)]
        for client in guesses:
            client.send("/login-in-line")
        await asyncio.sleep(0.05)
        assert await (await dial(port)).ask("/login") == "fine"
        assert await guesses[0].is_closed()
        hold.set()
        assert [await client.answer() for client in guesses[1:]] == ["fine"] * 5

    serve(test, LIMITS, hold)


def test_requests_sent_ahead_keep_a_connection_busy() -> None:
    hold = asyncio.Event()

    async def test(port: int) -> None:
        client = await dial(port)
        client.send("/")
        client.send("/held")
        assert await client.answer() == "fine"
        for _ in range(8):
            assert await (await dial(port)).ask("/") == "fine"
        hold.set()
        assert await client.answer() == "fine"

    serve(test, LIMITS, hold)


def test_an_answer_in_pieces_has_a_time_limit_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece is read in time, and all of them are not."""
    monkeypatch.setattr(http, "WRITE_S_MAX", 0.5)
    received = 0

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def run() -> None:
        nonlocal received
        server = HttpServer(application, ConnectionLimits())
        [address, *_] = await server.listen(ListenAddress("127.0.0.1", 0))
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port, limit=100_000)
        writer.write(request("/"))
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(15):
                while piece := await reader.read(100_000):
                    received += len(piece)
                    await asyncio.sleep(0.005)
        writer.close()
        await server.shut_down()

    asyncio.run(run())
    assert 2_000_000 < received < 200_000_000

"""Many clients in one process, each with all addresses, which reconnect at once whenever they lose their connection.

    python -m tests.integration.cluster.storm_clients COUNT HOST:PORT…

Each goes through its addresses, from a random one, as clients with a list do: a refusal or a broken connection makes it
try the next one, and after a round without success it waits a moment. They implement just enough AMQP to connect, so
that the load is on the brokers. The program prints its figures, some times a second, as a line of JSON; it ends with
its standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Coroutine
from random import Random
from typing import Any, cast

import uvloop

from pandomq.methods import ConnectionOpen, ConnectionStartOk, ConnectionTuneOk
from pandomq.wire.codec import encode_frame

from .process import PASSWORD, USER

FRAME_HEADER_BYTES = 7
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
OPEN_OK, CLOSE = b"\x00\x0a\x00\x29", b"\x00\x0a\x00\x32"
"""The first bytes of connection.open-ok and connection.close: class and method number."""
ROUND_PAUSE_S = (0.2, 2.0)
ATTEMPT_S_MAX = 30.0
"""The time that one address has to answer."""
REPORT_S = 0.2

GREETING = (
    PROTOCOL_HEADER
    + encode_frame(0, ConnectionStartOk({}, "PLAIN", f"\0{USER}\0{PASSWORD}".encode(), "en_US"))
    + encode_frame(0, ConnectionTuneOk(10, 131072, 0))
    + encode_frame(0, ConnectionOpen("/"))
)


class Visitor(asyncio.Protocol):
    """One attempt of one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._unread = b""
        self.inside = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(GREETING)
        self._timer = asyncio.get_running_loop().call_later(ATTEMPT_S_MAX, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while len(self._unread) >= FRAME_HEADER_BYTES:
            end = FRAME_HEADER_BYTES + int.from_bytes(self._unread[3:7], "big") + 1
            if len(self._unread) < end:
                return
            frame, self._unread = self._unread[FRAME_HEADER_BYTES:end], self._unread[end:]
            if frame.startswith(OPEN_OK):
                self.inside = True
                self._timer.cancel()
                self._client.got_in()
            elif frame.startswith(CLOSE):
                self._client.clients.refusals += 1
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._client.lost(self.inside)


class Client:
    def __init__(self, clients: Clients, chance: Random) -> None:
        self.clients = clients
        self._chance = chance
        self._turn = chance.randrange(len(clients.places))
        self._tried = 0
        self._outside_since_s = time.monotonic()

    def got_in(self) -> None:
        self._tried = 0
        self.clients.connected += 1
        self.clients.longest_outside_s = max(self.clients.longest_outside_s, time.monotonic() - self._outside_since_s)

    def lost(self, was_inside: bool) -> None:
        if was_inside:
            self.clients.connected -= 1
            self.clients.losses += 1
            self._outside_since_s = time.monotonic()
        self._go_on()

    def _go_on(self) -> None:
        self._turn += 1
        self._tried += 1
        if self._tried % len(self.clients.places):
            self.attempt()
        else:
            self.clients.loop.call_later(self._chance.uniform(*ROUND_PAUSE_S), self.attempt)

    def attempt(self) -> None:
        self.clients.attempt(self._connect())

    async def _connect(self) -> None:
        host, port = self.clients.places[self._turn % len(self.clients.places)]
        try:
            async with asyncio.timeout(ATTEMPT_S_MAX):
                await self.clients.loop.create_connection(lambda: Visitor(self), host, port)
        except OSError:
            self._go_on()


class Clients:
    def __init__(self, count: int, places: list[tuple[str, int]]) -> None:
        self.places = places
        self.loop = asyncio.get_running_loop()
        self.connected = self.refusals = self.losses = 0
        self.longest_outside_s = 0.0
        """The longest time that any client had to wait for a connection, since the last report."""
        self._attempts: set[asyncio.Task[None]] = set()
        for number in range(count):
            Client(self, Random(number)).attempt()

    def attempt(self, connecting: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(connecting)
        self._attempts.add(task)
        task.add_done_callback(self._attempts.discard)

    def report(self) -> None:
        seen: dict[str, float] = {"connected": self.connected, "refusals": self.refusals, "losses": self.losses}
        seen["outside_s"] = self.longest_outside_s
        self.longest_outside_s = 0.0
        print(json.dumps(seen), flush=True)


async def run(count: int, places: list[tuple[str, int]]) -> None:
    clients = Clients(count, places)
    over = asyncio.Event()
    clients.loop.add_reader(sys.stdin, over.set)
    while not over.is_set():
        await asyncio.sleep(REPORT_S)
        clients.report()
    # Thousands of attempts may be under way, and none of them needs a clean end.
    os._exit(0)


def main(count: str, *addresses: str) -> None:
    _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    places = [(host, int(port)) for host, _, port in (address.rpartition(":") for address in addresses)]
    uvloop.run(run(int(count), places))


if __name__ == "__main__":
    main(*sys.argv[1:])

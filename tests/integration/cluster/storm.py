"""Thousands of clients that lose their broker at the same moment, and all come back at once.

Each knows all addresses and tries one of them, then another; a refusal or a broken connection sends it on. They speak
just enough AMQP to be let in, so that the brokers are the ones at work.
"""

from __future__ import annotations

import asyncio
import threading
import time
from random import Random
from typing import cast

import uvloop

from pandomq.methods import ConnectionOpen, ConnectionStartOk, ConnectionTuneOk
from pandomq.wire.codec import encode_frame

from .cluster import Cluster
from .process import PASSWORD, USER

FRAME_HEADER_BYTES = 7
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
OPEN_OK, CLOSE = b"\x00\x0a\x00\x29", b"\x00\x0a\x00\x32"
"""How the methods begin that say yes and no: class and method number."""
RETRY_S = (0.5, 4.0)
"""As clients do, they wait a moment before they try the next address."""

GREETING = (
    PROTOCOL_HEADER
    + encode_frame(0, ConnectionStartOk({}, "PLAIN", f"\0{USER}\0{PASSWORD}".encode(), "en_US"))
    + encode_frame(0, ConnectionTuneOk(10, 131072, 0))
    + encode_frame(0, ConnectionOpen("/"))
)


class Visitor(asyncio.Protocol):
    """One attempt of one client."""

    def __init__(self, storm: Storm, chance: Random) -> None:
        self._storm = storm
        self._chance = chance
        self._unread = b""
        self._inside = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(GREETING)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while len(self._unread) >= FRAME_HEADER_BYTES:
            end = FRAME_HEADER_BYTES + int.from_bytes(self._unread[3:7], "big") + 1
            if len(self._unread) < end:
                return
            frame, self._unread = self._unread[FRAME_HEADER_BYTES:end], self._unread[end:]
            if frame.startswith(OPEN_OK):
                self._inside = True
                self._storm.connected += 1
            elif frame.startswith(CLOSE):
                self._storm.refusals += 1
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._storm.connected -= self._inside
        self._storm.try_later(self._chance)


class Storm:
    def __init__(self, cluster: Cluster, count: int) -> None:
        self._places = [(broker.host, broker.port) for broker in cluster]
        self._count = count
        self._ending = False
        self.connected = 0
        self.refusals = 0
        self._attempts: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=lambda: uvloop.run(self._run()), name="storm")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending = True
        if self._thread.is_alive():
            self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        for number in range(self._count):
            self._try(Random(number))
        while not self._ending:
            await asyncio.sleep(0.1)

    def try_later(self, chance: Random) -> None:
        if not self._ending:
            self._loop.call_later(chance.uniform(*RETRY_S), self._try, chance)

    def _try(self, chance: Random) -> None:
        attempt = self._loop.create_task(self._connect(chance))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)

    async def _connect(self, chance: Random) -> None:
        host, port = chance.choice(self._places)
        try:
            await self._loop.create_connection(lambda: Visitor(self, chance), host, port)
        except OSError:
            self.try_later(chance)


def wait_for_all(storm: Storm, count: int, patience_s: float) -> float:
    """Until all are connected; gives how long that took."""
    begin = time.monotonic()
    while storm.connected < count:
        assert time.monotonic() - begin < patience_s, f"{storm.connected} of {count} clients are connected"
        time.sleep(0.05)
    return time.monotonic() - begin

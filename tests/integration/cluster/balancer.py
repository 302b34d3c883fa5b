"""A load balancer as operators run it in front of brokers: it checks which of them is root, and connects clients to it.

It is for clients that know one address. When another broker is root, or the old one no longer reports that it is, its
connections are cut, as haproxy does with `on-marked-down shutdown-sessions`.
"""

from __future__ import annotations

import asyncio
import contextlib

from .cluster import Cluster
from .process import ClusterBroker

ASK_EVERY_S = 0.1
ASK_PATIENCE_S = 0.5
FALLS = 5
"""The number of successive checks in which a broker may fail to report that it is root, before its clients are cut off:
the machine may be busy."""
CHUNK_BYTES = 65536


class Balancer:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._target: ClusterBroker | None = None
        self._sessions: set[asyncio.Task[None]] = set()
        self._failures = 0
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._watch = asyncio.create_task(self._keep_watching())

    async def close(self) -> None:
        self._server.close()
        self._watch.cancel()
        self._lead_to(None)
        await asyncio.gather(self._watch, *self._sessions, return_exceptions=True)

    async def _keep_watching(self) -> None:
        while True:
            answers = await asyncio.gather(*(self._is_root(broker) for broker in self._cluster))
            roots = [broker for broker, is_root in zip(self._cluster, answers, strict=True) if is_root]
            if self._target in roots:
                self._failures = 0
            elif roots:
                self._lead_to(roots[0])
            elif self._target is not None:
                self._failures += 1
                if self._failures >= FALLS:
                    self._lead_to(None)
            await asyncio.sleep(ASK_EVERY_S)

    async def _is_root(self, broker: ClusterBroker) -> bool:
        try:
            async with asyncio.timeout(ASK_PATIENCE_S):
                reader, writer = await asyncio.open_connection(broker.host, broker.http_port)
                try:
                    request = f"GET /api/health/root HTTP/1.1\r\nHost: {broker.host}\r\nConnection: close\r\n\r\n"
                    writer.write(request.encode())
                    return b" 200 " in await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False

    def _lead_to(self, broker: ClusterBroker | None) -> None:
        if broker is not self._target:
            for session in self._sessions:
                session.cancel()
        self._target, self._failures = broker, 0

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        try:
            await self._join(reader, writer)
        # A client that disconnects, a broker that is gone, and a cut each end one session, and nothing else.
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            self._sessions.discard(task)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._target is None:
            return
        async with asyncio.timeout(ASK_PATIENCE_S):
            far_reader, far_writer = await asyncio.open_connection(self._target.host, self._target.port)
        try:
            ways = [
                asyncio.ensure_future(_carry(reader, far_writer)),
                asyncio.ensure_future(_carry(far_reader, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            far_writer.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()

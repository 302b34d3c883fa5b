"""The data port in the broker's loop: where it listens, who is connected, and the threads that send from files."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pandomq import limits
from pandomq.node.data.limits import CONNECTIONS_MAX, HELLO_MS_MAX
from pandomq.runtime.data_socket import DataSocket
from pandomq.runtime.door import House
from pandomq.runtime.listen import Address, Listener, Renewal
from pandomq.runtime.tls import TlsFiles

if TYPE_CHECKING:
    from pandomq.node.data.desk import DataDesk

THREADS: Final = 2
"""While the disk keeps one waiting another can send."""
DRAIN_S_MAX: Final = 0.5
"""How long the end of the broker waits for answers under way."""
REFUSED_MAX: Final = 64
"""Connections beyond the limit that may be there to hear so; who comes on top of those is hung up on."""


class DataListener:
    __slots__ = ("_listeners", "_store", "desk", "now_ms", "read_buffer", "sockets", "threads", "wake")

    def __init__(
        self,
        desk: Callable[[], DataDesk | None],
        now_ms: Callable[[], int],
        wake: Callable[[], None],
        store: Path,
    ) -> None:
        """`desk` is that of the node of the moment, None while there is none; `store` is where its files are."""
        self.desk = desk
        self.now_ms = now_ms
        self.wake = wake
        self._store = store
        self._listeners: list[Listener] = []
        self.sockets: set[DataSocket] = set()
        self.read_buffer = memoryview(bytearray(limits.READ_CHUNK_BYTES))
        self.threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="data")

    def listen(
        self, sockets: list[socket.socket], tls: TlsFiles | None = None, *, through_proxy: bool = False
    ) -> list[Address]:
        """Takes over sockets that listen already. Raises OSError if the TLS files are no good."""
        make = partial(DataSocket, self, through_proxy=through_proxy)
        house = House(make, lambda: HELLO_MS_MAX / 1000, self._has_room)
        opened = [Listener(sock, house, tls) for sock in sockets]
        for listener in opened:
            listener.start()
        self._listeners += opened
        return [listener.address for listener in opened]

    def path_of(self, file: str) -> Path:
        return self._store / file

    def read_certificates(self) -> Renewal:
        """The TLS files as they are now, for connections from then on. Raises OSError if they are no good."""
        return Renewal(self._listeners)

    async def stop_listening(self) -> None:
        for listener in self._listeners:
            await listener.close()

    async def shut_down(self) -> None:
        """After the node has parted with all."""
        deadline_s = asyncio.get_running_loop().time() + DRAIN_S_MAX
        while self.sockets and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.sleep(0.01)
        for one in list(self.sockets):
            one.abort()
        self.threads.shutdown(wait=False, cancel_futures=True)

    def _has_room(self, coming: int) -> bool:
        return len(self.sockets) + coming < CONNECTIONS_MAX + REFUSED_MAX

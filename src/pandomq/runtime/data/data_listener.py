"""The data port in the broker's loop: its listening sockets, its connections, and the threads that send from files."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pandomq import limits
from pandomq.node.data.limits import CONNECTIONS_MAX, HELLO_MS_MAX, REFUSED_MAX
from pandomq.runtime.data.data_socket import DataSocket
from pandomq.runtime.listen import ListenAddress, Listener, Renewal
from pandomq.runtime.socket_acceptor import SocketOwner
from pandomq.runtime.tls import TlsFiles

if TYPE_CHECKING:
    from pandomq.node.data.sessions import DataSessions

THREADS: Final = 2
"""While one waits for the disk another can send."""
DRAIN_S_MAX: Final = 0.5
"""How long the broker waits at its end for unfinished answers."""


class DataListener:
    __slots__ = ("_listeners", "_store", "now_ms", "read_buffer", "sessions", "sockets", "threads", "wake")

    def __init__(
        self,
        sessions: Callable[[], DataSessions | None],
        now_ms: Callable[[], int],
        wake: Callable[[], None],
        store: Path,
    ) -> None:
        """`sessions` returns the current node's, None while there is none; `store` is the directory of its files."""
        self.sessions = sessions
        self.now_ms = now_ms
        self.wake = wake
        self._store = store
        self._listeners: list[Listener] = []
        self.sockets: set[DataSocket] = set()
        self.read_buffer = memoryview(bytearray(limits.READ_CHUNK_BYTES))
        self.threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="data")

    def listen(
        self, sockets: list[socket.socket], tls: TlsFiles | None = None, *, through_proxy: bool = False
    ) -> list[ListenAddress]:
        """Takes over sockets that listen already. Raises OSError if the TLS files are unusable."""
        make = partial(DataSocket, self, through_proxy=through_proxy)
        owner = SocketOwner(make, lambda: HELLO_MS_MAX / 1000, self._has_room, f"{CONNECTIONS_MAX} on the data port")
        opened = [Listener(sock, owner, tls) for sock in sockets]
        for listener in opened:
            listener.start()
        self._listeners += opened
        return [listener.address for listener in opened]

    def path_of(self, file: str) -> Path:
        return self._store / file

    def read_certificates(self) -> Renewal:
        """Reads the TLS files again, for connections from then on. Raises OSError if they are unusable."""
        return Renewal(self._listeners)

    async def stop_listening(self) -> None:
        for listener in self._listeners:
            await listener.close()

    async def shut_down(self) -> None:
        """To be called after the node has ended all connections."""
        deadline_s = asyncio.get_running_loop().time() + DRAIN_S_MAX
        while self.sockets and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.sleep(0.01)
        for one in list(self.sockets):
            one.abort()
        self.threads.shutdown(wait=False, cancel_futures=True)

    def _has_room(self, coming: int) -> bool:
        return len(self.sockets) + coming < CONNECTIONS_MAX + REFUSED_MAX

"""A cable between a client and the broker that a test can cut: a TCP proxy on a port of its own.

A cut resets both ends of every connection through it, as a failing network or a restarted firewall does. New
connections are accepted again at once, unless the cable was unplugged.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from types import TracebackType

CHUNK_BYTES = 65536
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Cable:
    def __init__(self, host: str, port: int, greeting: bytes = b"") -> None:
        """`greeting` precedes the client's bytes, like the header of a proxy that names the client."""
        self._target = (host, port)
        self._greeting = greeting
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._plugged = True
        self.connections = 0
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Cable:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._plugged = False
        # Closing alone does not wake a thread that waits in accept.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def unplug(self) -> None:
        """Cuts, and closes every new connection until `plug`."""
        self._plugged = False
        self.cut()

    def plug(self) -> None:
        self._plugged = True

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._plugged:
                client.close()
                continue
            try:
                broker = socket.create_connection(self._target)
            except OSError:
                # The broker cannot be reached, which appears as a connection that is closed at once.
                client.close()
                continue
            broker.sendall(self._greeting)
            with self._lock:
                self._ends += [client, broker]
                self.connections += 1
            for source, sink in ((client, broker), (broker, client)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

"""Closes connections in order: a measured broker should not have to log lost connections."""

import contextlib
import socket
import time
from collections.abc import Sequence

from pandomq.bench import limits
from pandomq.bench.client import wire

_CLOSE_OK = wire.method(0, *wire.CONNECTION_CLOSE_OK)


def close_connections(connections: Sequence[socket.socket]) -> None:
    """Sends connection.close on all of them, waits for the answers within one time limit for all, and closes the
    sockets."""
    end = time.monotonic() + limits.CLOSE_TIMEOUT_S
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.settimeout(limits.CLOSE_TIMEOUT_S)
            connection.send(wire.connection_close())
    for connection in connections:
        with contextlib.suppress(OSError):
            _await_answer(connection, end)
        connection.close()


def _await_answer(connection: socket.socket, end: float) -> None:
    # Deliveries may still arrive; the answer comes last.
    tail = b""
    while not tail.endswith(_CLOSE_OK) and (left_s := end - time.monotonic()) > 0:
        connection.settimeout(left_s)
        data = connection.recv(limits.RECEIVE_BYTES_MIN)
        if not data:
            return
        tail = (tail + data)[-len(_CLOSE_OK) :]

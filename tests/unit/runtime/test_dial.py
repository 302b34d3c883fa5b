"""The sockets of the node's connections; an attempt to dial that is called off as it is answered harms nobody."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pandomq.cluster.dialed_connection import Dialed
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.output import AnyLink
from pandomq.runtime.connection_socket import ConnectionSocket
from pandomq.runtime.server import Server


class Transport:
    """As uvloop's is once its handle is closed."""

    closed = False

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: bytes) -> None:
        if self.closed:
            raise RuntimeError("the handler is closed")
        self.written.append(data)


def test_a_write_to_a_cancelled_socket_is_dropped() -> None:
    transport, dialed = Transport(), Dialed("n1.example:5672")
    socket = ConnectionSocket(cast(Server, None), lambda _socket, _transport: dialed)
    socket.connection_made(cast(asyncio.Transport, transport))
    socket.write(b"hello")
    transport.closed = True
    socket.write(b"are you there?")
    socket.close()
    assert transport.written == [b"hello"]


@pytest.mark.parametrize("link", [Dialed("n1.example:5672"), ClientLink(None, ("10.0.0.1", 1000), cast(Any, None))])
def test_accepted_and_dialed_sockets_report_the_same_events(link: AnyLink) -> None:
    reported: list[tuple[Any, ...]] = []
    names = ("received", "paused", "resumed", "disconnected")
    server = SimpleNamespace(**{name: lambda *facts, name=name: reported.append((name, *facts)) for name in names})
    socket = ConnectionSocket(cast(Server, server), lambda _socket, _transport: link)
    socket.buffer_updated(1)
    assert not reported, "the connection is not established"
    socket.connection_made(cast(asyncio.Transport, Transport()))
    socket.buffer_updated(5)
    socket.pause_writing()
    socket.resume_writing()
    socket.connection_lost(None)
    socket.connection_lost(None)
    socket.write(b"nobody is there")
    assert reported == [("received", link, 5), ("paused", link), ("resumed", link), ("disconnected", link)]

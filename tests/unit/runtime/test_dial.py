"""The dialing end of a link: an attempt that is called off as it is answered harms nobody."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from pandomq.node.dialed import Dialed
from pandomq.runtime.dial import PeerSocket
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


class Ears:
    """Stands for the server, and for the attempt."""

    def dialed(self, _dialed: Any) -> None:
        pass


def test_who_was_called_off_may_still_be_spoken_to() -> None:
    transport, ears = Transport(), Ears()
    socket = PeerSocket(cast(Server, ears), cast(Dialed, ears))
    socket.connection_made(cast(asyncio.Transport, transport))
    socket.write(b"hello")
    transport.closed = True
    socket.write(b"are you there?")
    socket.close()
    assert transport.written == [b"hello"]

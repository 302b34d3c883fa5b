"""A node in this process, with sockets that are byte strings and a clock that is a number.

It replaces the runtime: it passes received bytes to the node, carries out the effects of steps, and provides the time.
A step that does not end is a failure here, not a hang.
"""

from __future__ import annotations

import itertools
from random import Random
from typing import assert_never

from pandomq import limits
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.node import Node
from pandomq.node.output import Abort, Close, Dial, Output, PauseReading, ResumeReading, VerifyPassword
from pandomq.node.settings import NodeSettings
from tests.support.client import Address, Connection

STEPS_MAX = 10_000
MEMORY_BYTES = 16 * limits.MIB
SETTINGS = NodeSettings(name="fuzzed", memory_bytes_max=MEMORY_BYTES)
NOWHERE = Address("in this process", 0)


class NodeSocket:
    """Both ends of a socket: the client's bytes that the node has not read yet, and the node's output."""

    def __init__(self, world: NodeWorld, number: int) -> None:
        self.world = world
        self.written = bytearray()
        self.unread: list[bytes] = []
        self.reading_paused = False
        self.open = True
        self.link: ClientLink = world.node.accept(self, ("127.0.0.1", number), world.now_ms)

    # The client's use of the socket.

    def sendall(self, data: bytes | bytearray) -> None:
        self.world.send(self, bytes(data))
        self.world.settle()

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def recv(self, count: int) -> bytes:
        if not self.written and self.open:
            raise TimeoutError
        piece = bytes(self.written[:count])
        del self.written[:count]
        return piece

    def settimeout(self, _seconds: float) -> None:
        """Does nothing: nothing takes time here."""

    def close(self) -> None:
        self.world.hang_up(self)
        self.world.settle()


class NodeWorld:
    """One node and its sockets."""

    def __init__(self, random: Random, settings: NodeSettings = SETTINGS) -> None:
        self.now_ms = 1_000_000
        self.node = Node(settings, random, self.now_ms)
        self.sockets: dict[NodeSocket, None] = {}
        self.bytes_in = 0
        self.bytes_out = 0
        self._numbers = itertools.count(1)
        # There is one buffer for all reads, as in the runtime: if the node keeps a view without a copy, the next read
        # overwrites it.
        self._buffer = bytearray(limits.READ_CHUNK_BYTES)

    def connect(self) -> NodeSocket:
        socket = NodeSocket(self, next(self._numbers))
        self.sockets[socket] = None
        self.settle()
        return socket

    def send(self, socket: NodeSocket, data: bytes) -> None:
        """Bytes arrive; they are handled with the next `settle`."""
        if socket.reading_paused:
            socket.unread.append(data)
            return
        for start in range(0, len(data), len(self._buffer)):
            piece = data[start : start + len(self._buffer)]
            if socket.open:
                self._buffer[: len(piece)] = piece
                self.node.receive(socket.link, memoryview(self._buffer)[: len(piece)], self.now_ms)
                self.bytes_in += len(piece)

    def settle(self) -> None:
        """Takes steps until no work is left."""
        for _ in range(STEPS_MAX):
            if not self._carry_out(self.node.step(self.now_ms)):
                return
        raise AssertionError(f"the node still has work after {STEPS_MAX} steps")

    def _carry_out(self, output: Output) -> bool:
        for link, data in output.writes:
            assert link.socket.open, "written to a socket that is closed"
            link.socket.written += data
            self.bytes_out += len(data)
        again = output.more
        for control in output.controls:
            match control:
                case Close(link) | Abort(link):
                    self.hang_up(link.socket)
                    again = True
                case PauseReading(held):
                    held.socket.reading_paused = True
                case ResumeReading(held):
                    again = self._resume(held.socket) or again
                case VerifyPassword(attempt, question):
                    # The slow hash is not tested here: every unknown password is wrong.
                    self.node.verified(attempt, question, fits=False, now_ms=self.now_ms)
                    again = True
                case Dial():
                    raise AssertionError("there is no other broker")
                case _:
                    assert_never(control)
        return again

    def _resume(self, socket: NodeSocket) -> bool:
        socket.reading_paused = False
        unread, socket.unread = socket.unread, []
        for data in unread:
            self.send(socket, data)
        return bool(unread)

    def hang_up(self, socket: NodeSocket) -> None:
        """The socket is closed, by either side."""
        if socket.open:
            socket.open = False
            self.sockets.pop(socket, None)
            self.node.disconnected(socket.link, self.now_ms)

    def pass_time(self, elapsed_ms: int) -> None:
        """Deadlines in this time are reached in their order."""
        end_ms = self.now_ms + elapsed_ms
        for _ in range(STEPS_MAX):
            if self.node.next_deadline_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, self.node.next_deadline_ms)
            self.node.tick(self.now_ms)
            self.settle()
        else:
            raise AssertionError("deadlines come faster than they are met")
        self.now_ms = end_ms
        self.settle()

    def client(self) -> Connection:
        """The tests' own client, logged in."""
        return Connection.opened(NOWHERE, self.connect())

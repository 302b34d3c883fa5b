"""One end of a connection between two brokers: the socket of the broker at this end."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pandomq.node.output import AnyLink
    from pandomq.sim.machine import Machine
    from pandomq.sim.network.byte_network import ByteNetwork

WINDOW_BYTES: Final = 64 * 1024
"""The number of bytes that an end buffers before it asks its broker to pause."""


class ConnectionEnd:
    def __init__(self, network: ByteNetwork, machine: Machine, peer: Machine) -> None:
        self._network = network
        self.machine = machine
        self.path = (machine.name, peer.name)
        self._life = machine.life
        self.other: ConnectionEnd
        self.link: AnyLink | None = None
        """The state of the broker at this end."""
        self.open = True
        self.closing = False
        self.broken = False
        """Bytes that are written here no longer arrive."""
        self.reading_paused = False
        self.queue: deque[bytes | None] = deque()
        """Bytes on their way to the other end; None is the end of the connection."""
        self._queued_bytes = 0
        self._writing_paused = False
        self.due_ms = 0
        self.moving = False

    # The broker's side.

    def write(self, data: bytes | memoryview) -> None:
        if self.open and not self.closing:
            self.queue.append(bytes(data))
            self._queued_bytes += len(data)
            if self._queued_bytes > WINDOW_BYTES and not self._writing_paused:
                self._pause_writing()
            if not self.moving:
                self._network.move(self)

    def close(self) -> None:
        """Closes after the written bytes."""
        if self.open and not self.closing:
            self.closing = True
            self.queue.append(None)
            self._network.move(self)
            self._network.linger(self)

    def abort(self) -> None:
        if self.open:
            self.lose_all()
            self._network.tell_reset(self)

    def pause_reading(self) -> None:
        self.reading_paused = True

    def resume_reading(self) -> None:
        self.reading_paused = False
        self._network.move(self.other)

    def crashed(self, *, heard: bool) -> None:
        """Called by `ByteNetwork.died`."""

    def _pause_writing(self) -> None:
        self._writing_paused = True
        self.machine.paused(self)

    def _resume_writing(self) -> None:
        self._writing_paused = False
        if self.alive:
            self.machine.when_running(lambda: self.machine.resumed(self) if self.alive else None)

    # The network's side.

    def arrive(self) -> None:
        self._network.arrive(self)

    def take(self, bytes_max: int | None) -> bytes | None:
        """Takes all bytes that are under way, or at most `bytes_max`; returns None at the end."""
        queue = self.queue
        first = queue.popleft()
        if first is None:
            return None
        data = first
        if queue and queue[0] is not None:
            parts = [first]
            while queue and (part := queue[0]) is not None:
                parts.append(part)
                queue.popleft()
            data = b"".join(parts)
        size = self._network.split(len(data))
        if bytes_max is not None:
            size = min(size, max(1, bytes_max))
        if size < len(data):
            queue.appendleft(data[size:])
            data = data[:size]
        self._queued_bytes -= size
        if self._writing_paused and self._queued_bytes <= WINDOW_BYTES // 4:
            self._resume_writing()
        return data

    @property
    def alive(self) -> bool:
        """Whether the broker's process still has this end."""
        return self.open and not self.closing and self.machine.life == self._life and self.machine.reachable

    def receive(self, data: bytes) -> None:
        if self.alive:
            self.machine.received(self, data)
        elif not self.closing or not self.open:
            # Bytes that arrive while the end lingers are discarded.
            self._network.reject(self)

    def hear_end(self) -> None:
        """To be called when nothing more arrives at this end, and nothing more can be sent from it."""
        was_open = self.open and self.machine.life == self._life and self.machine.reachable
        self.vanish()
        if was_open:
            self.machine.disconnected(self)

    def lose_all(self) -> None:
        """Loses all bytes that are under way, and all that are written from now on."""
        self.closing = True
        self.queue.clear()

    def vanish(self) -> None:
        self.open = False
        self.queue.clear()

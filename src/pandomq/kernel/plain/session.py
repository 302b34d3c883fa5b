"""A client connection: its channels and the bytes that wait to be sent to it."""

import struct
from typing import TYPE_CHECKING, Any, Final

from pandomq.kernel.constants import BODY, FRAME_END, HEADER, METHOD
from pandomq.kernel.plain.chain import Chain
from pandomq.kernel.plain.message import Message

if TYPE_CHECKING:
    from pandomq.kernel.plain.channel import Channel
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.routes import Routes
    from pandomq.kernel.plain.trace import Trace

FRAME_START: Final = struct.Struct(">BHI")
FRAME_OVERHEAD: Final = 8
END: Final = bytes((FRAME_END,))
DELIVERY_END: Final = struct.Struct(">QB")
NEXT_FRAME_START: Final = struct.Struct(">BBHI")  # the end octet of the frame before, and the start of the next


class Session:
    """See the contract."""

    def __init__(self, engine: "Engine", owner: Any, routes: "Routes", frame_max: int, out_bytes_max: int) -> None:
        self.engine = engine
        self.owner = owner
        self.routes = routes
        self.frame_max = frame_max
        self.out_bytes_max = out_bytes_max
        self.uplink: Session | None = None
        self.trace: Trace | None = None
        self.label = b""
        self.writable = True
        self.closed = False
        self.is_dirty = False  # in the engine's list of sessions with outgoing bytes
        self.channels: dict[int, Channel] = {}
        # Consumers that rest because the session is full: first those that got a message since they were woken, then
        # the rest.
        self.served = Chain()
        self.starved = Chain()
        self._parts: list[bytes] = []
        self.pending_bytes = 0

    @property
    def is_full(self) -> bool:
        """The session's consumers must rest."""
        return not self.writable or self.pending_bytes > self.out_bytes_max

    def channel(self, number: int) -> "Channel | None":
        return self.channels.get(number)

    # --- bytes

    def write(self, data: bytes) -> None:
        if self.closed or not data:
            return
        self._parts.append(data)
        self.pending_bytes += len(data)
        if not self.is_dirty:
            self.is_dirty = True
            self.engine.dirty_sessions.append(self)

    def write_content(self, number: int, method: bytes, message: Message) -> None:
        self._write_content(number, (method,), len(method), message)

    def write_delivery(
        self, number: int, deliver_start: bytes, tag: int, redelivered: bool, message: Message, place: bytes = b""
    ) -> None:
        routing = message.routing
        method = (deliver_start, DELIVERY_END.pack(tag, redelivered), routing, place)
        size = len(deliver_start) + DELIVERY_END.size + len(routing) + len(place)
        self._write_content(number, method, size, message)

    def _write_content(self, number: int, method: tuple[bytes, ...], method_size: int, message: Message) -> None:
        header, body = message.header, message.body
        size_max = self.frame_max - FRAME_OVERHEAD if self.frame_max > FRAME_OVERHEAD else len(body)
        parts = [FRAME_START.pack(METHOD, number, method_size), *method]
        parts += NEXT_FRAME_START.pack(FRAME_END, HEADER, number, len(header)), header
        if len(body) <= size_max:
            if body:
                parts += NEXT_FRAME_START.pack(FRAME_END, BODY, number, len(body)), body
        else:
            for offset in range(0, len(body), size_max):
                chunk = body[offset : offset + size_max]
                parts += NEXT_FRAME_START.pack(FRAME_END, BODY, number, len(chunk)), chunk
        parts.append(END)
        self.write(b"".join(parts))

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        self.pending_bytes = 0
        self._wake()
        return data

    # --- flow

    def pause(self) -> None:
        self.writable = False

    def resume(self) -> None:
        self.writable = True
        self._wake()

    def _wake(self) -> None:
        if self.is_full:
            return
        for chain in (self.starved, self.served):
            while (consumer := chain.first) is not None:
                consumer.wake()

    def close(self, now_ms: int) -> None:
        self.closed = True
        self._parts.clear()
        self.pending_bytes = 0
        for channel in list(self.channels.values()):
            channel.close(now_ms)

    def check(self) -> None:
        assert self.pending_bytes == sum(map(len, self._parts))
        assert not self.pending_bytes or self in self.engine.dirty_sessions or not self.is_dirty
        assert all(channel.session is self and channel.number == number for number, channel in self.channels.items())
        for channel in self.channels.values():
            channel.check()
        self.served.check()
        self.starved.check()

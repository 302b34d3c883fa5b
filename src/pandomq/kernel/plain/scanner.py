"""Cuts the bytes of one connection into frames and joins contents, in one pass over each read.

A content (publish method, header, bodies) is assembled per channel, since channels interleave. What is kept between
two reads is the incomplete frame at the end and the incomplete contents; a connection that rests keeps nothing.
"""

import struct
from typing import Final

from pandomq.kernel import faults
from pandomq.kernel.constants import (
    ACK,
    BASIC,
    BODY,
    FRAME_END,
    HEADER,
    HEARTBEAT,
    METHOD,
    NACK,
    OVERSIZED,
    PUBLISH,
    REJECT,
)
from pandomq.kernel.faults import Frame, ScanFault
from pandomq.kernel.plain.fields import MALFORMED, traits_of
from pandomq.kernel.plain.message import Message, make_message
from pandomq.kernel.plain.runs import PublishRun, SettleRun

Output = PublishRun | SettleRun | Frame | ScanFault

FRAME_START: Final = struct.Struct(">BHI")
HEADER_START: Final = struct.Struct(">HHQ")
SETTLEMENT: Final = struct.Struct(">QB")
FRAME_OVERHEAD: Final = 8
PUBLISH_START: Final = struct.pack(">HH", BASIC, PUBLISH)
SETTLE_STARTS: Final = {struct.pack(">HH", BASIC, method_id): method_id for method_id in (ACK, REJECT, NACK)}
ROUTING_OFFSET: Final = 6  # class, method and the reserved short before exchange and routing key
NO_ROUTING: Final = b""
NO_HEADER: Final = b""


class _Broken(Exception):
    def __init__(self, fault: ScanFault) -> None:
        self.fault = fault


class Content:
    """A publish whose header or body has not come yet."""

    __slots__ = ("flags", "header", "missing", "parts", "routing", "skipped")

    def __init__(self, routing: bytes, flags: int) -> None:
        self.routing = routing
        self.flags = flags
        self.header: bytes | None = None
        self.parts: list[bytes] = []
        self.missing = 0
        self.skipped = False  # too large: already reported, its body is thrown away

    @property
    def buffered_bytes(self) -> int:
        return len(self.routing) + len(self.header or NO_HEADER) + sum(map(len, self.parts))


class Scanner:
    """See the contract; `_outputs` and the `_last` values live only during one feed."""

    def __init__(self, frame_max: int, body_size_max: int) -> None:
        self.frame_max = frame_max
        self.body_size_max = body_size_max
        self._tail: bytearray | None = None
        self._contents: dict[int, Content] = {}
        self._failed = False
        self._outputs: list[Output] = []
        self._last_routing = NO_ROUTING
        self._last_header = NO_HEADER
        self._last_traits = MALFORMED

    @property
    def buffered_bytes(self) -> int:
        return len(self._tail or b"") + sum(content.buffered_bytes for content in self._contents.values())

    def feed(self, data: bytes | bytearray | memoryview) -> list[Output]:
        if self._failed:
            return []
        outputs = self._outputs
        try:
            self._scan(data if isinstance(data, bytes) else bytes(data))
        except _Broken as broken:
            outputs.append(broken.fault)
            self._failed = True
            self._tail = None
            self._contents.clear()
        self._outputs = []
        self._last_routing, self._last_header, self._last_traits = NO_ROUTING, NO_HEADER, MALFORMED
        return outputs

    def _scan(self, data: bytes) -> None:
        offset = self._complete_tail(data) if self._tail is not None else 0
        end = len(data)
        while end - offset >= 7:
            kind, number, size = FRAME_START.unpack_from(data, offset)
            self._check_size(kind, size)
            stop = offset + FRAME_OVERHEAD + size
            if stop > end:
                break
            self._frame(kind, number, data, offset + 7, stop - 1)
            offset = stop
        if offset < end:
            self._tail = bytearray(data[offset:])

    def _complete_tail(self, data: bytes) -> int:
        # Adds to the kept frame what it lacks and no more, so that nothing is copied twice; says how much that was.
        tail = self._tail
        assert tail is not None
        offset: int = 0
        if len(tail) < 7:
            offset = 7 - len(tail)
            tail += data[:offset]
            if len(tail) < 7:
                return len(data)
        kind, number, size = FRAME_START.unpack_from(tail)
        self._check_size(kind, size)
        wanted: int = FRAME_OVERHEAD + size - len(tail)
        tail += data[offset : offset + wanted]
        offset += wanted
        if offset > len(data):
            return len(data)
        self._tail = None
        self._frame(kind, number, bytes(tail), 7, len(tail) - 1)
        return offset

    def _check_size(self, kind: int, size: int) -> None:
        # RabbitMQ forgives clients that forget the eight octets around the payload.
        if size > self.frame_max > 0:
            raise _Broken(faults.frame_too_large(kind, size, self.frame_max))

    def _frame(self, kind: int, number: int, data: bytes, start: int, stop: int) -> None:
        if data[stop] != FRAME_END:
            raise _Broken(faults.bad_frame_end(kind, data[start:stop], data[stop]))
        if kind == METHOD:
            self._method(number, data, start, stop)
        elif kind == HEADER:
            self._header(number, data, start, stop)
        elif kind == BODY:
            self._body(number, data, start, stop)
        elif kind == HEARTBEAT and start == stop:
            if number:
                raise _Broken(faults.misplaced_frame(kind, b""))
            self._outputs.append(Frame(HEARTBEAT, 0, b""))
        else:
            raise _Broken(faults.unknown_frame(kind, data[start:stop]))

    # --- methods

    def _method(self, number: int, data: bytes, start: int, stop: int) -> None:
        if stop - start < 4:
            raise _Broken(faults.unknown_frame(METHOD, data[start:stop]))
        content = self._contents.get(number)
        if content is not None:
            raise _Broken(faults.expected_header() if content.header is None else faults.expected_body())
        if data.startswith(PUBLISH_START, start):
            self._publish(number, data, start, stop)
            return
        settlement = SETTLE_STARTS.get(data[start : start + 4])
        if settlement is not None:
            self._settle(number, settlement, data, start, stop)
        else:
            self._outputs.append(Frame(METHOD, number, data[start:stop]))

    def _publish(self, number: int, data: bytes, start: int, stop: int) -> None:
        routing_start = start + ROUTING_OFFSET
        key_start = routing_start + 1 + data[routing_start] if routing_start < stop else stop
        if key_start >= stop or key_start + 1 + data[key_start] != stop - 1:
            raise _Broken(faults.undecodable_method(data[start + 4 : stop], BASIC, PUBLISH))
        if number == 0:
            raise _Broken(faults.method_on_channel_0(BASIC, PUBLISH))
        routing = data[routing_start : stop - 1]
        if routing == self._last_routing:
            routing = self._last_routing
        else:
            self._last_routing = routing
        self._contents[number] = Content(routing, data[stop - 1] & 3)

    def _settle(self, number: int, method_id: int, data: bytes, start: int, stop: int) -> None:
        if stop - start != 4 + SETTLEMENT.size:
            raise _Broken(faults.undecodable_method(data[start + 4 : stop], BASIC, method_id))
        if number == 0:
            raise _Broken(faults.method_on_channel_0(BASIC, method_id))
        tag, bits = SETTLEMENT.unpack_from(data, start + 4)
        run = self._outputs[-1] if self._outputs else None
        if not isinstance(run, SettleRun):
            run = SettleRun()
            self._outputs.append(run)
        multiple = method_id != REJECT and bool(bits & 1)
        requeue = bool(bits & 1) if method_id == REJECT else method_id == NACK and bool(bits & 2)
        run.items.append((number, method_id, tag, multiple, requeue))

    # --- contents

    def _header(self, number: int, data: bytes, start: int, stop: int) -> None:
        if stop - start < HEADER_START.size:
            raise _Broken(faults.unknown_frame(HEADER, data[start:stop]))
        if number == 0:
            raise _Broken(faults.misplaced_frame(HEADER, data[start:stop]))
        content = self._contents.get(number)
        if content is None:
            raise _Broken(faults.expected_method())
        if content.header is not None:
            raise _Broken(faults.expected_body())
        class_id, weight, body_size = HEADER_START.unpack_from(data, start)
        if class_id != BASIC:
            raise _Broken(faults.expected_class(class_id))
        if weight:
            raise _Broken(faults.expected_header())
        content.header = self._shared_header(data[start:stop])
        content.missing = body_size
        if body_size > self.body_size_max:
            content.skipped = True
            self._emit(number, content, b"", body_size, content.flags | OVERSIZED)
        elif body_size == 0:
            del self._contents[number]
            self._emit(number, content, b"", 0, content.flags)

    def _shared_header(self, header: bytes) -> bytes:
        if header == self._last_header:
            return self._last_header
        self._last_header = header
        self._last_traits = traits_of(header)
        return header

    def _body(self, number: int, data: bytes, start: int, stop: int) -> None:
        if number == 0:
            raise _Broken(faults.misplaced_frame(BODY, data[start:stop]))
        content = self._contents.get(number)
        if content is None:
            raise _Broken(faults.expected_method())
        if content.header is None:
            raise _Broken(faults.expected_header())
        size = stop - start
        if size > content.missing:
            raise _Broken(faults.body_too_long(size, content.missing))
        content.missing -= size
        if not content.skipped:
            content.parts.append(data[start:stop])
        if content.missing == 0:
            del self._contents[number]
            if not content.skipped:
                body = content.parts[0] if len(content.parts) == 1 else b"".join(content.parts)
                self._emit(number, content, body, len(body), content.flags)

    def _emit(self, number: int, content: Content, body: bytes, body_size: int, flags: int) -> None:
        header = content.header
        assert header is not None
        traits = self._last_traits if header is self._last_header else traits_of(header)
        message: Message = make_message(content.routing, header, body, body_size, traits)
        run = self._outputs[-1] if self._outputs else None
        if not isinstance(run, PublishRun):
            run = PublishRun()
            self._outputs.append(run)
        run.items.append((number, message, flags))

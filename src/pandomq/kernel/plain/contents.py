"""Joins the frames of contents: publish method, header, bodies, per channel, since channels interleave.

A content is kept until it is complete; then it becomes a message in a run, and the parser keeps nothing of it.
"""

import struct
from typing import Final, NamedTuple

from pandomq.kernel import faults
from pandomq.kernel.constants import BASIC, BODY, DELIVER, FRAME_END, HEADER, OVERSIZED, PUBLISH, PUBLISH_BITS
from pandomq.kernel.faults import Content, Frame, ScanFault
from pandomq.kernel.plain.arrivals import Arrival, read_arrival
from pandomq.kernel.plain.fields import MALFORMED, PROPERTIES_OFFSET, Traits, traits_of
from pandomq.kernel.plain.message import Message, make_message
from pandomq.kernel.plain.runs import DeliveryRun, PublishRun, SettleRun

Output = PublishRun | DeliveryRun | SettleRun | Content | Frame | ScanFault

FRAME_START: Final = struct.Struct(">BHI")
FRAME_OVERHEAD: Final = 8
FRAME_SIZE_MAX: Final = 0xFFFFFFFF
HEADER_START: Final = struct.Struct(">HHQ")
CONTENT_START: Final = struct.Struct(">BHIIQ")  # a frame's start, class and weight as one number, body size
PUBLISH_START: Final = struct.pack(">HH", BASIC, PUBLISH)
ROUTING_OFFSET: Final = 6  # class, method and the reserved short before exchange and routing key
NO_ROUTING: Final = b""
NO_HEADER: Final = b""


class Broken(Exception):
    """Nothing more is read from the connection."""

    def __init__(self, fault: ScanFault) -> None:
        self.fault = fault


class Incoming:
    """Collects a content; `missing` octets of the body are still to come once there is a header."""

    __slots__ = ("arrival", "flags", "header", "missing", "parts", "routing", "skipped", "traits")

    def __init__(self, routing: bytes, flags: int, arrival: Arrival | None) -> None:
        self.arrival = arrival  # None for a publish
        self.routing = routing
        self.flags = flags
        self.header: bytes | None = None
        self.traits = MALFORMED
        self.parts: list[bytes] = []
        self.missing = 0
        self.skipped = False  # too large: already reported, its body is discarded

    def message(self, body: bytes, body_size: int) -> Message:
        assert self.header is not None
        return make_message(self.routing, self.header, body, body_size, self.traits)

    @property
    def buffered_bytes(self) -> int:
        method = self.arrival.size if self.arrival is not None else 0
        return method + len(self.routing) + len(self.header or NO_HEADER) + sum(map(len, self.parts))


class Whole(NamedTuple):
    """A publish whose frames were adjacent."""

    start: bytes
    """All frames up to the body itself."""
    number: int
    routing: bytes
    header: bytes
    traits: Traits
    body_size: int
    flags: int

    def message(self, body: bytes) -> Message:
        return make_message(self.routing, self.header, body, self.body_size, self.traits)


class Contents:
    """The incomplete contents of a connection. `outputs` and the `_last` values live only during one feed."""

    frame_max: int
    body_size_max: int

    def __init__(self) -> None:
        self._contents: dict[int, Incoming] = {}
        self.outputs: list[Output] = []
        self.forget_last()

    def forget_last(self) -> None:
        self._last_routing, self._last_header, self._last_traits = NO_ROUTING, NO_HEADER, MALFORMED
        self._last_whole: Whole | None = None

    @property
    def size_max(self) -> int:
        # RabbitMQ tolerates clients that omit the eight octets around the payload.
        return self.frame_max or FRAME_SIZE_MAX

    def check_no_content(self, number: int) -> None:
        """Raises if a content is incomplete: a method must not arrive in the middle of a content."""
        content = self._contents.get(number)
        if content is not None and content.skipped:
            # A client that was told that its body is too large need not send the rest of it.
            del self._contents[number]
        elif content is not None:
            raise Broken(faults.expected_header() if content.header is None else faults.expected_body())

    def whole_publish(self, number: int, data: bytes, start: int, stop: int) -> int:
        # A publish whose frames are adjacent in this read, as nearly all are. Returns its end; 0 if anything about it
        # is unusual: then its frames are read one by one.
        header_start = stop + FRAME_OVERHEAD
        if not data.startswith(PUBLISH_START, start) or len(data) < header_start + PROPERTIES_OFFSET + 1:
            return 0
        kind, header_number, size, start_of_basic, body_size = CONTENT_START.unpack_from(data, stop + 1)
        header_stop = header_start + size
        body_start = header_stop + FRAME_OVERHEAD
        body_stop: int = body_start + body_size
        if (
            kind != HEADER
            or header_number != number
            or start_of_basic != BASIC << 16
            or not PROPERTIES_OFFSET <= size <= self.size_max
            or not 0 < body_size <= min(self.body_size_max, self.size_max)
            or body_stop >= len(data)
            or (BODY, number, body_size) != FRAME_START.unpack_from(data, header_stop + 1)
            or not data[stop] == data[header_stop] == data[body_stop] == FRAME_END
            or not _routing_fits(data, start, stop)
            or number in self._contents
            or number == 0
        ):
            return 0
        routing = self._shared_routing(data[start + ROUTING_OFFSET : stop - 1])
        header = self._shared_header(data[header_start:header_stop])
        whole = Whole(
            data[start - 7 : body_start],
            number,
            routing,
            header,
            self._last_traits,
            body_size,
            data[stop - 1] & PUBLISH_BITS,
        )
        self._last_whole = whole
        self._emit(number, whole.message(data[body_start:body_stop]), whole.flags)
        return body_stop + 1

    def repeated_publish(self, data: bytes, offset: int) -> int:
        # A publish that is equal to the last adjacent one up to its body, as most are; else 0. Returns its end.
        whole = self._last_whole
        if whole is None or self._contents or not data.startswith(whole.start, offset):
            return 0
        body_start = offset + len(whole.start)
        body_stop = body_start + whole.body_size
        if body_stop >= len(data) or data[body_stop] != FRAME_END:
            return 0
        self._emit(whole.number, whole.message(data[body_start:body_stop]), whole.flags)
        return body_stop + 1

    def publish(self, number: int, data: bytes, start: int, stop: int) -> None:
        if not _routing_fits(data, start, stop):
            raise Broken(faults.undecodable_method(data[start + 4 : stop], BASIC, PUBLISH))
        if number == 0:
            raise Broken(faults.method_on_channel_0(BASIC, PUBLISH))
        routing = self._shared_routing(data[start + ROUTING_OFFSET : stop - 1])
        self._contents[number] = Incoming(routing, data[stop - 1] & PUBLISH_BITS, None)

    def arrive(self, number: int, method_id: int, data: bytes, start: int, stop: int) -> None:
        arrival = read_arrival(method_id, data[start:stop])
        if arrival is None:
            raise Broken(faults.undecodable_method(data[start + 4 : stop], BASIC, method_id))
        if number == 0:
            raise Broken(faults.method_on_channel_0(BASIC, method_id))
        self._contents[number] = Incoming(self._shared_routing(arrival.routing), 0, arrival)

    def header(self, number: int, data: bytes, start: int, stop: int) -> None:
        if stop - start < HEADER_START.size:
            raise Broken(faults.unknown_frame(HEADER, data[start:stop]))
        if number == 0:
            raise Broken(faults.misplaced_frame(HEADER, data[start:stop]))
        content = self._contents.get(number)
        if content is None:
            raise Broken(faults.expected_method())
        if content.header is not None:
            raise Broken(faults.expected_body())
        class_id, weight, body_size = HEADER_START.unpack_from(data, start)
        if class_id != BASIC:
            raise Broken(faults.expected_class(class_id))
        if weight:
            raise Broken(faults.expected_header())
        content.header = self._shared_header(data[start:stop])
        content.traits = self._last_traits
        content.missing = body_size
        if body_size > self.body_size_max and content.arrival is not None:
            raise Broken(faults.body_too_large(body_size, self.body_size_max))
        if body_size > self.body_size_max:
            content.skipped = True
            self._emit(number, content.message(b"", body_size), content.flags | OVERSIZED)
        elif body_size == 0:
            del self._contents[number]
            self._complete(number, content, content.message(b"", 0))

    def _shared_routing(self, routing: bytes) -> bytes:
        if routing != self._last_routing:
            self._last_routing = routing
        return self._last_routing

    def _shared_header(self, header: bytes) -> bytes:
        # Messages of one publisher mostly have equal headers; these are kept and parsed once. Sets _last_traits.
        if header != self._last_header:
            self._last_header = header
            self._last_traits = traits_of(header)
        return self._last_header

    def body(self, number: int, data: bytes, start: int, stop: int) -> None:
        if number == 0:
            raise Broken(faults.misplaced_frame(BODY, data[start:stop]))
        content = self._contents.get(number)
        if content is None:
            raise Broken(faults.expected_method())
        if content.header is None:
            raise Broken(faults.expected_header())
        size = stop - start
        if size > content.missing:
            raise Broken(faults.body_too_long(size, content.missing))
        content.missing -= size
        if not content.skipped:
            content.parts.append(data[start:stop])
        if content.missing == 0:
            del self._contents[number]
            if not content.skipped:
                body = content.parts[0] if len(content.parts) == 1 else b"".join(content.parts)
                self._complete(number, content, content.message(body, len(body)))

    def _complete(self, number: int, content: Incoming, message: Message) -> None:
        arrival = content.arrival
        if arrival is None:
            self._emit(number, message, content.flags)
        elif arrival.method_id == DELIVER:
            run = self.outputs[-1] if self.outputs else None
            if not isinstance(run, DeliveryRun):
                run = DeliveryRun()
                self.outputs.append(run)
            message.number, message.producer = arrival.place
            run.items.append((number, arrival.consumer_tag, arrival.delivery_tag, arrival.redelivered, message))
        else:
            # The type checker knows only the contract's Message.
            self.outputs.append(Content(number, arrival.payload, message))  # type: ignore[arg-type]

    def _emit(self, number: int, message: Message, flags: int) -> None:
        run = self.outputs[-1] if self.outputs else None
        if not isinstance(run, PublishRun):
            run = PublishRun()
            self.outputs.append(run)
        run.items.append((number, message, flags))


def _routing_fits(data: bytes, start: int, stop: int) -> bool:
    # Whether exchange, routing key and the octet of bits fill the arguments of a publish exactly.
    exchange = start + ROUTING_OFFSET
    if exchange >= stop:
        return False
    key = exchange + 1 + data[exchange]
    return key < stop and key + 1 + data[key] == stop - 1

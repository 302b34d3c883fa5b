"""Counts deliveries in the bytes of one channel without parsing each of them.

Deliveries of one load are equally long: the same consumer tag length, exchange, key length, properties, body size. So,
once two in a row were parsed and found to be of equal length (the stride), a read holds bytes ÷ stride of them. That is
verified for every read, not assumed: delivery tags rise by one, so if the first delivery in the read has the expected
tag, and the last whole one, found by the stride, has the tag that the division gives, then there is nothing else in
between. Otherwise this read's frames are walked one by one: slower, and always right.
"""

import struct
from typing import NamedTuple

from pandomq.bench.client import wire

_TAG = struct.Struct(">Q")
_BODY_SIZE = struct.Struct(">Q")
_TAG_LENGTH_AT = wire.METHOD_HEAD.size
_HEADER_FIXED_BYTES = 12
"""Of a content header: class, weight, and body size."""


class DeliverySpan(NamedTuple):
    """Whole deliveries of equal length, one after another in a buffer."""

    start: int
    deliveries: int
    stride: int


class DeliveryCounter:
    def __init__(self) -> None:
        self.delivered = 0
        self.walked = 0
        """Deliveries that had to be counted frame by frame: nearly none in a correct run."""
        self.spans: list[DeliverySpan] = []
        """The positions of the last call's deliveries, for readers of the bodies."""
        self._stride = 0
        self._head = b""
        self._tag_at = 0
        self._header = b""
        self._header_at = 0

    def count(self, buffer: bytearray, start: int, end: int) -> int:
        """Counts the whole deliveries in buffer[start:end]; returns the start of the first unfinished one."""
        self.spans.clear()
        stride = self._stride
        if stride:
            whole = (end - start) // stride
            if whole and self._fits(buffer, start, whole):
                self.delivered += whole
                self.spans.append(DeliverySpan(start, whole, stride))
                start += whole * stride
        # The rest is shorter than a stride: nearly always the beginning of a delivery, but maybe another frame.
        return self._walk(buffer, start, end)

    def _fits(self, buffer: bytearray, start: int, whole: int) -> bool:
        stride, tag_at = self._stride, self._tag_at
        last = start + (whole - 1) * stride
        return (
            buffer[last + stride - 1] == wire.FRAME_END
            and buffer.startswith(self._head, start)
            and buffer.startswith(self._head, last)
            # Only both heads together fix the length: otherwise a longer body would pass if one of its frames happens
            # to end there.
            and buffer.startswith(self._header, last + self._header_at)
            and _TAG.unpack_from(buffer, start + tag_at)[0] == self.delivered + 1
            and _TAG.unpack_from(buffer, last + tag_at)[0] == self.delivered + whole
        )

    def _walk(self, buffer: bytearray, start: int, end: int) -> int:
        previous = 0
        while True:
            after = _whole_frame(buffer, start, end)
            if not after:
                return start
            if not _is_delivery(buffer, start):
                _note_other(buffer, start, after)
                start = after
                continue
            done = _whole_content(buffer, after, end)
            if not done:
                return start
            self._check_tag(buffer, start)
            length = done - start
            self.delivered += 1
            self.walked += 1
            self.spans.append(DeliverySpan(start, 1, length))
            if length == previous:
                self._learn(buffer, start, length)
            previous = length
            start = done

    def _check_tag(self, buffer: bytearray, start: int) -> None:
        (tag,) = _TAG.unpack_from(buffer, start + _tag_offset(buffer, start))
        if tag != self.delivered + 1:
            raise wire.BrokerRefused(f"got delivery tag {tag}, expected {self.delivered + 1}")

    def _learn(self, buffer: bytearray, start: int, length: int) -> None:
        # The consumer tag's own text is left out of the comparison: several consumers may share the channel.
        self._head = bytes(buffer[start : start + _TAG_LENGTH_AT + 1])
        self._tag_at = _tag_offset(buffer, start)
        self._header_at = int(wire.FRAME_HEAD.unpack_from(buffer, start)[2]) + wire.FRAME_OVERHEAD_BYTES
        header = start + self._header_at
        self._header = bytes(buffer[header : header + wire.FRAME_HEAD.size + _HEADER_FIXED_BYTES])
        self._stride = length


def _tag_offset(buffer: bytearray, start: int) -> int:
    return _TAG_LENGTH_AT + 1 + buffer[start + _TAG_LENGTH_AT]


def _whole_frame(buffer: bytearray, start: int, end: int) -> int:
    """The end of the frame at `start`, or 0 if it is incomplete."""
    if end - start < wire.FRAME_OVERHEAD_BYTES:
        return 0
    after = start + int(wire.FRAME_HEAD.unpack_from(buffer, start)[2]) + wire.FRAME_OVERHEAD_BYTES
    if after > end:
        return 0
    if buffer[after - 1] != wire.FRAME_END:
        raise wire.BrokerRefused("a frame does not have its announced length")
    return after


def _whole_content(buffer: bytearray, start: int, end: int) -> int:
    """The end of the content that begins at `start` with its header, or 0 if it is incomplete."""
    at = _whole_frame(buffer, start, end)
    if not at:
        return 0
    if buffer[start] != wire.FRAME_HEADER:
        raise wire.BrokerRefused(f"got a frame of type {buffer[start]}, expected a content header")
    (missing_bytes,) = _BODY_SIZE.unpack_from(buffer, start + wire.FRAME_HEAD.size + 4)
    while missing_bytes > 0:
        after = _whole_frame(buffer, at, end)
        if not after:
            return 0
        missing_bytes -= after - at - wire.FRAME_OVERHEAD_BYTES
        at = after
    return at


def _is_delivery(buffer: bytearray, start: int) -> bool:
    return buffer[start] == wire.FRAME_METHOD and _method_at(buffer, start) == wire.BASIC_DELIVER


def _method_at(buffer: bytearray, start: int) -> wire.Method:
    class_id, method_id = struct.unpack_from(">HH", buffer, start + wire.FRAME_HEAD.size)
    return class_id, method_id


def _note_other(buffer: bytearray, start: int, after: int) -> None:
    """A frame that is no delivery: harmless, or the end of the measurement."""
    if buffer[start] == wire.FRAME_HEARTBEAT:
        return
    got = _method_at(buffer, start)
    if got in (wire.CONNECTION_CLOSE, wire.CHANNEL_CLOSE):
        raise wire.BrokerRefused(wire.refusal(bytes(buffer[start + wire.FRAME_HEAD.size : after])))
    if got == wire.BASIC_CANCEL:
        raise wire.BrokerRefused("the broker cancelled the consumer")

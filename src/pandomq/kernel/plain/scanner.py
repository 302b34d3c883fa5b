"""Cuts the bytes of one connection into frames, in one pass over each read.

Between two reads it keeps the incomplete frame at the end and the incomplete contents; an idle connection keeps
nothing.
"""

import struct
from typing import Final

from pandomq.kernel import faults
from pandomq.kernel.constants import ACK, BASIC, BODY, FRAME_END, HEADER, HEARTBEAT, METHOD, NACK, REJECT
from pandomq.kernel.faults import Frame
from pandomq.kernel.plain.arrivals import ARRIVAL_STARTS
from pandomq.kernel.plain.contents import FRAME_OVERHEAD, FRAME_START, PUBLISH_START, Broken, Contents, Output
from pandomq.kernel.plain.runs import SettleRun

SETTLEMENT: Final = struct.Struct(">QB")
SETTLE_STARTS: Final = {struct.pack(">HH", BASIC, method_id): method_id for method_id in (ACK, REJECT, NACK)}


class Scanner(Contents):
    """See the contract."""

    def __init__(self, frame_max: int, body_size_max: int, inward: bool = False) -> None:
        super().__init__()
        self._inward = inward
        self.frame_max = frame_max
        self.body_size_max = body_size_max
        self._tail: bytearray | None = None
        self._failed = False

    @property
    def buffered_bytes(self) -> int:
        return len(self._tail or b"") + sum(content.buffered_bytes for content in self._contents.values())

    def feed(self, data: bytes | bytearray | memoryview) -> list[Output]:
        if self._failed:
            return []
        outputs = self.outputs
        try:
            self._scan(data if isinstance(data, bytes) else bytes(data))
        except Broken as broken:
            outputs.append(broken.fault)
            self._failed = True
            self._tail = None
            self._contents.clear()
        self.outputs = []
        self.forget_last()
        return outputs

    def _scan(self, data: bytes) -> None:
        offset = self._complete_tail(data) if self._tail is not None else 0
        end = len(data)
        while end - offset >= 7:
            again = self.repeated_publish(data, offset)
            if again:
                offset = again
                continue
            kind, number, size = FRAME_START.unpack_from(data, offset)
            self._check_size(kind, size)
            stop = offset + FRAME_OVERHEAD + size
            if stop > end:
                break
            if kind == METHOD and not self._inward:
                whole = self.whole_publish(number, data, offset + 7, stop - 1)
                if whole:
                    offset = whole
                    continue
            self._frame(kind, number, data, offset + 7, stop - 1)
            offset = stop
        if offset < end:
            self._tail = bytearray(data[offset:])

    def _complete_tail(self, data: bytes) -> int:
        # Adds to the kept frame only what it lacks, so that nothing is copied twice; returns how much that was.
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
        if size > self.size_max:
            raise Broken(faults.frame_too_large(kind, size, self.frame_max))

    def _frame(self, kind: int, number: int, data: bytes, start: int, stop: int) -> None:
        if data[stop] != FRAME_END:
            raise Broken(faults.bad_frame_end(kind, data[start:stop], data[stop]))
        if kind == METHOD:
            self._method(number, data, start, stop)
        elif kind == HEADER:
            self.header(number, data, start, stop)
        elif kind == BODY:
            self.body(number, data, start, stop)
        elif kind == HEARTBEAT and start == stop:
            if number:
                raise Broken(faults.misplaced_frame(kind, b""))
            self.outputs.append(Frame(HEARTBEAT, 0, b""))
        else:
            raise Broken(faults.unknown_frame(kind, data[start:stop]))

    # --- methods

    def _method(self, number: int, data: bytes, start: int, stop: int) -> None:
        if stop - start < 4:
            raise Broken(faults.unknown_frame(METHOD, data[start:stop]))
        self.check_no_content(number)
        method_start = data[start : start + 4]
        if method_start == PUBLISH_START and not self._inward:
            self.publish(number, data, start, stop)
            return
        if method_start in ARRIVAL_STARTS and self._inward:
            self.arrive(number, ARRIVAL_STARTS[method_start], data, start, stop)
            return
        settlement = SETTLE_STARTS.get(method_start)
        if settlement is not None:
            self._settle(number, settlement, data, start, stop)
        else:
            self.outputs.append(Frame(METHOD, number, data[start:stop]))

    def _settle(self, number: int, method_id: int, data: bytes, start: int, stop: int) -> None:
        if stop - start != 4 + SETTLEMENT.size:
            raise Broken(faults.undecodable_method(data[start + 4 : stop], BASIC, method_id))
        if number == 0:
            raise Broken(faults.method_on_channel_0(BASIC, method_id))
        tag, bits = SETTLEMENT.unpack_from(data, start + 4)
        run = self.outputs[-1] if self.outputs else None
        if not isinstance(run, SettleRun):
            run = SettleRun()
            self.outputs.append(run)
        multiple = method_id != REJECT and bool(bits & 1)
        requeue = bool(bits & 1) if method_id == REJECT else method_id == NACK and bool(bits & 2)
        run.items.append((number, method_id, tag, multiple, requeue))

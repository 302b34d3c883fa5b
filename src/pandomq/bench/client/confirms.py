"""Counts publisher confirms: how many of the messages sent so far the broker has acked or nacked.

Acks and nacks are frames of one size, so a read of them is unpacked at once; if a broker settles each message by a
frame of its own, in order, they are counted without a loop. They may come in any order; all up to `settled_upto` are
settled, and the few beyond it are kept one by one.
"""

import struct

from pandomq.bench.client import wire

_RUN_MIN = 8
_TELLING_OCTETS = (10, 18, 19)
"""The positions of the low octets of method and tag, and of the bits, in the frame of an ack or nack."""
_OCTETS = bytes(range(256))


class ConfirmCounter:
    def __init__(self) -> None:
        self.acked = 0
        self.nacked = 0
        self.returned = 0
        self.blocked = False
        self.settled_upto = 0
        self.newly_settled: list[range] = []
        """Publish numbers settled by the last call of `feed`, each once."""
        self._beyond: set[int] = set()
        self._rest = b""

    @property
    def settled(self) -> int:
        return self.acked + self.nacked

    def feed(self, data: bytes) -> None:
        self.newly_settled.clear()
        self._rest += data
        if len(self._rest) >= _RUN_MIN * wire.ACK_FRAME_BYTES:
            self._take_run()
        self._sweep()
        while self._skip_other():
            self._sweep()

    def _take_run(self) -> None:
        """Takes the rest at once if it consists only of single acks, or single nacks, of consecutive publishes."""
        count = len(self._rest) // wire.ACK_FRAME_BYTES
        first, end = self.settled_upto + 1, count * wire.ACK_FRAME_BYTES
        _, _, size, class_id, method_id, tag, _, _ = wire.ACK_FRAME.unpack_from(self._rest)
        last_tag = wire.ACK_FRAME.unpack_from(self._rest, end - wire.ACK_FRAME_BYTES)[5]
        if self._beyond or size != wire.ACK_PAYLOAD_BYTES or (tag, last_tag) != (first, first + count - 1):
            return
        # The octets that differ between frames are in columns, and one step cuts a column out.
        methods, tags, bits = (self._rest[at : end : wire.ACK_FRAME_BYTES] for at in _TELLING_OCTETS)
        rising = (_OCTETS * (count // 256 + 2))[first % 256 :][:count]
        if methods != methods[:1] * count or tags != rising or any(bits):
            return
        if (class_id, method_id) == wire.BASIC_ACK:
            self.acked += count
        elif (class_id, method_id) == wire.BASIC_NACK:
            self.nacked += count
        else:
            return
        self.settled_upto = last_tag
        self.newly_settled.append(range(first, last_tag + 1))
        self._rest = self._rest[end:]

    def _sweep(self) -> None:
        """Takes acks and nacks from the front of the rest, up to the first frame of another kind."""
        at = 0
        whole = len(self._rest) - len(self._rest) % wire.ACK_FRAME_BYTES
        for _, _, size, class_id, method_id, tag, bits, _ in wire.ACK_FRAME.iter_unpack(memoryview(self._rest)[:whole]):
            if size != wire.ACK_PAYLOAD_BYTES:
                break
            if (class_id, method_id) == wire.BASIC_ACK:
                self.acked += self._settle(tag, multiple=bool(bits & 1))
            elif (class_id, method_id) == wire.BASIC_NACK:
                self.nacked += self._settle(tag, multiple=bool(bits & 1))
            else:
                break
            at += wire.ACK_FRAME_BYTES
        self._rest = self._rest[at:]

    def _settle(self, tag: int, multiple: bool) -> int:
        """Marks publishes as settled; returns how many are settled for the first time."""
        if tag <= self.settled_upto or (tag in self._beyond and not multiple):
            return 0
        first = self.settled_upto + 1 if multiple else tag
        fresh = [range(first, tag + 1)]
        if multiple and self._beyond:
            fresh = [range(number, number + 1) for number in fresh[0] if number not in self._beyond]
            self._beyond = {number for number in self._beyond if number > tag}
        if first == self.settled_upto + 1:
            self.settled_upto = tag
        else:
            self._beyond.add(tag)
        while self._beyond and self.settled_upto + 1 in self._beyond:
            self.settled_upto += 1
            self._beyond.discard(self.settled_upto)
        self.newly_settled += fresh
        return sum(map(len, fresh))

    def _skip_other(self) -> bool:
        """Takes one frame that is neither ack nor nack from the rest; False if there is none, or it is incomplete."""
        if len(self._rest) < wire.FRAME_OVERHEAD_BYTES:
            return False
        kind, _, size = wire.FRAME_HEAD.unpack_from(self._rest)
        end = size + wire.FRAME_OVERHEAD_BYTES
        if len(self._rest) < end:
            return False
        payload, self._rest = self._rest[wire.FRAME_HEAD.size : end - 1], self._rest[end:]
        if kind == wire.FRAME_METHOD:
            self._note_other(payload)
        return True

    def _note_other(self, payload: bytes) -> None:
        got = struct.unpack_from(">HH", payload)
        if got in (wire.CONNECTION_CLOSE, wire.CHANNEL_CLOSE):
            raise wire.BrokerRefused(wire.refusal(payload))
        if got == wire.CONNECTION_BLOCKED:
            self.blocked = True
        elif got == wire.CONNECTION_UNBLOCKED:
            self.blocked = False
        elif got == wire.BASIC_RETURN:
            self.returned += 1

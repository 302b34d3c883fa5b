"""Finds the bodies of messages in the stream of a snapshot, which comes in pieces."""

from __future__ import annotations

import msgspec

from pandomq.broker.log.snapshot import LENGTH, KeptMessage, Part

_DECODER: msgspec.msgpack.Decoder[Part] = msgspec.msgpack.Decoder(Part)


class StreamBodies:
    __slots__ = ("_buffer", "_start")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = 0
        """The position of the buffer in the stream."""

    def __call__(self, data: bytes) -> list[tuple[int, int]]:
        """Offset in the stream, and length, of the bodies whose records end in this piece. None from the point where
        the data is no stream of a snapshot."""
        self._buffer += data
        extents: list[tuple[int, int]] = []
        at = 0
        while len(self._buffer) - at >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._buffer, at)
            end = at + LENGTH.size + length
            if end > len(self._buffer):
                break
            try:
                part = _DECODER.decode(bytes(memoryview(self._buffer)[at + LENGTH.size : end]))
            except msgspec.DecodeError:
                return []
            if isinstance(part, KeptMessage):
                # The body is the last field of its record.
                extents.append((self._start + end - len(part.body), len(part.body)))
            at = end
        del self._buffer[:at]
        self._start += at
        return extents

"""Parses a broker's output as a client does: from frames to methods with their bodies."""

from __future__ import annotations

from typing import Final, NamedTuple

from pandomq.methods import Method
from pandomq.properties import body_size
from pandomq.wire.codec import BODY_FRAME, FRAME_START, HEADER_FRAME, HEARTBEAT_FRAME, METHOD_FRAME, decode_method

START_BYTES: Final = FRAME_START.size
FRAME_MAX: Final = 8192
"""The maximum frame size to which all simulated clients agree."""


class Heard(NamedTuple):
    channel: int
    method: Method
    body: bytes = b""
    header: bytes = b""
    """The header of the content."""


class FrameReader:
    """The parser of one connection. It expects correct input: a broker that writes anything else has a bug."""

    __slots__ = ("_contents", "_held")

    def __init__(self) -> None:
        self._held = b""
        self._contents: dict[int, tuple[Method, bytearray, int, bytes]] = {}
        """By channel: a method whose content is not complete, its body so far, the number of missing bytes (-1: all),
        header."""

    def feed(self, data: bytes) -> list[Heard]:
        data = self._held + data if self._held else data
        heard: list[Heard] = []
        at, size = 0, len(data)
        while size - at >= START_BYTES:
            kind, channel, length = FRAME_START.unpack_from(data, at)
            end = at + START_BYTES + length
            if end >= size:
                break
            assert data[end] == 0xCE, "a frame that does not end"
            assert kind != BODY_FRAME or length + START_BYTES < FRAME_MAX, "a frame that is larger than was agreed"
            self._frame(kind, channel, data[at + START_BYTES : end], heard)
            at = end + 1
        self._held = data[at:]
        return heard

    def _frame(self, kind: int, channel: int, payload: bytes, heard: list[Heard]) -> None:
        if kind == METHOD_FRAME:
            method = decode_method(payload)
            assert channel not in self._contents, "a method in the middle of a content"
            if method.has_content:
                self._contents[channel] = (method, bytearray(), -1, b"")
            else:
                heard.append(Heard(channel, method))
            return
        if kind == HEARTBEAT_FRAME:
            return
        method, body, missing, header = self._contents[channel]
        if missing < 0:
            assert kind == HEADER_FRAME
            missing, header = body_size(payload), payload
        else:
            assert kind == BODY_FRAME
            body += payload
            missing -= len(payload)
        if missing:
            self._contents[channel] = (method, body, missing, header)
        else:
            del self._contents[channel]
            heard.append(Heard(channel, method, bytes(body), header))

"""Checks of a broker's output on one connection: whole frames, valid methods, contents in their order."""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from typing import TYPE_CHECKING

from tests.support.fields import parse_content_header
from tests.support.frames import BODY, FRAME_END, HEADER, HEARTBEAT, METHOD, PROTOCOL_HEADER
from tests.support.methods import CONTENT_METHODS, decode

if TYPE_CHECKING:
    from tests.fuzz.tally import Tally

FRAME_MAX = 131_072
TAGS_MAX = 10


class Written:
    """The broker's side of one connection."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._rest = b""
        self._missing: dict[int, int] = {}
        """The missing bytes of a content under way on a channel; -1 before its header."""
        self.closed_channels: set[int] = set()
        """Channels that wait for their close-ok."""
        self.tags: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=TAGS_MAX))
        """The last deliveries on each channel, acked or not."""

    def take(self, data: bytes) -> None:
        buffer = self._rest + data
        place = 0
        if buffer.startswith(b"AMQP"):
            assert buffer == PROTOCOL_HEADER, f"after the refusal of a protocol: {buffer!r}"
            return
        while len(buffer) - place >= 7:
            kind, channel, size = struct.unpack_from(">BHI", buffer, place)
            assert size + 8 <= FRAME_MAX, f"a frame of {size} bytes"
            end = place + 7 + size
            if len(buffer) <= end:
                break
            assert buffer[end] == FRAME_END
            self._frame(kind, channel, buffer[place + 7 : end])
            place = end + 1
        self._rest = buffer[place:]

    def _frame(self, kind: int, channel: int, payload: bytes) -> None:
        missing = self._missing.pop(channel, None)
        if kind == METHOD:
            assert missing is None, "a method in the middle of a content"
            method = decode(payload)
            self._tally.methods_seen[method.name] += 1
            if method.name in CONTENT_METHODS:
                self._missing[channel] = -1
                if method.name != "basic.return":
                    self.tags[channel].append(method.delivery_tag)
            elif method.name in ("channel.close", "connection.close"):
                self._tally.closes[f"{method.reply_code} {method.name}"] += 1
                self.closed_channels.add(channel)
                self.tags.pop(channel, None)
                assert method.reply_code != 541, f"the broker blames itself: {method.reply_text}"
        elif kind == HEADER:
            assert missing == -1, "a header that nothing announced"
            size, _ = parse_content_header(payload)
            if size:
                self._missing[channel] = size
        elif kind == BODY:
            assert missing is not None
            assert 0 < len(payload) <= missing
            if missing > len(payload):
                self._missing[channel] = missing - len(payload)
        else:
            assert (kind, channel, payload) == (HEARTBEAT, 0, b""), f"a frame of type {kind}"
            if missing is not None:
                self._missing[channel] = missing

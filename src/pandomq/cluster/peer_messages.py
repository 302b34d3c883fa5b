"""Encodes messages between brokers as AMQP publishes: the routing key is the kind of message, the body is the message.

Bodies are not copied: a packed message is a list of octets to be written one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX
from pandomq.limits import FRAME_OVERHEAD_BYTES
from pandomq.methods import BasicPublish
from pandomq.properties import Properties, encode_header
from pandomq.replica.protocol.messages import ReplicaMessage, encode
from pandomq.wire.codec import BODY_FRAME, FRAME_END, FRAME_START, HEADER_FRAME, encode_frame

CHANNEL: Final = 1
"""The one channel of a link."""
PIECE_BYTES: Final = LINK_FRAME_BYTES_MAX - FRAME_OVERHEAD_BYTES

Octets = bytes | memoryview


class PeerMessageKind(Enum):
    REPLICA = "replica"
    """Election and the log (`replica.protocol.messages`)."""
    FOUNDING = "founding"
    """The start of a cluster (`founding_messages`)."""
    SERVING = "serving"
    """The right to serve clients (`serving`)."""
    LOAD = "load"
    """The number of clients (`load`)."""
    HTTP = "http"
    """Forwarded requests over HTTP (`passed_requests`); since version 2 of the links' protocol."""


_PUBLISHES: Final = {kind: encode_frame(CHANNEL, BasicPublish("", kind.value)) for kind in PeerMessageKind}
_NO_PROPERTIES: Final = Properties()


def pack(kind: PeerMessageKind, body: bytes) -> Sequence[Octets]:
    """The octets to write for this message."""
    header = encode_header(len(body), _NO_PROPERTIES)
    start = b"".join((_PUBLISHES[kind], FRAME_START.pack(HEADER_FRAME, CHANNEL, len(header)), header, FRAME_END))
    if len(body) <= PIECE_BYTES:
        # Most are small: a single write is cheaper than avoiding the copy.
        return (start + FRAME_START.pack(BODY_FRAME, CHANNEL, len(body)) + body + FRAME_END,)
    parts: list[Octets] = []
    view = memoryview(body)
    for offset in range(0, len(body), PIECE_BYTES):
        piece = view[offset : offset + PIECE_BYTES]
        parts += (start + FRAME_START.pack(BODY_FRAME, CHANNEL, len(piece)), piece)
        start = FRAME_END
    parts.append(FRAME_END)
    return parts


class EncodedSends:
    """Encodes messages of the replica. Backups in sync get the same message, so it is encoded once for all."""

    __slots__ = ("_data", "_message", "_sends")

    def __init__(self) -> None:
        self._message: ReplicaMessage | None = None
        self._data = b""
        self._sends: list[tuple[str, bytes]] = []

    def say(self, peer: str, message: ReplicaMessage) -> None:
        # Their entries are the same objects, so that comparing them takes no time.
        if message != self._message:
            self._message, self._data = message, encode(message)
        self._sends.append((peer, self._data))

    def take(self) -> list[tuple[str, bytes]]:
        """Whole messages for peers, in order."""
        sends, self._sends = self._sends, []
        return sends

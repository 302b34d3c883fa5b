"""Messages between brokers as AMQP publishes: the routing key says what kind of message it is, the body is it.

Bodies are not copied: a parcel is a list of octets to be written one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX
from pandomq.limits import FRAME_OVERHEAD_BYTES
from pandomq.methods import BasicPublish
from pandomq.properties import Properties, encode_header
from pandomq.wire.codec import BODY_FRAME, FRAME_END, FRAME_START, HEADER_FRAME, encode_frame

CHANNEL: Final = 1
"""The one channel of a link."""
PIECE_BYTES: Final = LINK_FRAME_BYTES_MAX - FRAME_OVERHEAD_BYTES

Octets = bytes | memoryview


class Kind(Enum):
    REPLICA = "replica"
    """Election and the log (`replica.messages`)."""
    FOUNDING = "founding"
    """How a cluster begins (`founding_messages`)."""
    SERVING = "serving"
    """Who may serve clients (`serving`)."""
    LOAD = "load"
    """How many of them there are (`load`)."""


_PUBLISHES: Final = {kind: encode_frame(CHANNEL, BasicPublish("", kind.value)) for kind in Kind}
_NO_PROPERTIES: Final = Properties()


def pack(kind: Kind, body: bytes) -> Sequence[Octets]:
    """What to write for this message."""
    header = encode_header(len(body), _NO_PROPERTIES)
    start = b"".join((_PUBLISHES[kind], FRAME_START.pack(HEADER_FRAME, CHANNEL, len(header)), header, FRAME_END))
    if len(body) <= PIECE_BYTES:
        # Most are small: one write is cheaper than none copied.
        return (start + FRAME_START.pack(BODY_FRAME, CHANNEL, len(body)) + body + FRAME_END,)
    parts: list[Octets] = []
    view = memoryview(body)
    for offset in range(0, len(body), PIECE_BYTES):
        piece = view[offset : offset + PIECE_BYTES]
        parts += (start + FRAME_START.pack(BODY_FRAME, CHANNEL, len(piece)), piece)
        start = FRAME_END
    parts.append(FRAME_END)
    return parts

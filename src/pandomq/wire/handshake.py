"""Frames before connection.open-ok, and the search for a close in octets that cannot be split into frames any more.

During the handshake the peer may use only channel 0, with small frames, one at a time: the limits of the connection are
still being negotiated, so the kernel's scanner cannot be set up yet.
"""

import re
from typing import Final

from pandomq.errors import ConnectionFault
from pandomq.kernel.faults import bad_frame_end, frame_too_large, misplaced_frame
from pandomq.limits import FRAME_OVERHEAD_BYTES, HANDSHAKE_FRAME_BYTES_MAX
from pandomq.wire.codec import FRAME_END, FRAME_START, HEARTBEAT_FRAME, METHOD_FRAME

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"
ACCEPTED_HEADERS: Final = frozenset({PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09"})
"""0-9-1, and the header that clients of 0-9 send for the same."""

_OTHER_GREETINGS: Final = {
    b"AMQP\x00\x01\x00\x00": "AMQP 1.0",
    b"AMQP\x03\x01\x00\x00": "AMQP 1.0",
    b"AMQP\x01\x01\x00\x0a": "AMQP 0-10",
    b"AMQP": "a version of AMQP other than 0-9-1",
    b"\x16\x03": "TLS, which this port does not accept: use the TLS port",
    b"PROXY ": "the PROXY protocol, which node.proxy_protocol does not enable here",
    b"\r\n\r\n\0\r\n": "the PROXY protocol, which node.proxy_protocol does not enable here",
    b"GET ": "HTTP",
}

# The start of a method frame on channel 0 that is not longer than a connection.close (10, 50), and that contains a
# connection.close or a connection.close-ok (10, 51).
_CLOSE_OR_OK: Final = re.compile(rb"\x01\x00\x00\x00\x00[\x00\x01].\x00\x0a\x00([\x32\x33])", re.DOTALL)
_SIGNATURE_BYTES: Final = 11
_CLOSE: Final = b"\x32"


def language(greeting: bytes) -> str:
    """The protocol that a client with a wrong protocol header seems to use."""
    for start, name in _OTHER_GREETINGS.items():
        if greeting.startswith(start):
            return name
    return "an unknown protocol, not AMQP"


def next_method(held: bytes) -> tuple[bytes | None, int]:
    """The payload of the first method frame (None for a heartbeat) and where the frame ends: 0 if it is incomplete.

    Raises a ConnectionFault for everything that is not allowed in a handshake.
    """
    if len(held) < FRAME_START.size:
        return None, 0
    kind, channel, size = FRAME_START.unpack_from(held)
    if size + FRAME_OVERHEAD_BYTES > HANDSHAKE_FRAME_BYTES_MAX:
        raise ConnectionFault(*frame_too_large(kind, size, HANDSHAKE_FRAME_BYTES_MAX))
    end = FRAME_START.size + size
    if len(held) <= end:
        return None, 0
    payload = held[FRAME_START.size : end]
    if held[end] != FRAME_END[0]:
        raise ConnectionFault(*bad_frame_end(kind, payload, held[end]))
    if kind == HEARTBEAT_FRAME and not size and not channel:
        return None, end + 1
    if kind != METHOD_FRAME or channel:
        raise ConnectionFault(*misplaced_frame(kind, payload))
    return payload, end + 1


def find_end(data: bytes) -> tuple[bool, bool, bytes]:
    """Whether a close and whether a close-ok are in octets that cannot be split into frames any more.

    It also returns the last octets if more are needed to decide; the caller puts them before the next ones.
    """
    closes = confirms = False
    undecided = max(0, len(data) - _SIGNATURE_BYTES + 1)
    for found in _CLOSE_OR_OK.finditer(data):
        _, _, size = FRAME_START.unpack_from(data, found.start())
        end = found.start() + FRAME_START.size + size
        if end >= len(data):
            undecided = min(undecided, found.start())
            break
        if data[end] == FRAME_END[0]:
            closes = closes or found[1] == _CLOSE
            confirms = confirms or found[1] != _CLOSE
    return closes, confirms, data[undecided:]

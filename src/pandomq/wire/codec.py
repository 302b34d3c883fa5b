"""Methods and contents to frames, and method frames back to methods.

The kernel splits a stream of octets into frames, and handles publishes and settlements itself; this module decodes all
other methods. Malformed methods raise the ConnectionFault with which RabbitMQ would reply.
"""

import struct
from typing import Final

from pandomq.errors import ConnectionFault, frame_error, not_implemented
from pandomq.limits import FRAME_OVERHEAD_BYTES
from pandomq.methods import METHODS, Method
from pandomq.properties import body_size
from pandomq.wire.compiler import Reader, Writer, compile_reader, compile_writer

METHOD_FRAME: Final = 1
HEADER_FRAME: Final = 2
BODY_FRAME: Final = 3
HEARTBEAT_FRAME: Final = 8
FRAME_END: Final = b"\xce"
HEARTBEAT: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"

FRAME_START: Final = struct.Struct(">BHI")
"""Type, channel, payload size."""

_IDS: Final = struct.Struct(">HH")
_READERS: Final[dict[bytes, Reader]] = {_IDS.pack(*ids): compile_reader(method) for ids, method in METHODS.items()}
_WRITERS: Final[dict[type[Method], Writer]] = {method: compile_writer(method) for method in METHODS.values()}
# A reply text has room for fewer octets than this, so more need not be printed.
_OCTETS_SHOWN_MAX: Final = 128


def encode_method(method: Method) -> bytes:
    """The payload of a method frame."""
    return _WRITERS[type(method)](method)


def decode_method(payload: bytes) -> Method:
    """The method in the payload of a method frame; a ConnectionFault if there is none."""
    ids = payload[:4]
    reader = _READERS.get(ids)
    if reader is None:
        raise _unknown(payload)
    try:
        return reader(payload)
    except ConnectionFault as fault:
        raise fault.at(*_IDS.unpack(ids)) from None
    except UnicodeDecodeError:
        raise frame_error("Malformed UTF-8 in shortstr") from None
    except (IndexError, struct.error):
        octets = ",".join(map(str, payload[4 : 4 + _OCTETS_SHOWN_MAX]))
        raise frame_error(f"cannot decode <<{octets}>>").at(*_IDS.unpack(ids)) from None


def encode_frame(channel: int, method: Method) -> bytes:
    """A whole method frame."""
    payload = _WRITERS[type(method)](method)
    return FRAME_START.pack(METHOD_FRAME, channel, len(payload)) + payload + FRAME_END


def encode_content(channel: int, method: Method, header: bytes, body: bytes, frame_max: int) -> bytes:
    """A method with its content: the header's payload unchanged, the body split into frames of at most `frame_max`."""
    assert method.has_content
    assert body_size(header) == len(body)
    parts = [
        encode_frame(channel, method),
        FRAME_START.pack(HEADER_FRAME, channel, len(header)),
        header,
        FRAME_END,
    ]
    size_max = frame_max - FRAME_OVERHEAD_BYTES
    for start in range(0, len(body), size_max):
        piece = body[start : start + size_max]
        parts += [FRAME_START.pack(BODY_FRAME, channel, len(piece)), piece, FRAME_END]
    return b"".join(parts)


def _unknown(payload: bytes) -> ConnectionFault:
    if len(payload) < _IDS.size:
        return frame_error(f"type 1, all octets = <<{','.join(map(str, payload))}>>: unknown_frame")
    class_id, method_id = _IDS.unpack_from(payload)
    return not_implemented(f"unknown method {class_id}.{method_id}").at(class_id, method_id)

"""The messages about serving leases between the root and brokers that serve clients (R16), and their encoding: one byte
of version, then msgpack. Any of them may be lost: they are repeated. A field may be added at the end with a default: a
broker that does not know the field ignores it."""

from __future__ import annotations

from typing import Final

import msgspec

VERSION: Final = 1


class Report(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """To the root: requests the right to serve."""

    question: int
    """Increases. The lease begins when the question was sent."""
    applied_index: int
    """All changes of the configuration up to this entry are in force at the sender."""
    serves: bool = True
    """False: it has no clients of its own, and asks for no lease."""
    attached: bool = True
    """The root knows the bindings of the sender's private queues, and the acks there. Brokers that do not send this
    field ask a new root only after that, or after the time of a lease."""


class Grant(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """From the root: grants the right to serve."""

    question: int
    after_index: int
    """Valid once all changes up to this entry are in force: clients may have been told that they are."""


ServingMessage = Report | Grant

_decoder: msgspec.msgpack.Decoder[ServingMessage] = msgspec.msgpack.Decoder(ServingMessage)
_encoder = msgspec.msgpack.Encoder()


class BadServingMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link must be closed."""


def encode_serving(message: ServingMessage) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(message)


def decode_serving(data: bytes) -> ServingMessage:
    """Raises BadServingMessage."""
    if data[:1] != bytes((VERSION,)):
        raise BadServingMessage(f"the message has version {data[0] if data else 'none'}, expected {VERSION}")
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadServingMessage(str(error)) from error

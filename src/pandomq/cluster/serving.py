"""What brokers that serve clients and the root say to each other about serving leases (R16), and its bytes: one byte of
version, then msgpack. Any of it may be lost: it is said again."""

from __future__ import annotations

from typing import Final

import msgspec

VERSION: Final = 1


class Report(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """To the root: may I serve?"""

    question: int
    """Counts up. The lease begins when the question was asked."""
    applied_index: int
    """All changes of the configuration up to this entry are in force at the sender."""
    serves: bool = True
    """False: it has no clients of its own, and asks for no lease."""


class Grant(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """From the root: you may."""

    question: int
    after_index: int
    """Once all changes up to this entry are in force: clients may have been told so."""


ServingMessage = Report | Grant

_decoder: msgspec.msgpack.Decoder[ServingMessage] = msgspec.msgpack.Decoder(ServingMessage)
_encoder = msgspec.msgpack.Encoder()


class BadServingMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link is to be closed."""


def encode_serving(message: ServingMessage) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(message)


def decode_serving(data: bytes) -> ServingMessage:
    """Raises BadServingMessage."""
    if data[:1] != bytes((VERSION,)):
        raise BadServingMessage(f"a message of version {data[0] if data else 'none'}, not {VERSION}")
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadServingMessage(str(error)) from error

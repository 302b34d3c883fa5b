"""What a broker tells the others of its load, so that they can tell clients: one byte of version, then msgpack.

What is of another version is not heard: it is of no importance, and the next version may say more.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

VERSION: Final = 1


class Load(msgspec.Struct, frozen=True, array_like=True):
    connections: Annotated[int, msgspec.Meta(ge=0)]
    """Of clients, let in or not."""


class BadLoadMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link is to be closed."""


_decoder: msgspec.msgpack.Decoder[Load] = msgspec.msgpack.Decoder(Load)
_encoder = msgspec.msgpack.Encoder()


def encode_load(load: Load) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(load)


def decode_load(data: bytes) -> Load | None:
    """None if it is of another version. Raises BadLoadMessage."""
    if not data:
        raise BadLoadMessage("an empty message")
    if data[0] != VERSION:
        return None
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLoadMessage(str(error)) from None

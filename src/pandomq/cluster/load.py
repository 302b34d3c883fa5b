"""A broker's report of its load to the others, which pass it to clients: one byte of version, then msgpack.

Reports of another version are ignored: they are not important, and the next version may contain more.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

VERSION: Final = 1


class ClientLoad(msgspec.Struct, frozen=True, array_like=True):
    connections: Annotated[int, msgspec.Meta(ge=0)]
    """Of clients, logged in or not."""


class BadLoadMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link must be closed."""


_decoder: msgspec.msgpack.Decoder[ClientLoad] = msgspec.msgpack.Decoder(ClientLoad)
_encoder = msgspec.msgpack.Encoder()


def encode_load(load: ClientLoad) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(load)


def decode_load(data: bytes) -> ClientLoad | None:
    """The report in a message; None if the message is of another version. Raises BadLoadMessage."""
    if not data:
        raise BadLoadMessage("the message is empty")
    if data[0] != VERSION:
        return None
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLoadMessage(str(error)) from None

"""Requests over HTTP that one broker forwards to another, and their answers: one byte of version, then msgpack.

Both may be larger than any other message on a link, and a link keeps the order of its messages: a large message would
delay heartbeats behind it. So they are sent in parts, and the next part is sent on request. The broker that forwards a
request has checked the login, and sends the user's name; the login itself is not sent.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from pandomq.cluster.limits import PASSED_BYTES_MAX, PASSED_PART_BYTES_MAX

VERSION: Final = 1

_Count = Annotated[int, msgspec.Meta(ge=0, le=PASSED_BYTES_MAX)]
_Number = Annotated[int, msgspec.Meta(ge=0)]
_Headers = tuple[tuple[str, str], ...]


class PassedRequest(msgspec.Struct, frozen=True, array_like=True):
    method: str
    target: bytes
    """Path and query, as they were sent."""
    user: str
    """The user that has logged in."""
    by_key: bool
    """No user: the client has proven that it has a key."""
    headers: _Headers
    body: bytes


class PassedAnswer(msgspec.Struct, frozen=True, array_like=True):
    status: int
    headers: _Headers
    body: bytes


class RequestPart(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A part of an encoded request, or of the answer to one."""

    number: _Number
    """The number of the request, in this run of the broker that sends it."""
    of_answer: bool
    offset: _Count
    size: _Count
    """The total size."""
    octets: Annotated[bytes, msgspec.Meta(max_length=PASSED_PART_BYTES_MAX)]


class Next(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Requests the part at this offset."""

    number: _Number
    of_answer: bool
    offset: _Count


class GiveUp(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The request is no longer waited for, or is unknown."""

    number: _Number
    by_asker: bool


PassedMessage = RequestPart | Next | GiveUp


class BadPassedMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link must be closed."""


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[PassedMessage] = msgspec.msgpack.Decoder(PassedMessage)
_request_decoder = msgspec.msgpack.Decoder(PassedRequest)
_answer_decoder = msgspec.msgpack.Decoder(PassedAnswer)


def encode(message: PassedMessage) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(message)


def decode(data: bytes) -> PassedMessage | None:
    """The message in these bytes; None if it is of another version. Raises BadPassedMessage."""
    if not data:
        raise BadPassedMessage("the message is empty")
    if data[0] != VERSION:
        return None
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadPassedMessage(str(error)) from None


def encode_whole(whole: PassedRequest | PassedAnswer) -> bytes:
    return _encoder.encode(whole)


def decode_request(octets: bytes | bytearray) -> PassedRequest:
    """Raises BadPassedMessage."""
    try:
        return _request_decoder.decode(octets)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadPassedMessage(str(error)) from None


def decode_answer(octets: bytes | bytearray) -> PassedAnswer:
    """Raises BadPassedMessage."""
    try:
        return _answer_decoder.decode(octets)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadPassedMessage(str(error)) from None

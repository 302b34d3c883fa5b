"""The messages between brokers before there is a cluster, and their encoding: one byte of version, then msgpack.

Any of them may be lost; important ones are repeated, and none relies on the arrival of another.
"""

from __future__ import annotations

from typing import Final

import msgspec

VERSION: Final = 1
ATTEMPT_BYTES_MAX: Final = 3 * 1024
"""The room in the hard state; a list of primaries with longer names and addresses cannot form a cluster."""


class Founder(msgspec.Struct, frozen=True, array_like=True):
    name: str
    address: str
    """The address at which its peers connect to it."""
    store: str
    """The id of its store; empty if an operator formed the cluster before it was known."""


class FoundingAttempt(msgspec.Struct, frozen=True, array_like=True):
    """A cluster that may begin, or has begun, with these stores and no others."""

    number: int
    """A later attempt has a higher one."""
    cluster_id: str
    founders: tuple[Founder, ...]
    by: str = ""
    """The broker that formed it alone, at an operator's request; empty if all were there."""

    def store_of(self, name: str) -> str | None:
        """The store of this founder; None if the broker is not among the founders."""
        return next((founder.store for founder in self.founders if founder.name == name), None)

    def with_store(self, name: str, store: str) -> FoundingAttempt:
        founders = tuple(
            Founder(founder.name, founder.address, store) if founder.name == name else founder
            for founder in self.founders
        )
        return msgspec.structs.replace(self, founders=founders)


class Tell(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The state of the sender."""

    store: str
    primaries: tuple[str, ...]
    """The configured primaries, in the order of their names."""
    cluster_id: str
    """Empty as long as its store belongs to no cluster."""
    attempt: FoundingAttempt | None
    """The attempt with which it began, or joined; otherwise the one that it has prepared for."""


class Prepare(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """To be saved, and reported when it is."""

    attempt: FoundingAttempt


FoundingMessage = Tell | Prepare

_decoder: msgspec.msgpack.Decoder[FoundingMessage] = msgspec.msgpack.Decoder(FoundingMessage)
_attempts = msgspec.msgpack.Decoder(FoundingAttempt)
_encoder = msgspec.msgpack.Encoder()


class BadFoundingMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link must be closed."""


def encode_message(message: FoundingMessage) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(message)


def decode_message(data: bytes) -> FoundingMessage:
    """Raises BadFoundingMessage."""
    if data[:1] != bytes((VERSION,)):
        raise BadFoundingMessage(f"the message has version {data[0] if data else 'none'}, expected {VERSION}")
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFoundingMessage(str(error)) from error


def encode_attempt(attempt: FoundingAttempt | None) -> bytes:
    """Encodes the attempt for the store."""
    return b"" if attempt is None else _encoder.encode(attempt)


def decode_attempt(data: bytes) -> FoundingAttempt | None:
    return _attempts.decode(data) if data else None

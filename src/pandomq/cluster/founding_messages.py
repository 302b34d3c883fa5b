"""What brokers say to each other before there is a cluster, and their bytes: one byte of version, then msgpack.

Any of them may be lost; what matters is said again now and then, and none relies on another having arrived.
"""

from __future__ import annotations

from typing import Final

import msgspec

VERSION: Final = 1
ATTEMPT_BYTES_MAX: Final = 3 * 1024
"""What the hard state has room for; a list of primaries with longer names and addresses is not begun with."""


class Founder(msgspec.Struct, frozen=True, array_like=True):
    name: str
    address: str
    """Where its peers find it."""
    store: str
    """The id of its store; empty if somebody founded the cluster without having heard of it."""


class Attempt(msgspec.Struct, frozen=True, array_like=True):
    """A cluster that may begin, or has begun, with these stores and no others."""

    number: int
    """A later attempt has a higher one."""
    cluster_id: str
    founders: tuple[Founder, ...]
    by: str = ""
    """Who founded it alone, because a person said so; empty if all were there."""

    def store_of(self, name: str) -> str | None:
        """None if it is not among the founders."""
        return next((founder.store for founder in self.founders if founder.name == name), None)

    def with_store(self, name: str, store: str) -> Attempt:
        founders = tuple(
            Founder(founder.name, founder.address, store) if founder.name == name else founder
            for founder in self.founders
        )
        return msgspec.structs.replace(self, founders=founders)


class Tell(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Where the sender stands."""

    store: str
    primaries: tuple[str, ...]
    """As it is configured, in the order of their names."""
    cluster_id: str
    """Empty as long as its store belongs to no cluster."""
    attempt: Attempt | None
    """With which it began, or joined; otherwise the one that it has prepared for."""


class Prepare(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """To be saved, and told when it is."""

    attempt: Attempt


FoundingMessage = Tell | Prepare

_decoder: msgspec.msgpack.Decoder[FoundingMessage] = msgspec.msgpack.Decoder(FoundingMessage)
_attempts = msgspec.msgpack.Decoder(Attempt)
_encoder = msgspec.msgpack.Encoder()


class BadFoundingMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link is to be closed."""


def encode_message(message: FoundingMessage) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(message)


def decode_message(data: bytes) -> FoundingMessage:
    """Raises BadFoundingMessage."""
    if data[:1] != bytes((VERSION,)):
        raise BadFoundingMessage(f"a message of version {data[0] if data else 'none'}, not {VERSION}")
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFoundingMessage(str(error)) from error


def encode_attempt(attempt: Attempt | None) -> bytes:
    """For the store."""
    return b"" if attempt is None else _encoder.encode(attempt)


def decode_attempt(data: bytes) -> Attempt | None:
    return _attempts.decode(data) if data else None

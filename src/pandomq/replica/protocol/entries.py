"""Entries of the log, and the replica's own entries: these begin with a byte of 0x80 or more, a broker's with less.

The owner skips the replica's own entries when it applies the log.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pandomq.ids import NodeName, Term
from pandomq.replica.members.membership import Membership

OWN_FIRST: Final = 0x80
OWN_VERSION: Final = 0x81


class LogEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry without its index, which follows from its place."""

    term: Term
    payload: bytes


class TermBegins(msgspec.Struct, frozen=True, array_like=True, tag="t"):
    """The first entry of a root. When it is committed, so is everything before it: entries of older terms are never
    committed by counting their copies, since a root of a later term could still cut them."""

    root: NodeName


class Members(msgspec.Struct, frozen=True, array_like=True, tag="m"):
    """The members of the cluster, in force as soon as the entry is in the log, committed or not."""

    membership: Membership


class EpochBegins(msgspec.Struct, frozen=True, array_like=True, tag="e"):
    """An operator has decided that the missing primaries are gone for good. Each candidate of this epoch has this entry
    in its log."""

    epoch: int
    epoch_id: str
    membership: Membership
    dead: tuple[NodeName, ...]


class LearnerAdmitted(msgspec.Struct, frozen=True, array_like=True, tag="w"):
    """Held by half of the voters without the learner's help, after it came. A candidate for whom the learner may have
    voted before it lost its state does not have this entry, and can no longer win."""

    name: NodeName
    life: int


OwnEntry = TermBegins | Members | EpochBegins | LearnerAdmitted

_decoder: msgspec.msgpack.Decoder[OwnEntry] = msgspec.msgpack.Decoder(OwnEntry)


def is_own(payload: bytes) -> bool:
    return payload[:1] >= b"\x80"


def changes_members(payload: bytes) -> bool:
    return is_own(payload) and isinstance(decode_entry(payload), Members | EpochBegins)


def encode_entry(entry: OwnEntry) -> bytes:
    return bytes((OWN_VERSION,)) + msgspec.msgpack.encode(entry)


def decode_entry(payload: bytes) -> OwnEntry | None:
    """None for an entry of the broker. Raises ValueError for a replica's entry that this version does not know."""
    if not is_own(payload):
        return None
    if payload[0] != OWN_VERSION:
        raise ValueError(f"the entry has version {payload[0]:#x} and was written by a newer broker")
    return _decoder.decode(memoryview(payload)[1:])

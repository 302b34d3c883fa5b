"""The messages between replicas, and their encoding: one byte of version, then msgpack.

Every message carries the sender's epoch and term. A newer one makes its receiver abandon the older one; an older one is
answered so that its sender learns the newer. Messages may be lost, duplicated and reordered; none relies on the arrival
of another.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.protocol.position import Position

VERSION: Final = 1


class Header(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    epoch_id: str
    term: Term


class Greeting(Header, frozen=True, array_like=True, tag=1):
    """Sent on a new link and regularly: the broker's identity, how long it has run, and whether it needs a root's
    help."""

    life: int
    """A random number from its start: distinguishes a restarted broker from its earlier run."""
    age_ms: int
    """How long it has run: its seniority."""
    joining: bool
    """Its store is empty or in doubt; it may not vote or count before it is admitted."""
    observer: bool
    end: Position
    cluster_ms: int = 0
    """The cluster's time, as far as the broker knows it from a root or was one; 0 if unknown."""


class AskVote(Header, frozen=True, array_like=True, tag=2):
    candidacy: Term
    """The candidate's term. A pre-vote only checks whether the candidacy would succeed."""
    pre: bool
    end: Position
    """The candidate's log."""
    handed_over: bool
    """The root of the term before has requested this itself: promises to that root do not prevent a vote."""


class Vote(Header, frozen=True, array_like=True, tag=3):
    candidacy: Term
    pre: bool
    granted: bool


class Append(Header, frozen=True, array_like=True, tag=4):
    """Entries after `prev`, which must be in the receiver's log; without entries it is a heartbeat, or carries the
    commit index."""

    round: int
    """The time at which it was sent, by the root's clock; the reply returns it, and so extends the lease."""
    prev_index: LogIndex
    prev_term: Term
    prev_epoch_id: str
    """The epoch that entry belongs to: terms of different epochs are different terms."""
    entries: tuple[LogEntry, ...]
    commit_index: LogIndex
    prompt: bool
    """The receiver must reply at once that the entries are received; it replies in any case when they are synced."""
    excerpts: bool = False
    """The entries are the excerpts for a secondary."""


class Appended(Header, frozen=True, array_like=True, tag=5):
    round: int
    life: int
    joining: bool
    received_index: LogIndex
    """The sender's log equals the root's up to here, in memory."""
    synced_index: LogIndex
    """And up to here on disk."""


class AppendRejected(Header, frozen=True, array_like=True, tag=6):
    """The entry before those of an append is not in the sender's log; or the append was of an older term, which the
    header shows."""

    round: int
    life: int
    joining: bool
    prev_index: LogIndex
    """From the rejected append."""
    last_index: LogIndex
    """The entry with which to try next: no entry after this one can be equal on both sides."""
    last_term: Term
    """The term of the sender's entry there."""


class Admit(Header, frozen=True, array_like=True, tag=7):
    """To a learner: it holds everything that was committed when it came."""

    life: int


class ReleasePromise(Header, frozen=True, array_like=True, tag=8):
    """The root of this term has stepped down, or a candidate has lost; promises to it are void."""


class TakeOver(Header, frozen=True, array_like=True, tag=9):
    """The root of this term has stepped down in favour of the receiver, which holds its whole log."""

    last_index: LogIndex
    payload: bytes | None


class SnapshotPiece(Header, frozen=True, array_like=True, tag=10):
    round: int
    source: str
    index: LogIndex
    snapshot_term: Term
    snapshot_epoch_id: str
    """The epoch of the last entry that the snapshot includes."""
    record: bytes
    """Members and epochs as of that entry; in piece 0 only."""
    number: int
    data: bytes
    checksum: int
    last: bool
    excerpts: bool = False
    """The snapshot is in the form for a secondary."""


class SnapshotAnswer(Header, frozen=True, array_like=True, tag=11):
    round: int
    life: int
    joining: bool
    source: str
    taken: int
    """Number of pieces that are kept."""
    wanted: int | None
    """A piece was lost or damaged: the pieces from this one on must be sent again."""
    installed: bool
    """The receiver's log now reaches to the snapshot's entry."""
    raw_to: int = 0
    """Pieces before this one must be sent in full: the receiver lacks bodies that a lean one leaves out."""


class Probe(Header, frozen=True, array_like=True, tag=12):
    """Asks whether the receiver is running, before a forced promotion."""

    number: int
    claimed: int = 0
    """The number of the epoch that will begin. The receiver saves it before it answers."""
    claimed_id: str = ""


class ProbeAnswer(Header, frozen=True, array_like=True, tag=13):
    number: int
    end: Position
    root: NodeName | None
    """The broker that it has known as root within its promise."""
    joining: bool = False
    """Whether the sender's store is in doubt, so that the sender is no voter until a root admits it."""
    recovering: bool = False
    """Whether the sender is reading its store, and does not know the end of its log yet."""
    promoting_ms: int | None = None
    """How long it has been in a forced promotion itself, if it is."""
    taken: int = 0
    """The highest number of an epoch other than the sender's, begun or about to begin."""


ReplicaMessage = (
    Greeting
    | AskVote
    | Vote
    | Append
    | Appended
    | AppendRejected
    | Admit
    | ReleasePromise
    | TakeOver
    | SnapshotPiece
    | SnapshotAnswer
    | Probe
    | ProbeAnswer
)

_decoder: msgspec.msgpack.Decoder[ReplicaMessage] = msgspec.msgpack.Decoder(ReplicaMessage)
_encoder = msgspec.msgpack.Encoder()


class BadMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link must be closed."""


def encode(message: ReplicaMessage) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(message)


def decode(data: bytes) -> ReplicaMessage:
    """Raises BadMessage."""
    if data[:1] != bytes((VERSION,)):
        raise BadMessage(f"the message has version {data[0] if data else 'none'}, expected {VERSION}")
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(str(error)) from error

"""What replicas say to each other, and its bytes: one byte of version, then msgpack.

Every message carries the sender's epoch and term. A newer one makes its receiver give up what it was doing in an older
one; an older one is answered so that its sender learns. Messages may be lost, doubled and reordered; none relies on
another having arrived.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.entries import LogEntry
from pandomq.replica.position import Position

VERSION: Final = 1


class Header(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    epoch_id: str
    term: Term


class Greeting(Header, frozen=True, array_like=True, tag=1):
    """Said on a new link and now and then: who is there, for how long, and whether it needs a root's help."""

    life: int
    """Drawn at each start: tells a broker that came back from the one that went."""
    age_ms: int
    """How long it has run: its seniority."""
    joining: bool
    """Its store is empty or in doubt; it may not vote or count before it is admitted."""
    observer: bool
    end: Position
    cluster_ms: int = 0
    """What time it is in the cluster, as far as it knows from a root or was one; 0 if it does not."""


class AskVote(Header, frozen=True, array_like=True, tag=2):
    candidacy: Term
    """The term that the candidate stands for. A pre-vote only asks whether it would be worth it."""
    pre: bool
    end: Position
    """The candidate's log."""
    handed_over: bool
    """The root of the term before has itself asked for this: nobody's promise to it stands in the way."""


class Vote(Header, frozen=True, array_like=True, tag=3):
    candidacy: Term
    pre: bool
    granted: bool


class Append(Header, frozen=True, array_like=True, tag=4):
    """Entries after `prev`, which must be in the receiver's log; without entries it is a heartbeat, or tells how far
    the log is committed."""

    round: int
    """When it was sent, by the root's clock; the answer brings it back, and so extends the lease."""
    prev_index: LogIndex
    prev_term: Term
    prev_epoch_id: str
    """The epoch that entry belongs to: terms of different epochs are different terms."""
    entries: tuple[LogEntry, ...]
    commit_index: LogIndex
    prompt: bool
    """Answer at once that the entries are received; when they are synced there is an answer in any case."""
    excerpts: bool = False
    """They are what a secondary gets of them."""


class Appended(Header, frozen=True, array_like=True, tag=5):
    round: int
    life: int
    joining: bool
    received_index: LogIndex
    """The sender's log is the root's up to here, in memory."""
    synced_index: LogIndex
    """And up to here on disk."""


class Refused(Header, frozen=True, array_like=True, tag=6):
    """The entry before those of an append is not in the sender's log; or the append was of an older term, which the
    header tells."""

    round: int
    life: int
    joining: bool
    prev_index: LogIndex
    """Of the append that is refused."""
    last_index: LogIndex
    """Where to look next: no entry after this one can be the same on both sides."""
    last_term: Term
    """The term of the sender's entry there."""


class Admit(Header, frozen=True, array_like=True, tag=7):
    """To a learner: it holds all that was committed when it came."""

    life: int


class Farewell(Header, frozen=True, array_like=True, tag=8):
    """The root of this term has resigned, or a candidate has lost; promises to it are void."""


class TakeOver(Header, frozen=True, array_like=True, tag=9):
    """The root of this term has resigned in favour of the receiver, who holds its whole log."""

    last_index: LogIndex
    payload: bytes | None


class SnapshotPiece(Header, frozen=True, array_like=True, tag=10):
    round: int
    source: str
    index: LogIndex
    snapshot_term: Term
    snapshot_epoch_id: str
    """Of the last entry that is in the snapshot."""
    record: bytes
    """Members and epochs as of that entry; in piece 0 only."""
    number: int
    data: bytes
    checksum: int
    last: bool
    excerpts: bool = False
    """It is what a secondary gets."""


class SnapshotAnswer(Header, frozen=True, array_like=True, tag=11):
    round: int
    life: int
    joining: bool
    source: str
    taken: int
    """So many pieces are kept."""
    wanted: int | None
    """A piece was lost or came damaged: those from this one on are to be sent again."""
    installed: bool
    """The receiver's log now reaches to the snapshot's entry."""
    raw_to: int = 0
    """Pieces before this one are wanted whole: the receiver lacks what a lean one leaves out."""


class Probe(Header, frozen=True, array_like=True, tag=12):
    """Asks whether the receiver lives, before a forced promotion."""

    number: int


class ProbeAnswer(Header, frozen=True, array_like=True, tag=13):
    number: int
    end: Position
    root: NodeName | None
    """Whom it has heard of as root within its promise."""
    joining: bool = False
    """It is in doubt itself, and so is no voter until somebody admits it."""


Message = (
    Greeting
    | AskVote
    | Vote
    | Append
    | Appended
    | Refused
    | Admit
    | Farewell
    | TakeOver
    | SnapshotPiece
    | SnapshotAnswer
    | Probe
    | ProbeAnswer
)

_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)
_encoder = msgspec.msgpack.Encoder()


class BadMessage(ValueError):
    """A peer sent bytes that are no message of this version; its link is to be closed."""


def encode(message: Message) -> bytes:
    return bytes((VERSION,)) + _encoder.encode(message)


def decode(data: bytes) -> Message:
    """Raises BadMessage."""
    if data[:1] != bytes((VERSION,)):
        raise BadMessage(f"a message of version {data[0] if data else 'none'}, not {VERSION}")
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(str(error)) from error

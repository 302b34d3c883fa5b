"""How a broker that is too far behind receives a snapshot: piece by piece, beside its store, and checked before it is
used.

Pieces come in order; a piece out of order is answered with the expected number. A transfer belongs to one snapshot of
one root: when the root changes, or either side restarts, it begins again at piece 0. The old store stays until all
pieces were put together and found complete. If the log has grown as far in the meantime, from another root, it stays
for good: an older state must not replace it.

The members in the snapshot are saved as *arriving* before it replaces the log: if the broker crashes in between, the
log shows which of the two sets is in force.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.core import Core
from pandomq.replica.effects import AlarmKind, InstallSnapshot, TakePiece
from pandomq.replica.limits import SNAPSHOT_PIECE_BYTES_MAX, SNAPSHOT_PIECES_IN_FLIGHT_MAX, SNAPSHOT_RAW_PIECES_MAX
from pandomq.replica.protocol.excerpts import is_for
from pandomq.replica.protocol.messages import SnapshotAnswer, SnapshotPiece
from pandomq.replica.record import Arriving, Record, decode_record


class IncomingSnapshot:
    """A snapshot that is being received."""

    __slots__ = (
        "epoch_id",
        "epoch_of_root",
        "ignore_reply",
        "index",
        "installing",
        "offered",
        "raw_run",
        "raw_to",
        "record",
        "source",
        "taken",
        "term",
        "whole",
    )

    def __init__(self, piece: SnapshotPiece) -> None:
        self.source = piece.source
        self.index = piece.index
        self.term = piece.snapshot_term
        self.epoch_id = piece.snapshot_epoch_id
        self.epoch_of_root = (piece.epoch, piece.epoch_id)
        """The epoch in which it is sent."""
        self.record = decode_record(piece.record)
        self.taken = 0
        """Pieces that are kept."""
        self.offered = 0
        """Pieces that were submitted to the disk."""
        self.whole = False
        """The last one was."""
        self.installing = False
        self.raw_to = self.raw_run = 0
        """Pieces before this one were requested in full; and how many at a time."""
        self.ignore_reply = 0
        """Pieces submitted to the disk after one that it could not take: their completions are ignored."""


def receive(core: Core, root: NodeName, piece: SnapshotPiece) -> None:
    if core.emptying or not is_for(core, excerpts=piece.excerpts):
        return
    if core.observer and not piece.excerpts:
        return
    if has_it_all(core, piece.index, piece.snapshot_term, piece.snapshot_epoch_id):
        answer(core, root, piece.source, installed=True, round_=piece.round)
        return
    if core.is_overtaken() and core.tail.last_index > 0:
        # The new epoch is so far ahead that the end of the common log cannot be determined.
        core.set_aside(
            f"epoch {core.state.epoch}, which a forced promotion created, no longer has the entries to compare this "
            "log with"
        )
        return
    incoming = core.incoming
    if incoming is None or incoming.source != piece.source or is_of_older_epoch(core, incoming):
        if (incoming is not None and incoming.installing) or core.cutting is not None:
            return
        if piece.number != 0:
            answer(core, root, piece.source, wanted=0, round_=piece.round)
            return
        incoming = core.incoming = IncomingSnapshot(piece)
    if piece.number < incoming.offered or incoming.whole:
        answer(core, root, piece.source, incoming.taken, round_=piece.round)
    elif is_next(incoming, piece) and is_whole(piece):
        incoming.offered += 1
        incoming.whole = piece.last
        core.outbox.put(TakePiece(piece.source, piece.number, piece.data))
    else:
        answer(core, root, piece.source, incoming.taken, wanted=incoming.offered, round_=piece.round)


def has_it_all(core: Core, index: LogIndex, term: Term, epoch_id: str) -> bool:
    """Entries that are on disk already need not be sent again (R18)."""
    if index <= core.commit_index and not core.is_overtaken():
        return True
    is_there = core.tail.term_at(index) == term
    return is_there and core.epoch_id_at(index) == epoch_id


def is_of_older_epoch(core: Core, incoming: IncomingSnapshot) -> bool:
    """A forced promotion has begun another epoch since: entries that were committed before may not be part of it, and
    this log may already hold entries of it, on which other brokers rely."""
    return incoming.epoch_of_root != (core.state.epoch, core.state.epoch_id)


def is_next(incoming: IncomingSnapshot, piece: SnapshotPiece) -> bool:
    """The sender's window limits what the disk has not taken yet; a sender without a window is not accepted."""
    return piece.number == incoming.offered < incoming.taken + SNAPSHOT_PIECES_IN_FLIGHT_MAX


def is_whole(piece: SnapshotPiece) -> bool:
    return len(piece.data) <= SNAPSHOT_PIECE_BYTES_MAX and crc32(piece.data) == piece.checksum


def piece_taken(core: Core, source: str, number: int, *, lacks: bool = False) -> None:
    incoming = core.incoming
    if incoming is None or incoming.source != source:
        return
    if incoming.ignore_reply:
        incoming.ignore_reply -= 1
        return
    if number != incoming.taken:
        return
    if is_of_older_epoch(core, incoming):
        core.incoming = None
        return
    if lacks:
        ask_for_whole(core, incoming, number)
        return
    if number >= incoming.raw_to:
        incoming.raw_run = 0
    incoming.taken += 1
    if has_it_all(core, incoming.index, incoming.term, incoming.epoch_id):
        # Another root has extended the log in the meantime: it is newer than the snapshot that should replace it.
        core.incoming = None
        if core.root is not None:
            answer(core, core.root, source, installed=True)
    elif incoming.whole and incoming.taken == incoming.offered:
        install(core, incoming)
    elif core.root is not None:
        answer(core, core.root, source, incoming.taken)


def ask_for_whole(core: Core, incoming: IncomingSnapshot, number: int) -> None:
    """Requests this piece in full, and each time more of those after it: missing bodies are often missing from there
    on."""
    incoming.ignore_reply = incoming.offered - number - 1
    incoming.offered = number
    incoming.whole = False
    incoming.raw_run = min(2 * incoming.raw_run, SNAPSHOT_RAW_PIECES_MAX) or 1
    incoming.raw_to = number + incoming.raw_run
    if core.root is not None:
        answer(core, core.root, incoming.source, incoming.taken, wanted=number, raw_to=incoming.raw_to)


def install(core: Core, incoming: IncomingSnapshot) -> None:
    incoming.installing = True
    arriving = Arriving(incoming.index, incoming.record.configs, incoming.record.epochs)
    # Saved before the log is replaced: the effects are carried out in this order.
    core.note(msgspec.structs.replace(core.record, arriving=arriving))
    core.outbox.put(InstallSnapshot(incoming.source, incoming.index, incoming.term))


def installed(core: Core, source: str) -> None:
    incoming = core.incoming
    if incoming is None or incoming.source != source or not incoming.installing:
        return
    core.incoming = None
    core.tail.reset(incoming.index, incoming.term)
    core.damaged_from = None
    core.matched_index = incoming.index
    core.commit_index = LogIndex(0)
    core.note(arrived(core.record))
    core.commit(incoming.index)
    core.forget_floor()
    if core.root is not None:
        answer(core, core.root, source, incoming.taken, installed=True)


def arrived(record: Record) -> Record:
    """The members and epochs of the snapshot replace those of the log."""
    arriving = record.arriving
    assert arriving is not None
    return msgspec.structs.replace(record, configs=arriving.configs, epochs=arriving.epochs, arriving=None)


def bad(core: Core, source: str, reason: str) -> None:
    incoming = core.incoming
    if incoming is None or incoming.source != source:
        return
    core.incoming = None
    core.note(msgspec.structs.replace(core.record, arriving=None))
    core.alarm(AlarmKind.BAD_SNAPSHOT, raised=True, text=reason)
    core.alarm(AlarmKind.BAD_SNAPSHOT, raised=False, text="requested again")
    if core.root is not None:
        answer(core, core.root, source, wanted=0)


def answer(
    core: Core,
    root: NodeName,
    source: str,
    taken: int = 0,
    *,
    wanted: int | None = None,
    installed: bool = False,
    round_: int = 0,
    raw_to: int = 0,
) -> None:
    standing = (core.life, core.record.joining)
    message = SnapshotAnswer(*core.header, round_, *standing, source, taken, wanted, installed, raw_to)
    core.send(root, message)

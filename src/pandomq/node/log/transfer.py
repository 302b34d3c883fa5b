"""Entries and snapshots from one broker to another: the replica's requests go to the journal, the answers come back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from pandomq.journal.events import EntriesRead, InstallFailed, PartRead, PartTaken
from pandomq.replica.completions import Completion, Fetched, Missing, NoSnapshot, PieceRead, PieceTaken, SnapshotBad
from pandomq.replica.effects import Fetch, InstallSnapshot, ReadPiece, TakePiece
from pandomq.replica.protocol.entries import LogEntry

if TYPE_CHECKING:
    from pandomq.ids import NodeName
    from pandomq.journal.effects import Ticket
    from pandomq.journal.journal import Journal
    from pandomq.node.log.configuration_source import ConfigurationSource

log = logging.getLogger("pandomq")


class Transfer:
    __slots__ = ("_journal", "_wanted", "configuration")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.configuration: ConfigurationSource | None = None
        """Set by the owner; without it secondaries get everything."""
        self._wanted: dict[Ticket, Fetch | ReadPiece | TakePiece | InstallSnapshot] = {}

    def begin(self, effect: Fetch | ReadPiece | TakePiece | InstallSnapshot) -> Completion | None:
        """Returns the answer if there is one without the disk."""
        journal = self._journal
        match effect:
            case Fetch(peer, first_index, bytes_max, excerpts):
                try:
                    if excerpts and self.configuration is not None:
                        self.configuration.check(first_index)
                    ticket = journal.read(first_index, bytes_max)
                except LookupError:
                    return Missing(peer, first_index)
            case ReadPiece(peer, source, number, _, True) if self.configuration is not None:
                part = self.configuration.read(source, number)
                if part is None:
                    return NoSnapshot(peer, source)
                return PieceRead(peer, part.source, part.index, part.term, number, part.data, part.last)
            case ReadPiece(peer, source, number, lean):
                try:
                    ticket = journal.sender.read(source, number, lean=lean)
                except LookupError:
                    return NoSnapshot(peer, source)
            case TakePiece(_, number, data):
                ticket = journal.arrivals.take(number, data)
            case InstallSnapshot(_, index, term):
                ticket = journal.arrivals.install(index, term)
            case _:
                assert_never(effect)
        self._wanted[ticket] = effect
        return None

    def end(
        self, event: EntriesRead | PartRead | PartTaken | InstallFailed, root: NodeName | None
    ) -> Completion | None:
        """Returns the answer to the request that has ended; None if it is not the replica's."""
        match self._wanted.pop(event.ticket, None), event:
            case Fetch(peer, first_index), EntriesRead(_, entries):
                if not entries:
                    return Missing(peer, first_index)
                return Fetched(peer, first_index, tuple(LogEntry(entry.term, entry.payload) for entry in entries))
            case ReadPiece(peer, source), PartRead(flaw=flaw) if flaw:
                log.warning("cannot read a snapshot for broker %s, which needs one: %s", peer, flaw)
                return NoSnapshot(peer, source)
            case ReadPiece(peer, _, number), PartRead(_, source, index, term, data, last):
                return PieceRead(peer, source, index, term, number, data, last)
            case TakePiece(source, number), PartTaken(_, lacks):
                return PieceTaken(source, number, lacks)
            case InstallSnapshot(source), InstallFailed(_, reason):
                log.warning(
                    "rejected a snapshot from root %s, and requests it again: %s", root or "(not known)", reason
                )
                return SnapshotBad(source, reason)
            case effect, _:
                assert effect is None and isinstance(event, EntriesRead)
                return None

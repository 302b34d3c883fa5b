"""Entries and snapshots from one broker to another: what the replica asks for is asked of the journal, and the answers
go back.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from pandomq.replica.completions import Fetched, Missing, NoSnapshot, PieceRead, PieceTaken, SnapshotBad
from pandomq.replica.effects import Fetch, InstallSnapshot, ReadPiece, TakePiece
from pandomq.replica.entries import LogEntry

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.journal.effects import Ticket
    from pandomq.journal.events import EntriesRead, PartRead, PartTaken
    from pandomq.journal.journal import Journal
    from pandomq.node.configuration_source import ConfigurationSource
    from pandomq.replica.completions import Completion

log = logging.getLogger("pandomq")


class Transfer:
    __slots__ = ("_complete", "_journal", "_wanted", "configuration")

    def __init__(self, journal: Journal, complete: Callable[[Completion], None]) -> None:
        self._journal = journal
        self.configuration: ConfigurationSource | None = None
        """Told by the owner; without it secondaries get everything."""
        self._complete = complete
        self._wanted: dict[Ticket, Fetch | ReadPiece | TakePiece | InstallSnapshot] = {}

    def carry_out(self, effect: Fetch | ReadPiece | TakePiece | InstallSnapshot) -> None:
        journal = self._journal
        match effect:
            case Fetch(peer, first_index, bytes_max, excerpts):
                try:
                    if excerpts and self.configuration is not None:
                        self.configuration.check(first_index)
                    self._wanted[journal.read(first_index, bytes_max)] = effect
                except LookupError:
                    self._complete(Missing(peer, first_index))
            case ReadPiece(peer, source, number, _, True) if self.configuration is not None:
                part = self.configuration.read(source, number)
                if part is None:
                    self._complete(NoSnapshot(peer, source))
                else:
                    place = (part.source, part.index, part.term, number)
                    self._complete(PieceRead(peer, *place, part.data, part.last))
            case ReadPiece(peer, source, number, lean):
                try:
                    self._wanted[journal.sender.read(source, number, lean=lean)] = effect
                except LookupError:
                    self._complete(NoSnapshot(peer, source))
            case TakePiece(_, number, data):
                self._wanted[journal.arrivals.take(number, data)] = effect
            case InstallSnapshot(_, index, term):
                self._wanted[journal.arrivals.install(index, term)] = effect
            case _:
                assert_never(effect)

    def entries_read(self, event: EntriesRead) -> bool:
        """False if they were not for another broker."""
        effect = self._wanted.pop(event.ticket, None)
        if effect is None:
            return False
        assert isinstance(effect, Fetch)
        if event.entries:
            entries = tuple(LogEntry(entry.term, entry.payload) for entry in event.entries)
            self._complete(Fetched(effect.peer, effect.first_index, entries))
        else:
            self._complete(Missing(effect.peer, effect.first_index))
        return True

    def part_read(self, event: PartRead) -> None:
        effect = self._wanted.pop(event.ticket)
        assert isinstance(effect, ReadPiece)
        if event.flaw:
            log.warning("a snapshot for broker %s could not be read: %s", effect.peer, event.flaw)
            self._complete(NoSnapshot(effect.peer, effect.source))
            return
        place = (event.source, event.index, event.term, effect.number)
        self._complete(PieceRead(effect.peer, *place, event.data, event.last))

    def part_taken(self, event: PartTaken) -> None:
        effect = self._wanted.pop(event.ticket)
        assert isinstance(effect, TakePiece)
        self._complete(PieceTaken(effect.source, effect.number, event.lacks))

    def install_failed(self, ticket: Ticket, reason: str) -> None:
        effect = self._wanted.pop(ticket)
        assert isinstance(effect, InstallSnapshot)
        log.warning("a snapshot from another broker is of no use: %s", reason)
        self._complete(SnapshotBad(effect.source, reason))

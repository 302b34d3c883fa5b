"""Gives the entries of the log to the broker once they are committed, in order, so that it can serve at once.

Entries that have just come are still in memory. Others, after a start or when too many wait, are read from the disk.
What is done at a time is bounded, so that peers and clocks do not wait for it. Entries of the replica itself are passed
over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pandomq.ids import LogIndex, Term
from pandomq.journal.events import EntriesRead, Entry
from pandomq.journal.faults import VersionFault, corrupt
from pandomq.kernel.records import BadEntry
from pandomq.limits import MIB
from pandomq.replica.entries import is_own

if TYPE_CHECKING:
    from pandomq.broker.revival import Revival
    from pandomq.journal.effects import Ticket
    from pandomq.journal.journal import Journal

STRETCH_BYTES: Final = MIB
"""What is applied between two looks at the world, and read at a time."""
STRETCH_ENTRIES: Final = 1024
WAITING_BYTES_MAX: Final = 16 * MIB
"""Entries in memory that are not applied yet; what comes beyond it is read again when its time has come."""


class Applier:
    __slots__ = ("_journal", "_reading", "_revival", "_waiting", "_waiting_bytes", "applied_index", "commit_index")

    def __init__(self, journal: Journal, revival: Revival) -> None:
        self._journal = journal
        self._revival = revival
        self._waiting: deque[Entry] = deque()
        """Without a gap among them; the first is the next to be applied, or later."""
        self._waiting_bytes = 0
        self._reading: Ticket | None = None
        self.applied_index = 0
        """The broker has everything up to here."""
        self.commit_index = 0

    def begin(self, index: int) -> None:
        """The broker has what is in the log up to this entry, all of which is committed."""
        self.applied_index = self.commit_index = index

    def apply(self, entry: Entry) -> None:
        """One that is known to be committed, and the next. Raises VersionFault."""
        assert entry.index == self.applied_index + 1
        if not is_own(entry.payload):
            try:
                self._revival.apply(entry.index, entry.term, entry.payload)
            except BadEntry as bad:
                raise VersionFault(f"entry {entry.index} of the log cannot be read here: {bad}") from bad
        self.applied_index = entry.index

    # What the log does.

    def written(self, first_index: int, term: int, payloads: Sequence[bytes]) -> None:
        """These entries are at the end of the log now."""
        self._remember(Entry(LogIndex(at), Term(term), data) for at, data in enumerate(payloads, first_index))

    def cut(self, first_index: int) -> None:
        """The log ends before this entry."""
        assert first_index > self.commit_index
        while self._waiting and self._waiting[-1].index >= first_index:
            self._waiting_bytes -= len(self._waiting.pop().payload)
        # What is being read may not be so any more.
        self._reading = None

    def read(self, event: EntriesRead) -> bool:
        """False if it was not for us. Raises CorruptFault."""
        if event.ticket != self._reading:
            return False
        self._reading = None
        if not event.entries:
            assert event.flaw is not None
            raise corrupt(event.flaw.file, event.flaw.offset, event.flaw.text)
        self._put_before(event.entries)
        return True

    def _remember(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            follows = not self._waiting or entry.index == self._waiting[-1].index + 1
            if follows and self._waiting_bytes < WAITING_BYTES_MAX:
                self._waiting.append(entry)
                self._waiting_bytes += len(entry.payload)

    def _put_before(self, entries: list[Entry]) -> None:
        """What was read comes first; what waits stays if it follows without a gap."""
        waiting, last_index = self._waiting, entries[-1].index
        while waiting and waiting[0].index <= last_index:
            waiting.popleft()
        if waiting and waiting[0].index != last_index + 1:
            waiting.clear()
        waiting.extendleft(reversed(entries))
        self._waiting_bytes = sum(len(entry.payload) for entry in waiting)

    # What is applied when.

    @property
    def behind(self) -> bool:
        return self.applied_index < self.commit_index

    def work(self) -> bool:
        """Applies a stretch of what is committed; True if there is more to do without waiting for the disk."""
        size_bytes = count = 0
        while self.behind and size_bytes < STRETCH_BYTES and count < STRETCH_ENTRIES:
            entry = self._next()
            if entry is None:
                self._ask()
                return False
            self.apply(entry)
            size_bytes += len(entry.payload)
            count += 1
        return self.behind

    def _next(self) -> Entry | None:
        waiting = self._waiting
        while waiting and waiting[0].index <= self.applied_index:
            self._waiting_bytes -= len(waiting.popleft().payload)
        if not waiting or waiting[0].index != self.applied_index + 1:
            return None
        entry = waiting.popleft()
        self._waiting_bytes -= len(entry.payload)
        return entry

    def _ask(self) -> None:
        if self._reading is None:
            self._reading = self._journal.read(LogIndex(self.applied_index + 1), STRETCH_BYTES)

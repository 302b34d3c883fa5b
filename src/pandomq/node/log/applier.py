"""Gives the entries of the log to the broker once they are committed, in order, so that it can serve at once.

Recent entries are still in memory. Others, after a start or when too many wait, are read from the disk. The work of one
step is bounded, so that peers and clocks do not wait for it. Entries of the replica itself are skipped.
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
from pandomq.replica.protocol.entries import is_own

if TYPE_CHECKING:
    from pandomq.broker.log.revival import Revival
    from pandomq.journal.effects import Ticket
    from pandomq.journal.journal import Journal
    from pandomq.node.log.cluster_time import ClusterTime

STRETCH_BYTES: Final = MIB
"""Entries that are applied, or read, in one step."""
STRETCH_ENTRIES: Final = 1024
WAITING_BYTES_MAX: Final = 16 * MIB
"""Entries in memory that are not applied yet; entries beyond it are read again when they are due."""


class Applier:
    __slots__ = (
        "_journal",
        "_reading",
        "_revival",
        "_time",
        "_waiting",
        "_waiting_bytes",
        "_written_from",
        "applied_index",
        "commit_index",
    )

    def __init__(self, journal: Journal, revival: Revival, time: ClusterTime) -> None:
        self._journal = journal
        self._revival = revival
        self._time = time
        self._waiting: deque[Entry] = deque()
        """Consecutive entries; the first is the next to be applied, or a later one."""
        self._waiting_bytes = 0
        self._reading: Ticket | None = None
        self.applied_index = 0
        """The broker has everything up to this index."""
        self.commit_index = 0
        self._written_from: int | None = None
        """The first entry of a broker that a root has sent since this node began."""

    def begin(self, index: int) -> None:
        """The broker has what is in the log up to this entry, all of which is committed."""
        self.applied_index = self.commit_index = index

    def apply(self, entry: Entry) -> None:
        """Applies the next entry, which is known to be committed. Raises VersionFault."""
        assert entry.index == self.applied_index + 1
        if not is_own(entry.payload):
            try:
                self._revival.apply(entry.index, entry.term, entry.payload)
            except BadEntry as bad:
                raise VersionFault(f"entry {entry.index} of the log is malformed: {bad}") from bad
        self.applied_index = entry.index

    # Events of the log.

    def written(self, first_index: int, term: int, payloads: Sequence[bytes]) -> None:
        """To be called when these entries, which the root has sent, are at the end of the log."""
        self._time.received(payloads)
        if self._written_from is None:
            # An elected broker writes entries of the replica itself, which have no time, before it is root.
            timed = (at for at, payload in enumerate(payloads, first_index) if not is_own(payload))
            self._written_from = next(timed, None)
        self._remember(Entry(LogIndex(at), Term(term), data) for at, data in enumerate(payloads, first_index))

    def cut(self, first_index: int) -> None:
        """The log ends before this entry."""
        assert first_index > self.commit_index
        while self._waiting and self._waiting[-1].index >= first_index:
            self._waiting_bytes -= len(self._waiting.pop().payload)
        # The entries that are being read may be cut off.
        self._reading = None

    def read(self, event: EntriesRead) -> bool:
        """False if the read was another component's. Raises CorruptFault."""
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
        """The entries that were read come first; waiting entries stay if they follow without a gap."""
        waiting, last_index = self._waiting, entries[-1].index
        while waiting and waiting[0].index <= last_index:
            waiting.popleft()
        if waiting and waiting[0].index != last_index + 1:
            waiting.clear()
        waiting.extendleft(reversed(entries))
        self._waiting_bytes = sum(len(entry.payload) for entry in waiting)

    # The order of applying.

    @property
    def behind(self) -> bool:
        return self.applied_index < self.commit_index

    def has_applied(self, index: LogIndex) -> bool:
        """Whether the broker has everything that is committed, and at least what is in the log up to this index."""
        return not self.behind and self.applied_index >= index

    @property
    def has_news(self) -> bool:
        """Whether this broker has applied entries that a root has sent since this node began. The entries that its own
        store had may be as old as the store, even if a root is known that has written nothing since."""
        return self._written_from is not None and self.applied_index >= self._written_from

    def work(self) -> bool:
        """Applies some committed entries; True if there is more to do without waiting for the disk."""
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

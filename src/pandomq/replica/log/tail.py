"""The end of the log in memory: recent entries, synced or not, ready to be sent.

Synced entries are limited by `tail_bytes`. Entries that are not synced yet always stay: the owner limits what
publishers propose. Older entries are read from the log on disk.
"""

from __future__ import annotations

from pandomq.ids import LogIndex, Term
from pandomq.replica.limits import APPEND_ENTRIES_MAX, TAIL_ENTRIES_MAX
from pandomq.replica.ports import LogPort
from pandomq.replica.protocol.entries import LogEntry


class Tail:
    __slots__ = (
        "_base_term",
        "_bytes_max",
        "_dropped",
        "_entries",
        "_port",
        "_size_bytes",
        "first_index",
        "last_index",
        "last_term",
        "synced_index",
        "wanted",
    )

    def __init__(self, port: LogPort, last_index: LogIndex, last_term: Term, bytes_max: int) -> None:
        self._port = port
        self._bytes_max = bytes_max
        self.wanted = True
        """Whether there are voters that need the tail. Otherwise synced entries are not kept."""
        self.reset(last_index, last_term)

    def reset(self, last_index: LogIndex, last_term: Term) -> None:
        """The log ends here, and is synced."""
        self._entries: list[LogEntry] = []
        self._dropped = 0
        self._size_bytes = 0
        self._base_term = last_term
        self.first_index = LogIndex(last_index + 1)
        """The first entry that is held here."""
        self.last_index = last_index
        self.last_term = last_term
        self.synced_index = last_index

    def append(self, entry: LogEntry) -> None:
        assert entry.term >= self.last_term, "terms never fall within a log"
        self._entries.append(entry)
        self._size_bytes += len(entry.payload)
        self.last_index = LogIndex(self.last_index + 1)
        self.last_term = entry.term

    def cut(self, first_index: LogIndex) -> None:
        """The log ends before this entry."""
        last_index = LogIndex(first_index - 1)
        term = self.term_at(last_index)
        assert term is not None, "the entry before a cut is known"
        synced_index = min(self.synced_index, last_index)
        if first_index < self.first_index:
            self.reset(last_index, term)
        else:
            place = self._place(first_index)
            self._size_bytes -= sum(len(entry.payload) for entry in self._entries[place:])
            del self._entries[place:]
            self.last_index, self.last_term = last_index, term
        self.synced_index = synced_index

    def synced(self, index: LogIndex) -> None:
        self.synced_index = max(self.synced_index, min(index, self.last_index))
        while self._is_too_large() and self.first_index <= self.synced_index:
            entry = self._entries[self._dropped]
            self._dropped += 1
            self._size_bytes -= len(entry.payload)
            self._base_term = entry.term
            self.first_index = LogIndex(self.first_index + 1)
        # Dropped entries leave the list in large portions: one by one each would move all the others.
        if self._dropped > len(self._entries) // 2:
            del self._entries[: self._dropped]
            self._dropped = 0

    def _is_too_large(self) -> bool:
        if not self.wanted:
            return len(self._entries) > self._dropped
        return self._size_bytes > self._bytes_max or len(self._entries) - self._dropped > TAIL_ENTRIES_MAX

    def _place(self, index: LogIndex) -> int:
        return self._dropped + index - self.first_index

    def term_at(self, index: LogIndex) -> Term | None:
        """None for an entry that is not there yet, or no longer."""
        if index > self.last_index:
            return None
        if index == self.last_index:
            return self.last_term
        if index >= self.first_index:
            return self._entries[self._place(index)].term
        if index == self.first_index - 1:
            return self._base_term
        return self._port.term_at(index)

    def last_not_after(self, index: LogIndex, term: Term) -> LogIndex:
        """The last entry up to this one whose term is not newer than this term. Terms never decrease, so a binary
        search finds it; entries that are no longer known count as old."""
        low, high = 0, int(min(index, self.last_index))
        while low < high:
            middle = (low + high + 1) // 2
            if (self.term_at(LogIndex(middle)) or 0) <= term:
                low = middle
            else:
                high = middle - 1
        return LogIndex(low)

    def entries_from(self, first_index: LogIndex, bytes_max: int) -> tuple[LogEntry, ...]:
        """As many entries as fit, at least one if there is one."""
        assert first_index >= self.first_index
        start = end = self._place(first_index)
        size_bytes = 0
        while end < len(self._entries) and end - start < APPEND_ENTRIES_MAX:
            size_bytes += len(self._entries[end].payload)
            if end > start and size_bytes > bytes_max:
                break
            end += 1
        return tuple(self._entries[start:end])

"""Which entries secondaries are sent, and when: excerpts of entries; those with content at once, the others collected.

Most entries concern only messages, and their excerpt for a secondary has no content. Such entries wait for the next one
with content, for a heartbeat, or until there are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.core import Core
from pandomq.replica.limits import EXCERPTS_GATHERED, EXCERPTS_KEPT
from pandomq.replica.log.progress import Progress, ProgressState
from pandomq.replica.protocol.entries import LogEntry, is_own
from pandomq.replica.protocol.excerpts import excerpt_of


class News:
    """For one root, in one term."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wanted = False
        """Whether there are secondaries."""
        self._index = LogIndex(0)
        """The last entry with content for them, if there are any."""
        self._kept: dict[int, LogEntry] = {}
        """Excerpts of the last entries, shared by all of them."""

    def counted(self, peers: Mapping[NodeName, Progress]) -> None:
        """The set of linked brokers may have changed."""
        wanted = any(peer.observer for peer in peers.values())
        if wanted and not self._wanted:
            self._index = self._core.tail.last_index
        self._wanted = wanted

    def wrote(self, last_index: LogIndex, payloads: Sequence[bytes]) -> None:
        """To be called when these entries are at the end of the log."""
        if not self._wanted:
            return
        core = self._core
        first_index = last_index - len(payloads) + 1
        for index, payload in enumerate(payloads, first_index):
            excerpt = excerpt_of(core.excerpts, LogEntry(core.term, payload))
            self._kept[index] = excerpt
            self._kept.pop(index - EXCERPTS_KEPT, None)
            if is_own(payload) or not core.excerpts.is_empty(excerpt.payload):
                self._index = LogIndex(index)

    def excerpts(self, first_index: LogIndex, entries: Sequence[LogEntry]) -> tuple[LogEntry, ...]:
        core = self._core
        return tuple(
            self._kept.get(index) or excerpt_of(core.excerpts, entry)
            for index, entry in enumerate(entries, first_index)
        )

    def end_for(self, peer: Progress) -> LogIndex:
        """The last entry that this secondary is to be sent now."""
        last_index = self._core.tail.last_index
        gathered = last_index - peer.next_index >= EXCERPTS_GATHERED
        return last_index if gathered or peer.phase is not ProgressState.STREAMING else self._index

    def has_reached(self, peer: Progress) -> bool:
        """Whether the peer has everything with content that is committed."""
        return peer.received_index >= min(self._index, self._core.commit_index)

    def is_untold(self, peer: Progress) -> bool:
        """Whether the peer has an entry with content, and was not informed that this entry is committed."""
        return peer.told_index < min(self._index, self._core.commit_index, peer.received_index)

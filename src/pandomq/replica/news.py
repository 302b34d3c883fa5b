"""What secondaries are sent, and when: excerpts of entries, those that say something at once, the others gathered.

Most entries are about messages alone, and nothing is left of them for a secondary but their place in the log. Such
entries wait for the next one that says something, for a heartbeat, or until there are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.core import Core
from pandomq.replica.entries import LogEntry, is_own
from pandomq.replica.excerpts import excerpt_of
from pandomq.replica.limits import EXCERPTS_GATHERED, EXCERPTS_KEPT
from pandomq.replica.progress import Phase, Progress


class News:
    """For one root, in one term."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._wanted = False
        """There are secondaries."""
        self._index = LogIndex(0)
        """The last entry that says something to them, if there are any."""
        self._kept: dict[int, LogEntry] = {}
        """Excerpts of the last entries, made once for all of them."""

    def counted(self, peers: Mapping[NodeName, Progress]) -> None:
        """Who there is may be others than before."""
        wanted = any(peer.observer for peer in peers.values())
        if wanted and not self._wanted:
            self._index = self._core.tail.last_index
        self._wanted = wanted

    def wrote(self, last_index: LogIndex, payloads: Sequence[bytes]) -> None:
        """These are at the end of the log now."""
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
        """Up to here this secondary is sent entries now."""
        last_index = self._core.tail.last_index
        gathered = last_index - peer.next_index >= EXCERPTS_GATHERED
        return last_index if gathered or peer.phase is not Phase.STREAMING else self._index

    def has_reached(self, peer: Progress) -> bool:
        """It has all that is committed and says something."""
        return peer.received_index >= min(self._index, self._core.commit_index)

    def is_untold(self, peer: Progress) -> bool:
        """It has an entry that says something, and has not heard that this is committed."""
        return peer.told_index < min(self._index, self._core.commit_index, peer.received_index)

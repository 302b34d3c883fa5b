"""What is known of the one log that all machines should have, epoch by epoch, and who has which copy of it.

A log is known by its chain: two that have the same after an entry are the same up to there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pandomq.ids import LogIndex
from pandomq.sim.replicas.holder import Holder

Place = tuple[int, int]
"""An index, and the chain after it."""


class LogHistory:
    def __init__(self, holders: Sequence[Holder]) -> None:
        self.holders = holders
        self.committed: dict[tuple[str, int], int] = {}
        """By epoch and index: the chain after an entry that some machine called committed."""
        self.longest = 0
        """The last of them."""
        self.copies: dict[Place, set[str]] = {}
        """Who has had an entry on disk."""
        self._synced: dict[int, int] = {}
        self._committed: dict[int, int] = {}

    def note_synced(self, holder: Holder) -> None:
        if holder.replica is None:
            return
        known, last = self._synced.get(holder.life, 0), holder.journal.synced_index
        # After a cut the same places are filled again.
        for place in _places(holder, min(known, last), last):
            self.copies.setdefault(place, set()).add(holder.name)
        self._synced[holder.life] = last

    def newly_committed(self, holder: Holder) -> list[Place]:
        """Since this was last asked."""
        if holder.replica is None:
            return []
        known, last = self._committed.get(holder.life, 0), holder.replica.commit_index
        if last == known:
            return []
        self._committed[holder.life] = last
        self.longest = max(self.longest, last)
        return list(_places(holder, known, last))

    def promoted(self, holder: Holder) -> None:
        """By force: the log goes on from this machine's, and may be shorter than it was."""
        self.longest = holder.journal.last_index


def _places(holder: Holder, after: int, last: int) -> Iterator[Place]:
    journal = holder.journal
    for index in range(max(after, journal.first_index - 1) + 1, last + 1):
        chain = journal.chain_at(LogIndex(index))
        if chain is not None:
            yield index, chain

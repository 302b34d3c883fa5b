"""The one log that all machines should have, epoch by epoch, and the machines that have a copy of each entry.

A chain identifies a log: two logs with the same chain after an entry are equal up to that entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from pandomq.ids import LogIndex
from pandomq.replica.replica import Replica
from pandomq.sim.replicas.holder import ReplicaHolder

Place = tuple[int, int]
"""An index, and the chain after it."""


class LogHistory:
    def __init__(self, holders: Sequence[ReplicaHolder]) -> None:
        self.holders = holders
        self.committed: dict[tuple[str, int], int] = {}
        """By epoch and index: the chain after an entry that some machine reported as committed. The epoch is that of
        the last entry of the report: a forced promotion may replace committed entries of older epochs, and machines
        that have not received it continue to report the old ones."""
        self.lengths: dict[str, int] = {"": 0}
        """By epoch: the number of entries that are known to be committed."""
        self.overtaken: set[str] = set()
        """Epochs that a forced promotion has ended, for all machines but those that have not received it."""
        self.copies: defaultdict[Place, set[str]] = defaultdict(set)
        """The machines that have had each entry on disk."""
        self.clocks_hold = True
        """Whether the error of every clock is within the drift that a lease allows for."""
        self._synced: dict[int, int] = {}
        self._committed: dict[int, int] = {}

    def note_synced(self, holder: ReplicaHolder) -> None:
        if holder.replica is None:
            return
        known, last = self._synced.get(holder.life, 0), holder.journal.synced_index
        if known == last:
            return
        # After entries are cut off, the same indexes are filled again.
        for place in self.places(holder, min(known, last), last):
            self.copies[place].add(holder.name)
        self._synced[holder.life] = last

    def newly_committed(self, holder: ReplicaHolder, last: int) -> list[Place]:
        """The machine reports the entries up to `last` as committed; returns those that it reports for the first
        time."""
        if holder.replica is None:
            return []
        known = self._committed.get(holder.life, 0)
        if last <= known:
            return []
        self._committed[holder.life] = last
        epoch_id = epoch_of(holder.replica, last)
        self.lengths[epoch_id] = max(last, self.lengths.get(epoch_id, 0))
        return list(self.places(holder, known, last))

    @property
    def longest(self) -> int:
        """The number of entries that are known to be committed."""
        return max(length for epoch_id, length in self.lengths.items() if epoch_id not in self.overtaken)

    def promoted(self, holder: ReplicaHolder, epoch_id: str) -> None:
        """The machine was promoted by force: the log continues from this machine's log, and may be shorter than it was.
        Reports of other machines in older epochs no longer count."""
        last = holder.journal.last_index
        self.overtaken.update(self.lengths.keys() - {epoch_id})
        self.lengths[epoch_id] = last
        for index, chain in self.places(holder, 0, last):
            self.committed.setdefault((epoch_id, index), chain)

    def places(self, holder: ReplicaHolder, after: int, last: int) -> Iterator[Place]:
        """Yields the places that the machine still knows after the first of these indexes, up to the last."""
        journal = holder.journal
        for index in range(max(after, journal.first_index - 1) + 1, last + 1):
            chain = journal.chain_at(LogIndex(index))
            if chain is not None:
                yield index, chain


def epoch_of(replica: Replica, index: int) -> str:
    """Returns the epoch in which this entry was written."""
    return replica._core.epoch_id_at(LogIndex(index))

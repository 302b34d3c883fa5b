"""What is known of the one log that all machines should have, epoch by epoch, and who has which copy of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.ids import LogIndex
from pandomq.replica.entries import LogEntry

if TYPE_CHECKING:
    from pandomq.sim.logs.machine import LogMachine


class History:
    def __init__(self, machines: list[LogMachine]) -> None:
        self.machines = machines
        self.committed: dict[str, list[LogEntry | None]] = {"": []}
        """By epoch: entries that some machine called committed; of those that a forced promotion took over without
        knowing whether they were, what its log had."""
        self.confirmed: dict[bytes, str] = {}
        """Payloads that a client was told to be committed, and in which epoch."""
        self.copies: dict[tuple[int, LogEntry], set[str]] = {}
        """Who has had an entry on disk."""
        self._synced: dict[tuple[str, int], int] = {}
        self.clocks_hold = True
        """No clock is further off than a lease allows for."""
        self.overtaken: set[str] = set()
        """Epochs that a forced promotion has ended, for all but those who have not heard of it."""

    def note_synced(self, machine: LogMachine) -> None:
        keeper = machine.keeper
        assert keeper is not None
        if not keeper.runs:
            return
        life = (machine.name, machine.life)
        known, last = self._synced.get(life, 0), min(keeper.journal.synced_index, len(keeper.entries))
        # After a cut the same places are filled again.
        for index in range(min(known, last) + 1, last + 1):
            self.copies.setdefault((index, keeper.entries[index - 1]), set()).add(machine.name)
        self._synced[life] = last

    @property
    def length(self) -> int:
        """Of what is known to be committed."""
        return max(len(log) for epoch_id, log in self.committed.items() if epoch_id not in self.overtaken)

    def epoch_of(self, machine: LogMachine, index: LogIndex) -> str:
        """In which this machine's entry was written."""
        assert machine.keeper is not None
        return next((epoch_id for first, epoch_id in reversed(machine.keeper.epochs) if first <= index), "")

    def promoted(self, machine: LogMachine, epoch_id: str) -> None:
        """By force: the log goes on from this machine's. What others say in older epochs is worth nothing any more."""
        assert machine.keeper is not None
        self.overtaken.update(self.committed)
        self.committed[epoch_id] = [*machine.keeper.entries]
        kept = {entry.payload for entry in machine.keeper.entries}
        self.confirmed = {payload: epoch_id for payload in self.confirmed if payload in kept}

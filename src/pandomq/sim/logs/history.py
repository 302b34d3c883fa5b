"""The history of a world of logs: it identifies logs by the content that keepers have, and knows what clients know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.replicas.history import LogHistory, Place
from pandomq.sim.replicas.holder import ReplicaHolder


class History(LogHistory):
    def __init__(self, machines: Sequence[LogMachine]) -> None:
        super().__init__(machines)
        self.machines = machines
        self.confirmed: dict[bytes, str] = {}
        """The payloads that a client was told to be committed, each with its epoch."""

    def places(self, holder: ReplicaHolder, after: int, last: int) -> Iterator[Place]:
        """Yields all places: a keeper remembers its whole log, with entries that its disk has only in a snapshot."""
        assert isinstance(holder, LogMachine) and holder.keeper is not None
        return enumerate(holder.keeper.chains[after:last], after + 1)

    def promoted(self, holder: ReplicaHolder, epoch_id: str) -> None:
        super().promoted(holder, epoch_id)
        assert isinstance(holder, LogMachine) and holder.keeper is not None
        kept = {entry.payload for entry in holder.keeper.entries}
        self.confirmed = {payload: epoch_id for payload in self.confirmed if payload in kept}

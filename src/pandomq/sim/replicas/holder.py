"""A machine with a replica, as the checkers of replicas see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pandomq.journal.journal import Journal
    from pandomq.replica.replica import Replica


class ReplicaHolder(Protocol):
    name: str
    life: int
    """No two lives of any two machines have the same number."""

    @property
    def replica(self) -> Replica | None:
        """The replica; None while no process runs, or the process reads its store."""

    @property
    def journal(self) -> Journal:
        """The replica's journal."""

    @property
    def awake(self) -> bool: ...

    @property
    def late_ms(self) -> int:
        """The time since the replica was last given the time."""

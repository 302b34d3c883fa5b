"""A machine with a replica, as those see it who look at replicas only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pandomq.journal.journal import Journal
    from pandomq.replica.replica import Replica


class Holder(Protocol):
    name: str
    life: int
    """No two lives of any two machines have the same number."""

    @property
    def replica(self) -> Replica | None:
        """None while nothing runs, or it reads its store."""

    @property
    def journal(self) -> Journal:
        """Of the replica."""

    @property
    def awake(self) -> bool: ...

    @property
    def late_ms(self) -> int:
        """How long the replica was not told the time."""

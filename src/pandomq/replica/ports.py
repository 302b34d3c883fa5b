"""The replica's two interfaces without effects: the log, and random numbers."""

from typing import Protocol

from pandomq.ids import LogIndex, Term


class LogPort(Protocol):
    """The log on disk, read only. `journal.Journal` is one.

    The replica keeps the end of the log in memory and asks only for entries before that. So an answer may lag behind
    effects that were not carried out yet, but must reflect all that were.
    """

    @property
    def first_index(self) -> LogIndex:
        """Entries from here on can be fetched; one more than the last index if the log is empty."""

    @property
    def last_index(self) -> LogIndex: ...

    @property
    def last_term(self) -> Term: ...

    @property
    def synced_index(self) -> LogIndex: ...

    @property
    def waiting_since_ms(self) -> int | None:
        """The time since when a sync is due and the disk has done none, by the clock of `Replica.tick`."""

    def term_at(self, index: LogIndex) -> Term | None:
        """0 for index 0; None if the term is no longer known."""


class Chance(Protocol):
    """`random.Random` is one; the simulator's has a seed."""

    def randrange(self, stop: int, /) -> int: ...

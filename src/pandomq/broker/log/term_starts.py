"""The numbers at which each root's own messages began, for the last few roots: they show whether the log ever had a
message that an earlier root delivered.

A root may deliver messages that are not safe yet. If it crashes, the next one gives the same numbers to other messages:
every message with an older term, and a number from there on, is lost. The log's records of terms show this, too, so
every broker notes it as it applies entries, and has it when it becomes root. Snapshots hold it, since the entries
before them are deleted.
"""

from collections import deque
from collections.abc import Container, Iterable
from typing import Final

from pandomq.limits import TERMS_REMEMBERED

NOW: Final = 2**64
"""A value later than any term."""


class TermStarts:
    __slots__ = ("_starts",)

    def __init__(self) -> None:
        self._starts: deque[tuple[int, dict[int, int]]] = deque(maxlen=TERMS_REMEMBERED)
        """Terms, and by queue id the first number that their roots could give."""

    def begin(self, next_sequences: Iterable[tuple[int, int]], term: int = NOW) -> None:
        """A root's first entry is about to be applied; or this broker is the root from now on."""
        self._starts.append((term, dict(next_sequences)))

    def rows(self, own_term: int, queue_ids: Container[int]) -> list[tuple[int, list[tuple[int, int]]]]:
        """Terms, oldest first, with the queues that still exist. `own_term` is the term of this broker if it is the
        root."""
        return [
            (min(term, own_term), [(queue_id, first) for queue_id, first in firsts.items() if queue_id in queue_ids])
            for term, firsts in self._starts
        ]

    def reinstate(self, term: int, firsts: Iterable[tuple[int, int]]) -> None:
        """Rows of a term, as `rows` had them; a term with many queues may come in several parts."""
        if not self._starts or self._starts[-1][0] != term:
            self._starts.append((term, {}))
        self._starts[-1][1].update(firsts)

    def was_lost(self, queue_id: int, sequence: int, term: int) -> bool:
        """The next root, after the one of this term, did not have the message. For forgotten terms the next remembered
        one counts: some lost messages are not found then."""
        for later, firsts in self._starts:
            if later > term:
                return sequence >= firsts.get(queue_id, 0)
        return False

"""At which numbers each root's own messages began, for the last few roots: so it is known of a message that an earlier
root has delivered whether the log ever had it.

A root may deliver what is not safe yet. If it dies, the next one gives the same numbers to other messages: whatever has
an older term, and a number from there on, is lost. What the log says of terms says this too, so every broker notes it
as it applies entries, and knows it when it becomes root.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from pandomq.limits import TERMS_REMEMBERED

NOW: Final = 2**64
"""Later than any term."""


class TermStarts:
    __slots__ = ("_starts",)

    def __init__(self) -> None:
        self._starts: deque[tuple[int, dict[int, int]]] = deque(maxlen=TERMS_REMEMBERED)
        """Terms, and by queue id the first number that their roots could give."""

    def begin(self, next_sequences: Iterable[tuple[int, int]], term: int = NOW) -> None:
        """A root's first entry is about to be applied; or this broker is the root from now on."""
        self._starts.append((term, dict(next_sequences)))

    def was_lost(self, queue_id: int, sequence: int, term: int) -> bool:
        """The next root, after the one of this term, did not have it. Of terms that are forgotten the next that is
        remembered counts: some that are lost are not found out then."""
        for later, firsts in self._starts:
            if later > term:
                return sequence >= firsts.get(queue_id, 0)
        return False

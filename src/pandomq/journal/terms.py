"""The terms of entries: stored as runs, since terms change rarely."""

from bisect import bisect_right


class Terms:
    """Terms increase with the index, without gaps from the first run on."""

    __slots__ = ("_firsts", "_terms")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._terms: list[int] = []

    def note(self, index: int, term: int) -> None:
        """Entries from this index on have this term, until another is noted."""
        if self._terms and self._terms[-1] == term:
            return
        assert not self._firsts or (index > self._firsts[-1] and term > self._terms[-1]), "terms never go back"
        self._firsts.append(index)
        self._terms.append(term)

    @property
    def last(self) -> int:
        return self._terms[-1] if self._terms else 0

    def at(self, index: int) -> int | None:
        """None before the first run."""
        place = bisect_right(self._firsts, index) - 1
        return None if place < 0 else self._terms[place]

    def count(self, first_index: int, last_index: int) -> int:
        """Number of different terms of these entries."""
        return bisect_right(self._firsts, last_index) - max(bisect_right(self._firsts, first_index) - 1, 0)

    def cut(self, last_index: int) -> None:
        while self._firsts and self._firsts[-1] > last_index:
            self._firsts.pop()
            self._terms.pop()

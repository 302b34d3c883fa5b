"""Which publishes of a channel are confirmed before earlier ones.

If several brokers keep the log, a publish need not wait for the commit unless some part of it must be on their disks:
it is enough that enough of them have *received* its entry. So in each batch the numbers that need no commit form
ranges, which wait for receipt. They also are in the steps of confirms.py, so that a commit covers those that are left.

An ack, or a reply that waits, is a barrier: a later confirm proves it, and so waits for its commit.
"""

from collections import deque
from typing import NamedTuple


class Range(NamedTuple):
    first: int
    last: int
    entry_index: int
    """The entry that has to be received."""


class Early:
    """Always empty while one broker keeps the log alone."""

    __slots__ = ("_ahead", "_barred", "_barrier_index", "_classified", "_unsealed", "_waiting")

    def __init__(self) -> None:
        self._classified = 0  # numbers of this batch up to this one are in ranges, or need the commit
        self._barred = False  # the following publishes of this batch need it
        self._barrier_index = 0  # publishes of later batches need it, too, until this index is committed
        self._unsealed: list[tuple[int, int]] = []
        self._waiting: deque[Range] = deque()
        self._ahead: list[tuple[int, int]] = []  # confirmed, while an earlier one is not; in order

    @property
    def ahead_count(self) -> int:
        return sum(last - first + 1 for first, last in self._ahead)

    def is_barred(self, commit_index: int) -> bool:
        return self._barred or self._barrier_index > commit_index

    # --- a batch

    def needs_commit(self, number: int) -> None:
        """The last publish so far needs the commit."""
        if self._unsealed and self._unsealed[-1][1] == number:
            first, _ = self._unsealed.pop()
            if first < number:
                self._unsealed.append((first, number - 1))
        self._classify(number - 1)
        self._classified = max(self._classified, number)

    def bar(self, published: int) -> None:
        self._classify(published)
        self._barred = True

    def _classify(self, number: int) -> None:
        if number > self._classified:
            if not self._barred:
                self._unsealed.append((self._classified + 1, number))
            self._classified = number

    def sealed(self, after: int, published: int, index: int, commit_index: int, *, held: bool) -> bool:
        """The batch's numbers that are not settled are those after `after`; True if some wait for the receipt. `held`:
        none of them may go out yet."""
        self._classify(published)
        count = len(self._waiting)
        if self._barrier_index <= commit_index and not held:
            self._waiting += [
                Range(max(first, after + 1), last, index) for first, last in self._unsealed if last > after
            ]
        self._unsealed.clear()
        if self._barred:
            self._barred = False
            self._barrier_index = index
        return len(self._waiting) > count

    # --- confirms

    def received(self, index: int) -> Range | None:
        """Returns the next range that may go out."""
        return self._waiting.popleft() if self._waiting and self._waiting[0].entry_index <= index else None

    def went_ahead(self, first: int, last: int) -> None:
        if self._ahead and self._ahead[-1][1] == first - 1:
            first = self._ahead.pop()[0]
        self._ahead.append((first, last))

    def left_of(self, after: int, number: int) -> tuple[int, int]:
        """Number of publishes after `after`, up to `number`, that are not confirmed, and the last of them."""
        if not self._ahead:
            return number - after, number
        count = last = 0
        for first_ahead, last_ahead in (*self._ahead, (number + 1, number + 1)):
            end = min(first_ahead - 1, number)
            if end > after:
                count += end - after
                last = end
            after = max(after, last_ahead)
        return count, last

    def settled(self, number: int) -> int:
        """Numbers up to this one are confirmed; returns the number up to which all are."""
        while self._ahead and self._ahead[0][0] <= number + 1:
            number = max(number, self._ahead.pop(0)[1])
        return number

    def check(self, settled: int, published: int) -> None:
        assert not self._unsealed or self._unsealed[-1][1] <= published
        for ranges in (self._ahead, self._waiting):
            bounds = [bound for first, last, *_ in ranges for bound in (first, last)]
            assert bounds == sorted(bounds)
        assert not self._ahead or self._ahead[0][0] > settled + 1
        indexes = [waiting.entry_index for waiting in self._waiting]
        assert indexes == sorted(indexes)

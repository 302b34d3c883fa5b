"""The consumers of one queue that may take a message, by priority, one message each in turn.

A consumer stays in its turn until it is found to have an obstacle; then it leaves for where that obstacle ends: the
channel's or the session's resting chain, or nowhere if its own acks will wake it.
"""

from bisect import insort
from typing import TYPE_CHECKING

from pandomq.kernel.plain.chain import Chain

if TYPE_CHECKING:
    from pandomq.kernel.plain.consumer import Consumer


class Turn(Chain):
    """The ready consumers of one priority."""

    __slots__ = ("members", "priority")

    def __init__(self, priority: int) -> None:
        super().__init__()
        self.priority = priority
        self.members = 0  # registered, ready or not


def _highest_first(turn: Turn) -> int:
    return -turn.priority


class Rotation:
    """Turns from the highest priority down."""

    __slots__ = ("_turns",)

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    def join(self, priority: int) -> Turn:
        """The turn for a new consumer of this priority."""
        for turn in self._turns:
            if turn.priority == priority:
                break
        else:
            turn = Turn(priority)
            insort(self._turns, turn, key=_highest_first)
        turn.members += 1
        return turn

    def leave(self, turn: Turn) -> None:
        turn.members -= 1
        if not turn.members:
            self._turns.remove(turn)

    def next(self) -> "Consumer | None":
        """The consumer that gets the next message, already moved to the end of its turn."""
        turn = self._next_turn()
        if turn is None:
            return None
        consumer = turn.first
        turn.rotate()
        return consumer

    @property
    def is_waiting(self) -> bool:
        """Whether some consumer would take a message now."""
        return self._next_turn() is not None

    def _next_turn(self) -> Turn | None:
        """The turn whose first consumer may take a message."""
        for turn in self._turns:
            while (consumer := turn.first) is not None:
                if not consumer.has_obstacle():
                    return turn
                turn.remove(consumer)
                consumer.rest()
        return None

    def check(self) -> None:
        priorities = [turn.priority for turn in self._turns]
        assert priorities == sorted(set(priorities), reverse=True)
        for turn in self._turns:
            turn.check()
            assert turn.members >= sum(1 for _ in turn)
            assert all(consumer.active and consumer.registered for consumer in turn)

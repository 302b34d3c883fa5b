"""Gathers effects, and lets no message out while the hard state is on its way to the disk.

Whatever a message says follows from the state it was made in: its header names the term, a vote says whom it was given
to, an acknowledgement of members says that they are in force here. If that state could be forgotten in a crash after
the message went out, its sender could say the opposite in its next life. So the rule is the same for all: state first.
"""

from __future__ import annotations

from collections import deque

from pandomq.ids import NodeName
from pandomq.replica.effects import Effect, SaveState, Send
from pandomq.replica.hard_state import HardState
from pandomq.replica.limits import HELD_MESSAGES_MAX
from pandomq.replica.messages import Message


class Outbox:
    __slots__ = ("_changed", "_effects", "_held", "_state", "saved_number", "saving_number")

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._held: deque[Send] = deque(maxlen=HELD_MESSAGES_MAX)
        self._state = HardState()
        self._changed = False
        self.saving_number = 0
        self.saved_number = 0

    def put(self, effect: Effect) -> None:
        self._effects.append(effect)

    def save(self, state: HardState) -> None:
        """Several changes between two calls of `take` are one save."""
        self._state = state
        if not self._changed:
            self._changed = True
            self.saving_number += 1

    def send(self, peer: NodeName, message: Message) -> None:
        if self.must_wait():
            self._held.append(Send(peer, message))
        else:
            self._effects.append(Send(peer, message))

    def must_wait(self) -> bool:
        return self.saved_number < self.saving_number

    def saved(self, number: int) -> None:
        self.saved_number = max(self.saved_number, number)
        if not self.must_wait():
            self._effects += self._held
            self._held.clear()

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        if self._changed:
            # First: entries that are written next may be of the term that it names, or change the members it holds.
            self._changed = False
            effects.insert(0, SaveState(self.saving_number, self._state))
        return effects

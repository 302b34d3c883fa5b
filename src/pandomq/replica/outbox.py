"""Collects effects, and sends no message while the hard state is being written to disk.

The content of a message depends on the state in which it was made: its header contains the term, a vote names its
candidate, an acknowledgement of members means that they are in force here. If that state could be lost in a crash after
the message was sent, the broker could contradict it after its restart. So the rule is the same for all: state first.
"""

from __future__ import annotations

from collections import deque

from pandomq.hard_state import HardState
from pandomq.ids import NodeName
from pandomq.replica.effects import Effect, SaveState, Send
from pandomq.replica.limits import HELD_MESSAGES_MAX
from pandomq.replica.protocol.messages import ReplicaMessage


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
        """Several changes between two calls of `take` are saved once."""
        self._state = state
        if not self._changed:
            self._changed = True
            self.saving_number += 1

    def send(self, peer: NodeName, message: ReplicaMessage) -> None:
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
            # First: entries that are written next may be of the term that it contains, or change its members.
            self._changed = False
            effects.insert(0, SaveState(self.saving_number, self._state))
        return effects

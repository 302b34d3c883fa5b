"""Publishes that a channel has forwarded to the root and that the root has not confirmed, kept so that they can be sent
again.

Confirms may come out of order, but publishes that are sent again must follow their numbers without a gap. So a
confirmed message stays until all before it are confirmed, too. It is sent again with CONFIRMED_BEFORE: the next root
counts it and does nothing else with it, because queues that were bound later must not get it. If it is confirmed once
more, that confirm is ignored. A message that the root has returned and not confirmed yet is no longer mandatory: the
next root accepts it, or drops it, but does not return it again.
"""

from collections import deque
from typing import TYPE_CHECKING

from pandomq.kernel.constants import CONFIRMED_BEFORE, MANDATORY

if TYPE_CHECKING:
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.message import Message


class Forwarded:
    __slots__ = ("confirmed", "flags", "message")

    def __init__(self, message: "Message", flags: int) -> None:
        self.message = message
        self.flags = flags
        self.confirmed = False


class Kept:
    """Numbers from `first` up to `published`, without a gap."""

    __slots__ = ("_confirmed_count", "_engine", "_window", "bytes", "published", "returned")

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._window: deque[Forwarded] = deque()
        self._confirmed_count = 0  # in the window
        self.published = 0
        self.bytes = 0
        self.returned = 0
        """The number of the last publish that this root has returned: it returns them in order."""

    def __len__(self) -> int:
        return len(self._window)

    @property
    def first(self) -> int:
        return self.published - len(self._window) + 1

    @property
    def unconfirmed_count(self) -> int:
        return len(self._window) - self._confirmed_count

    def add(self, message: "Message", flags: int) -> None:
        self._engine.hold(message)
        self._window.append(Forwarded(message, flags))
        self.bytes += message.held_bytes
        self.published += 1

    def confirm(self, number: int, multiple: bool) -> tuple[int, int]:
        """Returns how many publishes this confirms for the first time, and the number of the last one of them."""
        first = self.first
        count = last = 0
        for one in range(first if multiple else max(number, first), min(number, self.published) + 1):
            forwarded = self._window[one - first]
            if not forwarded.confirmed:
                forwarded.confirmed = True
                # A return precedes the confirm: this one can no longer come back.
                forwarded.flags &= ~MANDATORY
                count += 1
                last = one
        self._confirmed_count += count
        while self._window and self._window[0].confirmed:
            self._confirmed_count -= 1
            self._let_go(self._window.popleft())
        return count, last

    def come_back(self, message: "Message") -> None:
        first = self.first
        for one in range(max(first, self.returned + 1), self.published + 1):
            forwarded = self._window[one - first]
            # The headers differ where the root adds or removes some.
            if (
                forwarded.flags & MANDATORY
                and forwarded.message.routing == message.routing
                and forwarded.message.body == message.body
            ):
                forwarded.flags &= ~MANDATORY
                self.returned = one
                return

    def messages(self) -> list[tuple["Message", int]]:
        """In order, with their flags."""
        return [(one.message, one.flags | CONFIRMED_BEFORE if one.confirmed else one.flags) for one in self._window]

    def clear(self) -> None:
        while self._window:
            self._let_go(self._window.popleft())
        self._confirmed_count = 0

    def _let_go(self, forwarded: Forwarded) -> None:
        self.bytes -= forwarded.message.held_bytes
        self._engine.let_go(forwarded.message)

    def check(self) -> None:
        assert self.bytes == sum(forwarded.message.held_bytes for forwarded in self._window)
        assert self._confirmed_count == sum(forwarded.confirmed for forwarded in self._window)
        assert not self._window or not self._window[0].confirmed

"""What a channel has forwarded to the root and the root has not confirmed, kept so that it can be sent again.

Confirms may come out of order, but what is sent again must follow its numbers without a gap. So a message that was
confirmed stays until all before it are confirmed, too; when it is confirmed once more, nobody hears of it.
"""

from collections import deque
from typing import TYPE_CHECKING

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

    __slots__ = ("_confirmed_count", "_engine", "_window", "bytes", "published")

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._window: deque[Forwarded] = deque()
        self._confirmed_count = 0  # in the window
        self.published = 0
        self.bytes = 0

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
        """How many are confirmed by this that were not, and the number of the last one of them."""
        first = self.first
        count = last = 0
        for one in range(first if multiple else max(number, first), min(number, self.published) + 1):
            forwarded = self._window[one - first]
            if not forwarded.confirmed:
                forwarded.confirmed = True
                count += 1
                last = one
        self._confirmed_count += count
        while self._window and self._window[0].confirmed:
            self._confirmed_count -= 1
            self._let_go(self._window.popleft())
        return count, last

    def messages(self) -> list[tuple["Message", int]]:
        """In order, with their flags."""
        return [(forwarded.message, forwarded.flags) for forwarded in self._window]

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

"""Connections that are not open yet: how many there are, and whose handshake goes on next.

Ten thousand clients may come at once, and none of them may keep a broker from what it owes its peers. So what they send
is not looked at when it is read: they wait in line, and in each step a few of them go on, in the order in which they
spoke. Who speaks again while it waits is not read from until its turn has come.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from pandomq import limits
from pandomq.wire.states import OVER, State

if TYPE_CHECKING:
    from pandomq.node.link import Link

_OURS_TO_ANSWER: Final = frozenset({State.LOGIN, State.VHOST})


class Handshakes:
    __slots__ = ("_line", "_under_way")

    def __init__(self) -> None:
        self._under_way: dict[Link, int] = {}
        """Since when. Who came first is first."""
        self._line: dict[Link, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def room(self) -> int:
        """How many more may come."""
        return max(0, limits.HANDSHAKES_MAX - len(self._under_way))

    def begin(self, link: Link, now_ms: int) -> None:
        self._under_way[link] = now_ms

    def look_at(self, link: Link) -> None:
        """To be called when its handshake has gone on: it may be over."""
        state = link.connection.state
        if state is State.RUNNING or state in OVER:
            self._under_way.pop(link, None)

    def forget(self, link: Link) -> None:
        self._under_way.pop(link, None)
        self._line.pop(link, None)

    # The line.

    def concerns(self, link: Link) -> bool:
        """Whether what comes from it has to wait in line: who is not in, or has yet to be heard."""
        return (link.client is None and link.hello is None) or link in self._line

    def put(self, link: Link, data: memoryview) -> bool:
        """False: it is not to be read from until its turn has come."""
        waiting = self._line.get(link)
        if waiting is None:
            self._line[link] = [bytes(data)]
            return True
        waiting.append(bytes(data))
        return False

    def waits(self, link: Link) -> bool:
        return link in self._line

    @property
    def waiting(self) -> bool:
        """Somebody does."""
        return bool(self._line)

    def take(self) -> list[tuple[Link, bytes]]:
        """Those whose turn it is, and what they said."""
        if not self._line:
            return []
        turns = list(islice(self._line, limits.HANDSHAKES_PER_STEP_MAX))
        return [(link, b"".join(self._line.pop(link))) for link in turns]

    def hear_out(self, link: Link) -> bytes:
        """What one who has gone said before, if that was not its turn yet."""
        return b"".join(self._line.pop(link, ()))

    # The crowd.

    def idlers(self, now_ms: int) -> list[Link]:
        """Where there is no room: some of those who take their time, to make some."""
        if self.room:
            return []
        latest_ms = now_ms - limits.CROWDED_HANDSHAKE_MS_MAX
        old = takewhile(lambda item: item[1] <= latest_ms, self._under_way.items())
        theirs = (link for link, _ in old if link not in self._line and link.connection.state not in _OURS_TO_ANSWER)
        return list(islice(theirs, limits.DROPS_PER_TICK_MAX))

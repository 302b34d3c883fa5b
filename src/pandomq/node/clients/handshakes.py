"""Connections that are not open yet: how many there are, and whose handshake continues next.

Ten thousand clients may connect at once, and must not delay the broker's traffic with its peers. So their input is not
handled when it is read: they wait in line, and in each step the handshakes of a few continue, in the order in which
input came. A connection that sends more while it waits is not read from until its turn comes.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from pandomq import limits
from pandomq.wire.states import OVER, ConnectionState

if TYPE_CHECKING:
    from pandomq.node.clients.client_link import ClientLink

_OURS_TO_ANSWER: Final = frozenset({ConnectionState.LOGIN, ConnectionState.VHOST})


class Handshakes:
    __slots__ = ("_line", "_under_way")

    def __init__(self) -> None:
        self._under_way: dict[ClientLink, int] = {}
        """The time when each link connected; in the order of connecting."""
        self._line: dict[ClientLink, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def room(self) -> int:
        """How many more connections may be accepted."""
        return max(0, limits.HANDSHAKES_MAX - len(self._under_way))

    def begin(self, link: ClientLink, now_ms: int) -> None:
        self._under_way[link] = now_ms

    def look_at(self, link: ClientLink) -> None:
        """To be called when the link's handshake has continued: it may be over."""
        state = link.connection.state
        if state is ConnectionState.RUNNING or state in OVER:
            self._under_way.pop(link, None)

    def forget(self, link: ClientLink) -> None:
        self._under_way.pop(link, None)
        self._line.pop(link, None)

    # The line.

    def concerns(self, link: ClientLink) -> bool:
        """Whether the link's input has to wait in line: it is not open, or has older input in line."""
        return (link.client is None and link.hello is None) or link in self._line

    def put(self, link: ClientLink, data: memoryview) -> bool:
        """False: the link must not be read from until its turn comes."""
        waiting = self._line.get(link)
        if waiting is None:
            self._line[link] = [bytes(data)]
            return True
        waiting.append(bytes(data))
        return False

    def waits(self, link: ClientLink) -> bool:
        return link in self._line

    @property
    def waiting(self) -> bool:
        """A link waits."""
        return bool(self._line)

    def take(self) -> list[tuple[ClientLink, bytes]]:
        """The links whose turn it is, and their input."""
        if not self._line:
            return []
        turns = list(islice(self._line, limits.HANDSHAKES_PER_STEP_MAX))
        return [(link, b"".join(self._line.pop(link))) for link in turns]

    def hear_out(self, link: ClientLink) -> bytes:
        """The input that a lost link sent before, if its turn had not come yet."""
        return b"".join(self._line.pop(link, ()))

    # Too many connections.

    def idlers(self, now_ms: int) -> list[ClientLink]:
        """Some of the slowest handshakes, to be dropped where there is no room."""
        if self.room:
            return []
        latest_ms = now_ms - limits.CROWDED_HANDSHAKE_MS_MAX
        old = takewhile(lambda item: item[1] <= latest_ms, self._under_way.items())
        theirs = (link for link, _ in old if link not in self._line and link.connection.state not in _OURS_TO_ANSWER)
        return list(islice(theirs, limits.DROPS_PER_TICK_MAX))

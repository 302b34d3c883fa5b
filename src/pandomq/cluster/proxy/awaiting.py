"""What a front waits for, and for how long: a root, the next attempt to reach it, the feed.

A client that has asked something and finds no root is told so after a time (R15); one that asks nothing never is. An
answer of the root that speaks of what the front does not know yet waits until it does, so that whatever the client
does next finds it (R16); after a time it is given all the same, since the root's word is enough.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pandomq.cluster.proxy.call import Call
from pandomq.cluster.proxy.limits import FEED_WAIT_MS_MAX, GOODBYE_MS_MAX, REDIAL_MS_MAX, REDIAL_MS_MIN
from pandomq.errors import ConnectionFault, connection_forced
from pandomq.kernel import NEVER_MS
from pandomq.methods import ChannelOpenOk

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.front_client import FrontClient


def no_root(root_wait_ms: int) -> ConnectionFault:
    return connection_forced(f"no root for {root_wait_ms} ms. Nothing that was confirmed is lost; try again later")


class Dialing(Protocol):
    attempt_count: int
    """In a row, without success."""

    def dial(self) -> None: ...


class _Unknown(NamedTuple):
    known: Callable[[], bool]
    call: Call
    until_ms: int


class Awaiting:
    __slots__ = (
        "_dial_count",
        "_dial_times",
        "_dials",
        "_front",
        "_goodbyes",
        "_root_wait_ms",
        "_since_ms",
        "_unknown",
    )

    def __init__(self, front: "Front", root_wait_ms: int) -> None:
        self._front = front
        self._root_wait_ms = root_wait_ms
        self._since_ms: dict[FrontClient, int] = {}
        """Clients that wait for a root, the one that has waited longest first."""
        self._dials: dict[Dialing, int] = {}
        """Who will try again, and when."""
        self._dial_times: list[tuple[int, int, Dialing]] = []
        """The same in order of time; a number tells equal ones apart. Some no longer hold."""
        self._dial_count = 0
        self._unknown: list[_Unknown] = []
        self._goodbyes: dict[FrontClient, int] = {}
        """Clients that have left, and until when the root may take to notice."""

    # A root.

    def kept_waiting(self, client: "FrontClient") -> None:
        """It has asked something that is not handled, or not answered."""
        if client.lacks_root and not client.failed:
            self._since_ms.setdefault(client, self._front.now_ms)

    def has_root(self, client: "FrontClient") -> None:
        self._since_ms.pop(client, None)

    def _give_up(self, now_ms: int) -> None:
        while self._since_ms:
            client, since_ms = next(iter(self._since_ms.items()))
            waits = client.lacks_root and not client.gone and not client.failed
            if waits and since_ms + self._root_wait_ms > now_ms:
                return
            del self._since_ms[client]
            if waits:
                self._front.faults.close_client(client, no_root(self._root_wait_ms))

    # The next attempt to reach it.

    def dial_later(self, dialing: Dialing, attempt_count: int) -> None:
        """Sooner after the first attempts than after many."""
        wait_ms = min(REDIAL_MS_MIN << min(attempt_count, 16), REDIAL_MS_MAX) if attempt_count else 0
        at_ms = self._dials[dialing] = self._front.now_ms + wait_ms
        self._dial_count += 1
        heappush(self._dial_times, (at_ms, self._dial_count, dialing))

    def root_changed(self) -> None:
        """It has refused nobody yet: what others did is no reason to let it wait."""
        for dialing in list(self._dials):
            dialing.attempt_count = 0
            self.dial_later(dialing, 0)

    def is_due_to_dial(self, dialing: Dialing) -> bool:
        return dialing in self._dials

    def forget(self, dialing: Dialing) -> None:
        self._dials.pop(dialing, None)

    def _dial(self, now_ms: int) -> None:
        while self._dial_times and self._dial_times[0][0] <= now_ms:
            at_ms, _, dialing = heappop(self._dial_times)
            if self._dials.get(dialing) == at_ms:
                del self._dials[dialing]
                dialing.dial()

    # The feed.

    def know(self, channel: "FrontChannel", known: Callable[[], bool], then: Callable[[], None]) -> None:
        """Now, if it is known, or as soon as it is; the client waits."""
        if known():
            then()
            return
        client = channel.client
        call = client.call = Call(channel, then=lambda _method, _message: then())
        self._unknown.append(_Unknown(known, call, self._front.now_ms + FEED_WAIT_MS_MAX))

    def fed(self) -> None:
        """Something is known that was not."""
        if self._unknown:
            self._learn(self._front.now_ms)

    def _learn(self, now_ms: int) -> None:
        waiting, self._unknown = self._unknown, []
        for unknown in waiting:
            if not unknown.call.alive:
                continue
            if unknown.until_ms <= now_ms or unknown.known():
                unknown.call.answer(ChannelOpenOk())
            else:
                self._unknown.append(unknown)

    # Goodbyes.

    def goodbye(self, client: "FrontClient") -> None:
        """It waits for the root, but not for ever."""
        self._goodbyes[client] = self._front.now_ms + GOODBYE_MS_MAX

    def _let_go(self, now_ms: int) -> None:
        for client, until_ms in list(self._goodbyes.items()):
            if client.gone or client.parted or until_ms <= now_ms:
                del self._goodbyes[client]
                if client.goodbye is not None and not client.gone:
                    client.goodbye.give_up()

    # Time.

    def tick(self, now_ms: int) -> None:
        self._dial(now_ms)
        self._learn(now_ms)
        self._give_up(now_ms)
        self._let_go(now_ms)

    @property
    def next_ms(self) -> int:
        next_ms = self._dial_times[0][0] if self._dial_times else NEVER_MS
        if self._unknown:
            next_ms = min(next_ms, self._unknown[0].until_ms)
        if self._since_ms:
            next_ms = min(next_ms, next(iter(self._since_ms.values())) + self._root_wait_ms)
        if self._goodbyes:
            next_ms = min(next_ms, next(iter(self._goodbyes.values())))
        return next_ms

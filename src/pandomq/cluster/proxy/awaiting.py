"""The waiting of a front, with its time limits: for a root, for the next attempt to reach it, for the feed."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pandomq.cluster.proxy.call import Call
from pandomq.cluster.proxy.limits import (
    CLOSE_WAIT_MS_MAX,
    FEED_WAIT_MS_MAX,
    REDIAL_MS_MAX,
    REDIAL_MS_MIN,
    REPEAT_MS_MAX,
)
from pandomq.errors import ConnectionFault, connection_forced
from pandomq.kernel import NEVER_MS
from pandomq.methods import ChannelOpenOk

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.front_client import FrontClient


def no_root(root_wait_ms: int) -> ConnectionFault:
    return connection_forced(
        f"no root was elected for {root_wait_ms} ms. Confirmed messages are not lost; try again later"
    )


class Dialing(Protocol):
    attempt_count: int
    """Failed attempts in a row."""

    def dial(self) -> None: ...


class _Unknown(NamedTuple):
    known: Callable[[], bool]
    call: Call
    until_ms: int


class Awaiting:
    __slots__ = (
        "_closing",
        "_dial_count",
        "_dial_times",
        "_dials",
        "_front",
        "_repeats",
        "_root_wait_ms",
        "_since_ms",
        "_unknown",
    )

    def __init__(self, front: "Front", root_wait_ms: int) -> None:
        self._front = front
        self._root_wait_ms = root_wait_ms
        self._since_ms: dict[FrontClient, int] = {}
        """Clients that wait for a root, the one that has waited longest first."""
        self._repeats: dict[FrontClient, int] = {}
        """Clients with unconfirmed publishes and without a root, and until when these are sent again; in the order of
        that time."""
        self._dials: dict[Dialing, int] = {}
        """When each dialing is tried again."""
        self._dial_times: list[tuple[int, int, Dialing]] = []
        """All scheduled attempts in order of time; a number distinguishes equal times. Some entries are out of date."""
        self._dial_count = 0
        self._unknown: list[_Unknown] = []
        self._closing: dict[FrontClient, int] = {}
        """Clients that close their connections, and until when the front waits for the root."""

    # Waiting for a root.

    def kept_waiting(self, client: "FrontClient") -> None:
        """The client has sent a request that is not handled, or not answered."""
        if client.lacks_root and not client.failed:
            self._since_ms.setdefault(client, self._front.now_ms)

    def keeps_publishes(self, client: "FrontClient") -> None:
        """The client has lost its root, which has not confirmed all publishes."""
        self._repeats.setdefault(client, self._front.now_ms + REPEAT_MS_MAX)

    def has_root(self, client: "FrontClient") -> None:
        self._since_ms.pop(client, None)
        self._repeats.pop(client, None)

    def _give_up(self, now_ms: int) -> None:
        while self._since_ms:
            client, since_ms = next(iter(self._since_ms.items()))
            waits = client.lacks_root and not client.gone and not client.failed
            if waits and since_ms + self._root_wait_ms > now_ms:
                return
            del self._since_ms[client]
            if waits:
                self._front.faults.close_client(client, no_root(self._root_wait_ms))

    def _give_up_publishes(self, now_ms: int) -> None:
        while self._repeats:
            client, until_ms = next(iter(self._repeats.items()))
            if until_ms > now_ms:
                return
            del self._repeats[client]
            if not client.gone and not client.failed:
                self._front.faults.close_client(client, no_root(REPEAT_MS_MAX))

    # Waiting for the next attempt to reach the root.

    def dial_later(self, dialing: Dialing, attempt_count: int, first_ms: int = 0) -> None:
        """Schedules another attempt: sooner after the first attempts than after many. `first_ms` is the wait if no
        attempt is counted."""
        wait_ms = min(REDIAL_MS_MIN << min(attempt_count, 16), REDIAL_MS_MAX) if attempt_count else first_ms
        at_ms = self._dials[dialing] = self._front.now_ms + wait_ms
        self._dial_count += 1
        heappush(self._dial_times, (at_ms, self._dial_count, dialing))

    def dial_all(self) -> None:
        """Dials all attempts at once: the root has refused none of them yet, or it serves since then."""
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

    # Waiting for the feed.

    def know(self, channel: "FrontChannel", known: Callable[[], bool], then: Callable[[], None]) -> None:
        """Calls `then` now, if `known`, or as soon as it is; the client waits."""
        if known():
            then()
            return
        client = channel.client
        call = client.call = Call(channel, then=lambda _method, _message: then())
        self._unknown.append(_Unknown(known, call, self._front.now_ms + FEED_WAIT_MS_MAX))

    def fed(self) -> None:
        """The feed has brought something new."""
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

    # Clients that close their connections.

    def closing_client(self, client: "FrontClient") -> None:
        """The client waits for the root, for a limited time."""
        self._closing[client] = self._front.now_ms + CLOSE_WAIT_MS_MAX

    def _let_go(self, now_ms: int) -> None:
        for client, until_ms in list(self._closing.items()):
            if client.gone or client.closed_at_root or until_ms <= now_ms:
                del self._closing[client]
                if client.closing_client is not None and not client.gone:
                    client.closing_client.give_up()

    # Time.

    def tick(self, now_ms: int) -> None:
        # This comes first: publishes that are too old must not be sent again.
        self._give_up_publishes(now_ms)
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
        if self._repeats:
            next_ms = min(next_ms, next(iter(self._repeats.values())))
        if self._closing:
            next_ms = min(next_ms, next(iter(self._closing.values())))
        return next_ms

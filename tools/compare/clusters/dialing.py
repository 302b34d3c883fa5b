"""Finds a serving broker: dials several brokers at once, repeatedly, until one accepts a publisher.

A broker that refuses is dialed again after a short time; an attempt without an answer is cancelled after some time.
"""

import contextlib
import socket
from collections.abc import Sequence

from pandomq.bench.client import wire
from pandomq.bench.client.handshake import Handshake
from pandomq.bench.client.session import CHANNEL
from pandomq.bench.client.url import BrokerUrl
from pandomq.bench.loop import Loop
from tools.compare.clusters import limits

_OPENING = wire.channel_open(CHANNEL) + wire.confirm_select(CHANNEL)


class Attempt:
    """One handshake that may fail without harm to the others."""

    def __init__(self, url: BrokerUrl, begun_ns: int) -> None:
        self.url = url
        self.begun_ns = begun_ns
        self.failed = ""
        self.handshake = Handshake(url, (url.host, url.port), socket.AF_INET, _OPENING, wire.CONFIRM_SELECT_OK)

    def fileno(self) -> int:
        return self.handshake.fileno()

    @property
    def wants_write(self) -> bool:
        return self.handshake.wants_write

    def readable(self) -> None:
        try:
            self.handshake.readable()
        except (OSError, wire.BrokerRefused) as error:
            self.failed = str(error)

    def writable(self) -> None:
        try:
            self.handshake.writable()
        except (OSError, wire.BrokerRefused) as error:
            self.failed = str(error)


class Dialer:
    def __init__(self, loop: Loop, urls: Sequence[BrokerUrl]) -> None:
        """Addresses are numeric: looking up a name would block."""
        self._loop = loop
        self._urls = urls
        self._attempts: dict[BrokerUrl, Attempt] = {}
        self._again_ns: dict[BrokerUrl, int] = {}
        self.refusals: dict[BrokerUrl, str] = {}
        """The last error of each broker."""

    def turn(self, now_ns: int, but: BrokerUrl | None) -> Attempt | None:
        """Checks the attempts under way, and starts those that are due; returns the successful one."""
        for url, attempt in list(self._attempts.items()):
            if attempt.handshake.ready:
                del self._attempts[url]
                self._loop.remove(attempt)
                self.give_up()
                return attempt
            if attempt.failed or now_ns - attempt.begun_ns > limits.DIAL_TIMEOUT_NS:
                self._fail(url, attempt.failed or "no response", now_ns)
        for url in self._urls:
            if url != but and url not in self._attempts and now_ns >= self._again_ns.get(url, 0):
                self._begin(url, now_ns)
        return None

    def _begin(self, url: BrokerUrl, now_ns: int) -> None:
        try:
            attempt = Attempt(url, now_ns)
        except OSError as error:
            self.refusals[url] = str(error)
            self._again_ns[url] = now_ns + limits.DIAL_AGAIN_NS
            return
        self._attempts[url] = attempt
        self._loop.add(attempt)

    def _fail(self, url: BrokerUrl, reason: str, now_ns: int) -> None:
        self.refusals[url] = reason
        self._again_ns[url] = now_ns + limits.DIAL_AGAIN_NS
        self._drop(self._attempts.pop(url))

    def _drop(self, attempt: Attempt) -> None:
        self._loop.remove(attempt)
        with contextlib.suppress(OSError):
            attempt.handshake.connection.close()

    def give_up(self) -> None:
        """Ends all attempts."""
        while self._attempts:
            self._drop(self._attempts.popitem()[1])

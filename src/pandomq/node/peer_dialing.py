"""Who is dialed, when, and what came of it: the connections that this broker makes to others.

Each *target* is an address with the name of the broker that is expected there; of those that are only given to join a
cluster by, the name shows when it answers. What a connection became is told to `DialingOwner`; what is to be written
and opened is fetched. After a failure the next attempt waits, longer each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from pandomq.cluster.dialer import Dialer
from pandomq.cluster.introduction import LinkRefused, Stage
from pandomq.cluster.limits import REDIAL_MS_MAX, REDIAL_MS_MIN, REFUSED_REDIAL_MS
from pandomq.node.dialed import Dialed
from pandomq.node.output import Dial, HangUp, PeerControl

if TYPE_CHECKING:
    from random import Random

    from pandomq.cluster.hello import Hello
    from pandomq.cluster.parcels import Octets

log = logging.getLogger("pandomq")

CLOSED_BY_PEER: Final = "it closed the connection"


class DialedPeer(Dialed):
    """One attempt to link to a broker, from dialing to the last byte."""

    __slots__ = ("dialer", "name", "opened")

    def __init__(self, owner: PeerDialing, name: str, address: str) -> None:
        super().__init__(owner, address)
        self.name = name
        """Of the broker that is expected there; empty if that is not known."""
        self.dialer: Dialer | None = None
        """Once there is a connection."""
        self.opened = False
        """It was good for something."""

    @property
    def open(self) -> bool:
        return self.dialer is not None and self.dialer.stage is Stage.OPEN


PeerWrites = list[tuple[Dialed, "Octets"]]


class Target:
    __slots__ = ("address", "dialed", "dialed_ms", "failures", "name", "redial_ms", "trouble")

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.dialed: DialedPeer | None = None
        self.dialed_ms = self.redial_ms = 0
        """When the last attempt began, and when the next one is due."""
        self.failures = 0
        """Attempts in a row that came to nothing."""
        self.trouble = ""
        """Why the last of them did."""


class DialingOwner(Protocol):
    def dial_opened(self, dialed: DialedPeer, hello: Hello, now_ms: int) -> None:
        """The broker of this hello can be published to."""

    def dial_ended(self, dialed: DialedPeer, reason: str, now_ms: int, *, by_peer: bool) -> None:
        """That is over. Not said of those who were hung up on by their owner."""

    def dial_resumed(self, dialed: DialedPeer) -> None:
        """Its socket takes more again."""


class PeerDialing:
    def __init__(self, key: bytes, make_hello: Callable[[str], Hello], owner: DialingOwner, random: Random) -> None:
        self._key = key
        self._make_hello = make_hello
        self._owner = owner
        self._random = random
        self.targets: dict[str, Target] = {}
        """By name, or by address where that is all that is known."""
        self._controls: list[PeerControl] = []
        self._talking: dict[DialedPeer, None] = {}

    # Where to.

    def aim(self, name: str, address: str, now_ms: int) -> None:
        """This broker is to be dialed there; soon, as something is new about it."""
        target = self.targets.setdefault(name or address, Target(name, address))
        target.address = address
        target.redial_ms = min(target.redial_ms, now_ms + REDIAL_MS_MIN)

    def forget(self, name: str) -> None:
        """Nobody looks for it any more. A connection that there is stays."""
        self.targets.pop(name, None)

    # Time.

    def tick(self, now_ms: int, *, lonely: bool) -> None:
        """`lonely`: nobody is linked, or nobody who could say who the primaries are, so those are asked as well who are
        only there to be joined."""
        # A broker that is to be joined may be known by name as well. It is dialed once: of two connections it would
        # keep the newer one, and this end the older one.
        busy = {target.address for target in self.targets.values() if target.dialed is not None}
        for target in list(self.targets.values()):
            dialed = target.dialed
            if dialed is None:
                if now_ms >= target.redial_ms and (target.name or lonely) and target.address not in busy:
                    busy.add(target.address)
                    target.dialed = DialedPeer(self, target.name, target.address)
                    target.dialed_ms = now_ms
                    self._controls.append(Dial(target.dialed))
            elif dialed.dialer is not None:
                try:
                    dialed.dialer.tick(now_ms)
                except LinkRefused as refused:
                    self._end(dialed, refused.reason, now_ms, by_peer=False, lasting=refused.lasting)
                else:
                    self._talking[dialed] = None

    # What the runtime reports.

    def dialed(self, dialed: DialedPeer, now_ms: int) -> None:
        """There is a connection now; `dialed.socket` is set."""
        if dialed.gone:
            self._controls.append(HangUp(dialed))
            return
        dialed.dialer = Dialer(self._key, self._make_hello(dialed.name), now_ms)
        self._talking[dialed] = None

    def not_dialed(self, dialed: DialedPeer, reason: str, now_ms: int) -> None:
        if not dialed.gone:
            self._end(dialed, reason, now_ms, by_peer=False, lasting=False)

    def receive(self, dialed: DialedPeer, data: memoryview, now_ms: int) -> None:
        """From the other end of a connection that was dialed here."""
        if dialed.gone or dialed.dialer is None:
            return
        was_open = dialed.open
        self._talking[dialed] = None
        try:
            dialed.dialer.receive(data)
        except LinkRefused as refused:
            self._end(dialed, refused.reason, now_ms, by_peer=was_open, lasting=refused.lasting)
            return
        if dialed.open and not was_open:
            assert dialed.dialer.theirs is not None
            self._opened(dialed, dialed.dialer.theirs, now_ms)

    def lost(self, dialed: DialedPeer, now_ms: int) -> None:
        """The socket is closed, whoever closed it."""
        if not dialed.gone:
            self._end(dialed, CLOSED_BY_PEER, now_ms, by_peer=True, lasting=False)

    def resume(self, dialed: DialedPeer) -> None:
        dialed.writing_paused = False
        self._owner.dial_resumed(dialed)

    def _opened(self, dialed: DialedPeer, hello: Hello, now_ms: int) -> None:
        dialed.opened = True
        target = self._target_of(dialed)
        if target is not None and not target.name:
            # Now its name is known. It is dialed by that from here on, if it is not already.
            target.dialed = None
            named = self.targets.setdefault(hello.name, Target(hello.name, dialed.address))
            if named.dialed is not None:
                dialed.gone = True
                self._controls.append(HangUp(dialed))
                return
            named.dialed = dialed
            dialed.name = hello.name
            target = named
        if target is not None:
            target.failures, target.trouble = 0, ""
        self._owner.dial_opened(dialed, hello, now_ms)

    # The end of a connection, or of the attempt at one.

    def hang_up(self, dialed: DialedPeer, reason: str, now_ms: int) -> None:
        """The owner wants no more of it; it may be tried again soon."""
        self._close(dialed, reason, now_ms, lasting=False)

    def _end(self, dialed: DialedPeer, reason: str, now_ms: int, *, by_peer: bool, lasting: bool) -> None:
        target = self._target_of(dialed)
        if target is not None and reason != target.trouble and not dialed.opened:
            level = logging.WARNING if lasting else logging.INFO
            log.log(level, "no link to %s at %s: %s", dialed.name or "the broker", dialed.address, reason)
        self._close(dialed, reason, now_ms, lasting=lasting)
        self._owner.dial_ended(dialed, reason, now_ms, by_peer=by_peer)

    def _close(self, dialed: DialedPeer, reason: str, now_ms: int, *, lasting: bool) -> None:
        dialed.gone = True
        if dialed.socket is not None:
            self._controls.append(HangUp(dialed))
        target = self._target_of(dialed)
        if target is not None:
            wait_ms = REFUSED_REDIAL_MS if lasting else min(REDIAL_MS_MIN << min(target.failures, 10), REDIAL_MS_MAX)
            # Not all at the same moment, again and again. An attempt that nobody answered has taken its time already.
            wait_ms += self._random.randrange(wait_ms // 2)
            target.redial_ms = max(target.dialed_ms + wait_ms, now_ms + REDIAL_MS_MIN)
            target.failures += 1
            target.trouble = reason
            target.dialed = None

    def _target_of(self, dialed: DialedPeer) -> Target | None:
        target = self.targets.get(dialed.name or dialed.address)
        return target if target is not None and target.dialed is dialed else None

    def part(self, reason: str) -> PeerWrites:
        """All connections end, each with a good-bye."""
        writes: PeerWrites = []
        for target in self.targets.values():
            dialed, target.dialed = target.dialed, None
            if dialed is not None and not dialed.gone:
                dialed.gone = True
                if dialed.dialer is not None:
                    dialed.dialer.close(reason)
                    writes.append((dialed, dialed.dialer.data_to_send()))
                    self._controls.append(HangUp(dialed))
        self.targets.clear()
        self._talking.clear()
        return writes

    # What is said and asked for.

    def take_writes(self, writes: PeerWrites) -> None:
        """Handshakes and heartbeats."""
        for dialed in self._talking:
            data = b"" if dialed.dialer is None else dialed.dialer.data_to_send()
            if data:
                writes.append((dialed, data))
        self._talking.clear()

    def take_controls(self) -> list[PeerControl]:
        controls, self._controls = self._controls, []
        return controls

"""Who is dialed, when, and what came of it: the connections that this broker makes to others.

Each *target* is an address with the name of the broker that is expected there; of those that are only given to join a
cluster by, the name shows when it answers. What a connection became is told to `DialingOwner`; what is to be written
and opened is fetched. After a failure the next attempt waits, longer each time.

Who cannot be reached directly is also tried by way of another broker, with every other attempt. A connection that came
about so stays until it ends, or until the direct way is open again: that is looked at from time to time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pandomq.cluster.dialer import Dialer
from pandomq.cluster.introduction import LinkRefused
from pandomq.cluster.limits import (
    DIAL_MS_MAX,
    DIRECT_ATTEMPTS_MIN,
    KNOCK_MS,
    REDIAL_MS_MAX,
    REDIAL_MS_MIN,
    REFUSED_REDIAL_MS,
)
from pandomq.cluster.passage import Knock
from pandomq.node.dialed import CLOSED_BY_PEER
from pandomq.node.output import Dial, HangUp, PeerControl
from pandomq.node.target import DialedPeer, PeerWrites, Target

if TYPE_CHECKING:
    from random import Random

    from pandomq.cluster.hello import Hello
    from pandomq.node.passages import Passages

log = logging.getLogger("pandomq")


class DialingOwner(Protocol):
    def dial_opened(self, dialed: DialedPeer, hello: Hello, now_ms: int) -> None:
        """The broker of this hello can be published to."""

    def dial_ended(self, dialed: DialedPeer, reason: str, now_ms: int, *, by_peer: bool) -> None:
        """That is over. Not said of those who were hung up on by their owner."""

    def dial_resumed(self, dialed: DialedPeer) -> None:
        """Its socket takes more again."""

    def may_relay(self, name: str) -> bool:
        """Whether this broker may be asked to pass something on."""


class PeerDialing:
    def __init__(
        self,
        key: bytes,
        make_hello: Callable[[str, str], Hello],
        owner: DialingOwner,
        passages: Passages,
        random: Random,
    ) -> None:
        """A hello is made for who is dialed, and says by way of whom."""
        self._key = key
        self._make_hello = make_hello
        self._owner = owner
        self._passages = passages
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

    def came(self, name: str, address: str, through: str, now_ms: int) -> None:
        """It has dialed this broker, and so it is there: whatever kept it from being dialed may be over."""
        self.aim(name, address, now_ms)
        target = self.targets[name]
        target.came_through = through
        if through:
            return
        dialed = target.dialed
        if dialed is not None and dialed.through:
            if dialed.open:
                target.knock_ms = now_ms
            else:
                self._close(dialed, "it has come by the direct way", now_ms, lasting=False)
                self.aim(name, address, now_ms)
        target.failures = min(target.failures, DIRECT_ATTEMPTS_MIN - 1)

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
                    self._dial(target, now_ms)
            else:
                self._tick(dialed, now_ms)
                self._look_at_direct_way(target, now_ms)

    def _tick(self, dialed: DialedPeer, now_ms: int) -> None:
        if dialed.dialer is None:
            return
        try:
            dialed.dialer.tick(now_ms)
        except LinkRefused as refused:
            self._end(dialed, refused.reason, now_ms, by_peer=False, lasting=refused.lasting)
        else:
            self._talking[dialed] = None

    def _dial(self, target: Target, now_ms: int) -> None:
        relay = self._relay_to(target)
        if relay is None:
            target.dialed = DialedPeer(self, target.name, target.address)
        else:
            target.dialed = DialedPeer(self, target.name, relay.address, relay.name)
            self._passages.begin(target.dialed, target.name)
        target.dialed_ms = now_ms
        self._controls.append(Dial(target.dialed))

    # By way of others.

    def _relay_to(self, target: Target) -> Target | None:
        """Who is to be asked this time to pass on what is said; None for the direct way."""
        is_hopeless = target.failures >= DIRECT_ATTEMPTS_MIN or target.came_through
        if not target.name or not is_hopeless or target.failures % 2:
            return None
        relays = {
            name: relay
            for name, relay in self.targets.items()
            if relay is not target and relay.reached and self._owner.may_relay(name)
        }
        if target.came_through in relays:
            return relays[target.came_through]
        return list(relays.values())[target.failures // 2 % len(relays)] if relays else None

    def _look_at_direct_way(self, target: Target, now_ms: int) -> None:
        knock, dialed = target.knock, target.dialed
        if knock is not None:
            self._tick(knock, now_ms)
        elif dialed is not None and dialed.through and dialed.open and now_ms >= target.knock_ms:
            self._set_knock_time(target, now_ms)
            target.knock = DialedPeer(self, target.name, target.address, knocks=True)
            self._controls.append(Dial(target.knock))

    def _set_knock_time(self, target: Target, now_ms: int) -> None:
        target.knock_ms = now_ms + KNOCK_MS + self._random.randrange(KNOCK_MS)

    def _answered(self, knock: DialedPeer, now_ms: int) -> None:
        """The direct way is open: the link is made anew."""
        target = self.targets.get(knock.name)
        # It has heard enough, and proves nothing in its turn.
        self._talking.pop(knock, None)
        self._close(knock, "", now_ms, lasting=False)
        if target is not None and target.dialed is not None and target.dialed.through:
            target.came_through = ""
            self._end(target.dialed, "the direct way to it is open again", now_ms, by_peer=False, lasting=False)

    # What the runtime reports.

    def dialed(self, dialed: DialedPeer, now_ms: int) -> None:
        """There is a connection now; `dialed.socket` is set."""
        if dialed.gone:
            self._controls.append(HangUp(dialed))
            return
        hello = self._make_hello(dialed.name, dialed.through)
        dialed.dialer = Knock(self._key, hello, now_ms) if dialed.knocks else Dialer(self._key, hello, now_ms)
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
            if isinstance(dialed.dialer, Knock):
                if dialed.dialer.receive(data):
                    self._answered(dialed, now_ms)
                return
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
            if dialed.through:
                self._set_knock_time(target, now_ms)
        self._owner.dial_opened(dialed, hello, now_ms)

    # The end of a connection, or of the attempt at one.

    def hang_up(self, dialed: DialedPeer, reason: str, now_ms: int) -> None:
        """The owner wants no more of it; it may be tried again soon."""
        self._close(dialed, reason, now_ms, lasting=False)

    def _end(self, dialed: DialedPeer, reason: str, now_ms: int, *, by_peer: bool, lasting: bool) -> None:
        target = self._target_of(dialed)
        if target is not None and reason != target.trouble and not dialed.opened:
            level = logging.DEBUG if dialed.through else logging.WARNING if lasting else logging.INFO
            log.log(level, "no link to %s at %s: %s", dialed.name or "the broker", dialed.address, reason)
        self._close(dialed, reason, now_ms, lasting=lasting)
        self._owner.dial_ended(dialed, reason, now_ms, by_peer=by_peer)

    def _close(self, dialed: DialedPeer, reason: str, now_ms: int, *, lasting: bool) -> None:
        dialed.gone = True
        if dialed.socket is not None:
            self._controls.append(HangUp(dialed))
        target = self._target_of(dialed)
        if target is None:
            target = self.targets.get(dialed.name)
            if target is not None and target.knock is dialed:
                target.knock = None
        else:
            wait_ms = REFUSED_REDIAL_MS if lasting else min(REDIAL_MS_MIN << min(target.failures, 10), REDIAL_MS_MAX)
            # Not all at the same moment, again and again. An attempt that nobody answered has taken its time already.
            wait_ms += self._random.randrange(wait_ms // 2)
            target.redial_ms = max(target.dialed_ms + wait_ms, now_ms + REDIAL_MS_MIN)
            target.failures += 1
            if not dialed.through:
                target.trouble = reason
                if not dialed.opened and now_ms - target.dialed_ms >= DIAL_MS_MAX // 2:
                    # Who is gone, or not there yet, is refused by its machine; this looks like a way that is closed.
                    target.failures = max(target.failures, DIRECT_ATTEMPTS_MIN)
            target.dialed = None

    def _target_of(self, dialed: DialedPeer) -> Target | None:
        target = self.targets.get(dialed.name or dialed.address)
        return target if target is not None and target.dialed is dialed else None

    def part(self, reason: str) -> PeerWrites:
        """All connections end, each with a good-bye."""
        writes: PeerWrites = []
        for target in self.targets.values():
            if target.knock is not None:
                self._close(target.knock, reason, 0, lasting=False)
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

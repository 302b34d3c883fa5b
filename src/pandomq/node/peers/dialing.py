"""The connections that this broker makes to others: to which brokers, when, and with which result.

Each *target* is an address with the name of the broker that is expected there; for an address that is only configured
for joining a cluster, the answer brings the name. `DialingOwner` gets reports of each connection; its output and its
dials are fetched. After a failure the next attempt waits, longer each time, but not long while no root is known.

Every other attempt at a broker that cannot be reached directly goes through another broker. Such a connection stays
until it ends, or until the direct path is open again, which is checked periodically.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pandomq.cluster.dialed_connection import CLOSED_BY_PEER
from pandomq.cluster.dialer import Dialer
from pandomq.cluster.introduction import LinkRefused
from pandomq.cluster.limits import (
    DIAL_MS_MAX,
    DIRECT_ATTEMPTS_MIN,
    KNOCK_MS,
    REDIAL_MS_MAX,
    REDIAL_MS_MIN,
    REFUSED_REDIAL_MS,
    ROOTLESS_REDIAL_MS,
)
from pandomq.cluster.passage import Knock
from pandomq.node.output import Close, Control, Dial
from pandomq.node.peers.dial_target import DialedPeer, Target

if TYPE_CHECKING:
    from random import Random

    from pandomq.cluster.hello import Hello
    from pandomq.node.output import Writes
    from pandomq.node.peers.passages import Passages

log = logging.getLogger("pandomq")


class DialingOwner(Protocol):
    def dial_opened(self, dialed: DialedPeer, hello: Hello, now_ms: int) -> None:
        """Called when this broker can publish to the broker of this hello."""

    def dial_ended(self, dialed: DialedPeer, reason: str, now_ms: int, *, by_peer: bool) -> None:
        """The connection has ended. Not reported for those that their owner closed."""

    def dial_resumed(self, dialed: DialedPeer) -> None:
        """The socket accepts more again."""

    def may_relay(self, name: str) -> bool:
        """Whether this broker may be requested to relay."""

    def told(self, hello: Hello, now_ms: int) -> None:
        """A broker has sent this hello again, beside the existing link."""


class PeerDialing:
    def __init__(
        self,
        key: bytes,
        make_hello: Callable[[str, str], Hello],
        owner: DialingOwner,
        passages: Passages,
        random: Random,
    ) -> None:
        """The hello is made for the dialed broker, and names the relay."""
        self._key = key
        self._make_hello = make_hello
        self._owner = owner
        self._passages = passages
        self._random = random
        self.targets: dict[str, Target] = {}
        """The targets by name, or by address if only that is known."""
        self._rootless = False
        """No root was known at the last tick."""
        self._controls: list[Control] = []
        self._talking: dict[DialedPeer, None] = {}

    # Targets.

    def aim(self, name: str, address: str, now_ms: int) -> None:
        """The broker is to be dialed there; soon, as something about it is new."""
        target = self.targets.setdefault(name or address, Target(name, address))
        target.address = address
        target.redial_ms = min(target.redial_ms, now_ms + REDIAL_MS_MIN)

    def came(self, name: str, address: str, through: str, now_ms: int) -> None:
        """The broker has dialed this one, and so it is up: the obstacle to dialing it may be over."""
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
                self._close(dialed, "the peer connected directly", now_ms, lasting=False)
                self.aim(name, address, now_ms)
        target.failures = min(target.failures, DIRECT_ATTEMPTS_MIN - 1)

    def forget(self, name: str) -> None:
        """No longer dials the broker. An existing connection stays."""
        self.targets.pop(name, None)

    # Time.

    def tick(self, now_ms: int, *, lonely: bool, rootless: bool) -> None:
        """`lonely`: there is no link, or none to a broker that could name the primaries, so the addresses for joining
        are dialed as well. `rootless`: no root is known, so all members are dialed often."""
        if rootless and not self._rootless:
            for target in self.targets.values():
                if target.name:
                    target.redial_ms = min(target.redial_ms, now_ms + REDIAL_MS_MIN)
        self._rootless = rootless
        # A broker that is configured for joining may be known by name as well. It is dialed once: of two connections it
        # would keep the newer one, and this end the older one.
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

    # Relayed connections.

    def _relay_to(self, target: Target) -> Target | None:
        """The relay for this attempt; None for the direct path."""
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
            self._knock(target)

    def _knock(self, target: Target) -> None:
        target.knock = DialedPeer(self, target.name, target.address, knocks=True)
        self._controls.append(Dial(target.knock))

    def ask_again(self, name: str) -> None:
        """A broker to which there is a connection is to send its hello once more."""
        target = self.targets.get(name)
        if target is not None and target.reached and target.knock is None:
            self._knock(target)

    def _set_knock_time(self, target: Target, now_ms: int) -> None:
        target.knock_ms = now_ms + KNOCK_MS + self._random.randrange(KNOCK_MS)

    def _answered(self, knock: DialedPeer, now_ms: int) -> None:
        """The direct path is open: a link that goes through another broker is made anew."""
        assert knock.dialer is not None and knock.dialer.theirs is not None
        self._owner.told(knock.dialer.theirs, now_ms)
        target = self.targets.get(knock.name)
        # It has the answer, and proves nothing in its turn.
        self._talking.pop(knock, None)
        self._close(knock, "", now_ms, lasting=False)
        if target is not None and target.dialed is not None and target.dialed.through:
            target.came_through = ""
            self._end(target.dialed, "the direct connection is restored", now_ms, by_peer=False, lasting=False)

    # Events of the connections.

    def dialed(self, dialed: DialedPeer, now_ms: int) -> None:
        hello = self._make_hello(dialed.name, dialed.through)
        dialed.dialer = Knock(self._key, hello, now_ms) if dialed.knocks else Dialer(self._key, hello, now_ms)
        self._talking[dialed] = None

    def not_dialed(self, dialed: DialedPeer, reason: str, now_ms: int) -> None:
        self._end(dialed, reason, now_ms, by_peer=False, lasting=False)

    def receive(self, dialed: DialedPeer, data: memoryview, now_ms: int) -> None:
        assert dialed.dialer is not None
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

    def disconnected(self, dialed: DialedPeer, now_ms: int) -> None:
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
                self._controls.append(Close(dialed))
                return
            named.dialed = dialed
            dialed.name = hello.name
            target = named
        if target is not None:
            target.failures, target.trouble = 0, ""
            if dialed.through:
                self._set_knock_time(target, now_ms)
        self._owner.dial_opened(dialed, hello, now_ms)

    # The end of a connection, or of an attempt.

    def hang_up(self, dialed: DialedPeer, reason: str, now_ms: int) -> None:
        """The owner closes the connection; it may be tried again soon."""
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
            self._controls.append(Close(dialed))
        target = self._target_of(dialed)
        if target is None:
            target = self.targets.get(dialed.name)
            if target is not None and target.knock is dialed:
                target.knock = None
        else:
            longest_ms = ROOTLESS_REDIAL_MS if self._rootless and target.name else REDIAL_MS_MAX
            wait_ms = REFUSED_REDIAL_MS if lasting else min(REDIAL_MS_MIN << min(target.failures, 10), longest_ms)
            # The delay spreads the attempts. An attempt without an answer has taken its time already.
            wait_ms += self._random.randrange(wait_ms // 2)
            target.redial_ms = max(target.dialed_ms + wait_ms, now_ms + REDIAL_MS_MIN)
            target.failures += 1
            if not dialed.through:
                target.trouble = reason
                if not dialed.opened and now_ms - target.dialed_ms >= DIAL_MS_MAX // 2:
                    # The machine of a broker that is down refuses connections; this looks like a blocked path.
                    target.failures = max(target.failures, DIRECT_ATTEMPTS_MIN)
            target.dialed = None

    def _target_of(self, dialed: DialedPeer) -> Target | None:
        target = self.targets.get(dialed.name or dialed.address)
        return target if target is not None and target.dialed is dialed else None

    def close_all(self, reason: str) -> Writes:
        """All connections end, each with a closing handshake."""
        writes: Writes = []
        for target in self.targets.values():
            if target.knock is not None:
                self._close(target.knock, reason, 0, lasting=False)
            dialed, target.dialed = target.dialed, None
            if dialed is not None and not dialed.gone:
                dialed.gone = True
                if dialed.dialer is not None:
                    dialed.dialer.close(reason)
                    writes.append((dialed, dialed.dialer.data_to_send()))
                    self._controls.append(Close(dialed))
        self.targets.clear()
        self._talking.clear()
        return writes

    # Output and dials.

    def take_writes(self, writes: Writes) -> None:
        """Adds the output of handshakes and heartbeats."""
        for dialed in self._talking:
            data = b"" if dialed.dialer is None else dialed.dialer.data_to_send()
            if data:
                writes.append((dialed, data))
        self._talking.clear()

    def take_controls(self) -> list[Control]:
        controls, self._controls = self._controls, []
        return controls

"""Passes on what brokers say to each other that do not reach each other, but both reach this one.

Who asks for it has proven that it has the cluster's key, and names the broker that it wants to reach; that one is
dialed for it, if there is a direct link to it: so nothing is passed on twice, and nothing goes in circles. From then on
octets go from one to the other as they come, and what they mean is between the two. Whichever end hangs up, the other
is hung up on. Who does not take what comes has the other end not read from: so little of it is ever here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq import __version__
from pandomq.cluster.hello import Objection, encode
from pandomq.cluster.limits import RELAY_SILENT_MS_MAX, RELAYS_MAX
from pandomq.cluster.vouching import TUNNEL_AGREED
from pandomq.limits import MESSAGE_BYTES_MAX
from pandomq.node.dialed import CLOSED_BY_PEER, Dialed
from pandomq.node.output import Close, Dial, HangUp, PauseReading, PeerControl, ResumeReading
from pandomq.wire.offer import Offer
from pandomq.wire.pulse import NEVER_MS

if TYPE_CHECKING:
    from pandomq.cluster.hello import Hello
    from pandomq.node.link import Link
    from pandomq.node.links import Links, Writes
    from pandomq.node.target import PeerWrites

log = logging.getLogger("pandomq")


class Relay(Dialed):
    """One connection: accepted from who asked for it, and dialed to the one beyond."""

    __slots__ = ("_relays", "beyond", "far_paused", "heard_ms", "link", "near_paused", "origin")

    def __init__(self, relays: Relays, link: Link, origin: str, beyond: str, address: str, now_ms: int) -> None:
        super().__init__(relays, address)
        self._relays = relays
        self.link = link
        self.origin = origin
        self.beyond = beyond
        self.heard_ms = now_ms
        """From either end."""
        self.near_paused = self.far_paused = False
        """Who asked for it is not read from at present, and who is beyond."""

    def take(self, data: memoryview, now_ms: int) -> None:
        """From who asked for it."""
        self._relays.take(self, data, now_ms)


class Relays:
    __slots__ = ("_controls", "_heard", "_links", "_offer", "_outward", "_place_of", "_relays", "_returning")

    def __init__(self, links: Links, place_of: Callable[[str], str]) -> None:
        """`place_of` says where a broker is to which there is a direct link; of others it says nothing."""
        self._links = links
        self._place_of = place_of
        self._offer = Offer(version=__version__, proposal=TUNNEL_AGREED, message_bytes_max=MESSAGE_BYTES_MAX)
        self._relays: dict[Relay, None] = {}
        self._outward: PeerWrites = []
        """For those beyond."""
        self._returning: Writes = []
        """From those."""
        self._heard: dict[Relay, None] = {}
        """Of which an end may not be read from, or may again: something has come, or it was so before."""
        self._controls: list[PeerControl] = []

    def __len__(self) -> int:
        return len(self._relays)

    # Coming and going.

    def objection(self, hello: Hello) -> str | None:
        """Why who asks for a passage gets none; None if it does."""
        if len(self._relays) >= RELAYS_MAX:
            return f"it passes on {RELAYS_MAX} connections, which is the limit"
        return None if self._place_of(hello.beyond) else f"it has no direct link to {hello.beyond}, either"

    def begin(self, link: Link, hello: Hello, now_ms: int) -> None:
        """Its proof is good, and there is no objection. It hears more when it is known whether there is a way."""
        relay = Relay(self, link, hello.name, hello.beyond, self._place_of(hello.beyond), now_ms)
        link.relay = relay
        link.connection.due_ms = NEVER_MS
        self._relays[relay] = None
        self._controls.append(Dial(relay))

    def tick(self, now_ms: int) -> None:
        """To be called some times a second."""
        silent = [relay for relay in self._relays if now_ms - relay.heard_ms > RELAY_SILENT_MS_MAX]
        for relay in silent:
            self._end(relay, "nothing was said on it for long")

    def _end(self, relay: Relay, reason: str) -> None:
        """What has come from either end still goes to the other."""
        log.debug("no longer passing on from %s to %s: %s", relay.origin, relay.beyond, reason)
        relay.gone = True
        self._relays.pop(relay, None)
        self._heard.pop(relay, None)
        if relay.socket is not None:
            self._controls.append(HangUp(relay))
        link = relay.link
        if not link.gone and not link.ended:
            link.ended = True
            self._links.controls.append(Close(link))

    def part(self) -> list[PeerControl]:
        """This life of the broker ends."""
        for relay in list(self._relays):
            self._end(relay, "this broker ends")
            relay.link.gone = True
        controls, self._controls = self._controls, []
        return [control for control in controls if isinstance(control, HangUp)]

    # The end beyond.

    def dialed(self, relay: Relay, now_ms: int) -> None:
        log.debug("passing on from %s to %s", relay.origin, relay.beyond)
        relay.link.connection.accept_login(self._offer)
        self._links.talk(relay.link)

    def not_dialed(self, relay: Relay, reason: str, now_ms: int) -> None:
        relay.gone = True
        self._relays.pop(relay, None)
        connection = relay.link.connection
        connection.challenge(encode(Objection(f"{relay.beyond} cannot be reached: {reason}", lasting=False)))
        connection.hang_up()
        self._links.talk(relay.link)

    def receive(self, relay: Relay, data: memoryview, now_ms: int) -> None:
        relay.heard_ms = now_ms
        self._returning.append((relay.link, bytes(data)))
        self._heard[relay] = None

    def resume(self, relay: Relay) -> None:
        relay.writing_paused = False
        self._heard[relay] = None

    def lost(self, relay: Relay, now_ms: int) -> None:
        # Nothing can be written there any more.
        relay.socket = None
        self._end(relay, f"{relay.beyond}: {CLOSED_BY_PEER}")

    # The end that asked for it.

    def take(self, relay: Relay, data: memoryview, now_ms: int) -> None:
        if relay.socket is None:
            self._end(relay, f"{relay.origin} spoke before there was a way")
            return
        relay.heard_ms = now_ms
        self._outward.append((relay, bytes(data)))
        self._heard[relay] = None

    def link_lost(self, relay: Relay) -> None:
        if not relay.gone:
            self._end(relay, f"{relay.origin}: {CLOSED_BY_PEER}")

    # What is to be written, and who is not to be read from.

    def pass_on(self, writes: Writes, peer_writes: PeerWrites, controls: list[PeerControl]) -> None:
        """Before the controls of links are taken."""
        writes += [(link, data) for link, data in self._returning if not link.gone]
        peer_writes += [(relay, data) for relay, data in self._outward if relay.socket is not None]
        self._returning, self._outward = [], []
        heard, self._heard = self._heard, {}
        for relay in heard:
            self._regulate(relay)
        controls += self._controls
        self._controls.clear()

    def _regulate(self, relay: Relay) -> None:
        link = relay.link
        if relay.far_paused is not link.writing_paused:
            relay.far_paused = link.writing_paused
            self._controls.append(PauseReading(relay) if relay.far_paused else ResumeReading(relay))
        if relay.near_paused is not relay.writing_paused:
            relay.near_paused = relay.writing_paused
            self._links.controls.append(PauseReading(link) if relay.near_paused else ResumeReading(link))
        if relay.far_paused or relay.near_paused:
            # Asked again with each step, until it is over.
            self._heard[relay] = None

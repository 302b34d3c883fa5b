"""Relays connections between two brokers that cannot reach each other, but can both reach this one.

A broker that requests a passage has proven that it has the cluster's key, and names the broker that it wants to reach.
The relay dials that one, if there is a direct link to it: so nothing is relayed twice, or in circles. From then on
bytes go from one to the other as they come, and the relay does not interpret them. When one end closes, the relay
closes the other. While one end does not read, the relay stops reading from the other: so it holds little data.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq import __version__
from pandomq.cluster.dialed_connection import CLOSED_BY_PEER, Dialed
from pandomq.cluster.hello import Objection, encode
from pandomq.cluster.limits import RELAY_SILENT_MS_MAX, RELAYS_MAX
from pandomq.cluster.vouching import TUNNEL_AGREED
from pandomq.limits import MESSAGE_BYTES_MAX
from pandomq.node.output import Close, Control, Dial, PauseReading, ResumeReading
from pandomq.wire.offer import Offer
from pandomq.wire.pulse import NEVER_MS

if TYPE_CHECKING:
    from pandomq.cluster.hello import Hello
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.output import Writes

log = logging.getLogger("pandomq")


class Relay(Dialed):
    """One connection: accepted from the broker that requested it, and dialed to the broker beyond.

    It owns the accepted end, and `Relays` the dialed one."""

    __slots__ = ("_relays", "beyond", "far_paused", "heard_ms", "link", "near_paused", "origin")

    def __init__(self, relays: Relays, link: ClientLink, origin: str, beyond: str, address: str, now_ms: int) -> None:
        super().__init__(address)
        self.owner = relays
        self._relays = relays
        self.link = link
        self.origin = origin
        self.beyond = beyond
        self.heard_ms = now_ms
        """The last time that bytes came from either end."""
        self.near_paused = self.far_paused = False
        """Reading is paused from the requesting broker, or from the broker beyond."""

    def receive(self, link: ClientLink, data: memoryview, now_ms: int) -> None:
        if not link.ended:
            link.count_received(len(data))
            self._relays.take(self, data, now_ms)

    def resume(self, link: ClientLink) -> None:
        link.writing_paused = False

    def disconnected(self, link: ClientLink, now_ms: int) -> None:
        self._relays.link_lost(self, now_ms)


class Relays:
    __slots__ = ("_controls", "_heard", "_links", "_offer", "_outward", "_place_of", "_relays", "_returning")

    def __init__(self, links: ClientLinks, place_of: Callable[[str], str]) -> None:
        """`place_of` returns the address of a broker with a direct link, and an empty text for others."""
        self._links = links
        self._place_of = place_of
        self._offer = Offer(version=__version__, proposal=TUNNEL_AGREED, message_bytes_max=MESSAGE_BYTES_MAX)
        self._relays: dict[Relay, None] = {}
        self._outward: Writes = []
        """Output for the brokers beyond."""
        self._returning: Writes = []
        """Output from those."""
        self._heard: dict[Relay, None] = {}
        """Relays whose reading may have to be paused or resumed: bytes have come, or an end was paused before."""
        self._controls: list[Control] = []

    def __len__(self) -> int:
        return len(self._relays)

    # Beginning and end.

    def objection(self, hello: Hello) -> str | None:
        """Why a request for a passage is refused; None if it is accepted."""
        if len(self._relays) >= RELAYS_MAX:
            return f"this broker already relays {RELAYS_MAX} connections, which is the limit"
        return None if self._place_of(hello.beyond) else f"this broker has no direct link to {hello.beyond} either"

    def begin(self, link: ClientLink, hello: Hello, now_ms: int) -> None:
        """The proof is valid, and there is no objection. The requesting broker gets the answer when the dialing has
        ended."""
        relay = Relay(self, link, hello.name, hello.beyond, self._place_of(hello.beyond), now_ms)
        link.owner = relay
        link.connection.due_ms = NEVER_MS
        self._relays[relay] = None
        self._controls.append(Dial(relay))

    def tick(self, now_ms: int) -> None:
        """To be called several times per second."""
        silent = [relay for relay in self._relays if now_ms - relay.heard_ms > RELAY_SILENT_MS_MAX]
        for relay in silent:
            self._end(relay, "nothing was received for too long")

    def _end(self, relay: Relay, reason: str) -> None:
        """Bytes that have come from either end still go to the other."""
        log.debug("relay from %s to %s ended: %s", relay.origin, relay.beyond, reason)
        relay.gone = True
        self._relays.pop(relay, None)
        self._heard.pop(relay, None)
        if relay.socket is not None:
            self._controls.append(Close(relay))
        link = relay.link
        if not link.gone and not link.ended:
            link.ended = True
            self._links.controls.append(Close(link))

    def close_all(self) -> list[Control]:
        """This node ends."""
        for relay in list(self._relays):
            self._end(relay, "this broker stops")
            relay.link.gone = True
        controls, self._controls = self._controls, []
        return [control for control in controls if isinstance(control, Close)]

    # The end beyond.

    def dialed(self, relay: Relay, now_ms: int) -> None:
        log.debug("relaying from %s to %s", relay.origin, relay.beyond)
        relay.link.connection.accept_login(self._offer)
        self._links.talk(relay.link)

    def not_dialed(self, relay: Relay, reason: str, now_ms: int) -> None:
        if relay.socket is not None:
            # The dial was cancelled just when it was answered, and the requesting broker has that answer.
            self._end(relay, f"{relay.beyond}: {reason}")
            return
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

    def disconnected(self, relay: Relay, now_ms: int) -> None:
        # Nothing can be written there any more.
        relay.socket = None
        self._end(relay, f"{relay.beyond}: {CLOSED_BY_PEER}")

    # The requesting end.

    def take(self, relay: Relay, data: memoryview, now_ms: int) -> None:
        if relay.socket is None:
            self._end(relay, f"{relay.origin} sent data before {relay.beyond} was connected")
            return
        relay.heard_ms = now_ms
        self._outward.append((relay, bytes(data)))
        self._heard[relay] = None

    def link_lost(self, relay: Relay, now_ms: int) -> None:
        if not relay.gone:
            self._end(relay, f"{relay.origin}: {CLOSED_BY_PEER}")
        self._links.forget(relay.link, now_ms)

    # Output, and pauses of reading.

    def pass_on(self, writes: Writes, peer_writes: Writes, controls: list[Control]) -> None:
        """To be called before the controls of links are taken."""
        if self._returning:
            writes += [(link, data) for link, data in self._returning if not link.gone]
            self._returning = []
        if self._outward:
            peer_writes += [(relay, data) for relay, data in self._outward if relay.socket is not None]
            self._outward = []
        if self._heard:
            heard, self._heard = self._heard, {}
            for relay in heard:
                self._regulate(relay)
        if self._controls:
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
            # Checked again with each step, until it is over.
            self._heard[relay] = None

"""Bounds the slow input of one user's clients that is handled in one pass of the loop.

Methods other than publishes and settlements are decoded one by one, and a field table of a full frame takes some 25 ms.
Hundreds of clients that send one at once must not delay the broker's other clients, its links to other brokers and its
timers until the last one is decoded. If the clients of a user have sent too much, none of them is read from until the
next pass. Then those that have had their turn wait, until a pass in which the others send little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.limits import DECODED_PER_PASS_BYTES_MAX

if TYPE_CHECKING:
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks


class Turns:
    __slots__ = ("_decoded", "_links", "_served", "_taking", "amid_pass", "counts", "urgent")

    def __init__(self, links: ClientLinks) -> None:
        self._links = links
        self._decoded: dict[str, int] = {}
        """The bytes of such methods in this pass, by user."""
        self._served: dict[str, set[ClientLink]] = {}
        """The clients over which they came; if clients of the user take turns, since that began."""
        self._taking: dict[str, None] = {}
        """The users whose clients take turns."""
        self.counts = False
        """Whether such methods have come since clients last had all the turns that they need: `go_on` is needed."""
        self.urgent = False
        """Some clients must not be read from any more in this pass: a step has to tell the runtime at once."""
        self.amid_pass = False
        """The next step does not begin another pass of the loop: there may be sockets that have not been read from
        since the last one that did."""

    @property
    def taken(self) -> bool:
        """The clients of some user take turns: another pass has to begin."""
        return bool(self._taking)

    def count(self, link: ClientLink, size_bytes: int) -> None:
        """So many bytes of such methods came over this link."""
        if link.client is None or not link.client.user:
            # Other brokers, and what they send for no user, are not counted.
            return
        self.counts = True
        user = link.client.user
        before = self._decoded.get(user, 0)
        self._decoded[user] = before + size_bytes
        self._served.setdefault(user, set()).add(link)
        if before <= DECODED_PER_PASS_BYTES_MAX < before + size_bytes:
            self.urgent = True
            self._taking[user] = None
            for one in self._links.of_user(user):
                self._links.await_turn(one, waits=True)

    def go_on(self) -> None:
        """To be called in each step, if it `counts`."""
        self.urgent = False
        if self.amid_pass or not self._served:
            return
        for user, served in list(self._served.items()):
            has_more = self._decoded.get(user, 0) > DECODED_PER_PASS_BYTES_MAX
            if user in self._taking:
                for link in self._links.of_user(user):
                    self._links.await_turn(link, waits=has_more and link in served)
            if not has_more:
                self._taking.pop(user, None)
                del self._served[user]
        self._decoded.clear()
        self.counts = bool(self._served)

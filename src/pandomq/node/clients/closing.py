"""Connections that end after a batch: because of a fault of either side, or because the client closed them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pandomq.methods import ConnectionClose
from pandomq.wire.states import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.broker.client import Client
    from pandomq.errors import ConnectionFault
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.output import Writes

log = logging.getLogger("pandomq")


def for_client(link: ClientLink, fault: ConnectionFault) -> ConnectionFault:
    """On a tunnel, the fault is marked as the client's: without the mark, a broker that closes a tunnel means that it
    is not the root, or not for long, and the client is to stay."""
    return fault if link.vouched is None else fault.at(ConnectionClose.class_id, ConnectionClose.method_id)


class End(NamedTuple):
    link: ClientLink
    fault: ConnectionFault | None
    patient: bool
    """A client that closes its connection must still get the answers to its earlier requests. A client at fault need
    not, unless the requests were passed on, and the answers are on their way."""


class ClosingConnections:
    __slots__ = ("_ends", "_links", "_may_release")

    def __init__(self, links: ClientLinks, may_release: Callable[[Client], bool]) -> None:
        """A client that closes its connection is released once it `may_release`: it has the answers to its earlier
        requests."""
        self._links = links
        self._may_release = may_release
        self._ends: list[End] = []

    def add(self, link: ClientLink, fault: ConnectionFault | None, *, patient: bool = False) -> None:
        """Without a fault the client closes the connection. A `patient` ending still delivers the answers to earlier
        requests."""
        self._ends.append(End(link, fault, patient or fault is None))

    def add_first(self, link: ClientLink, fault: ConnectionFault) -> None:
        """Adds the ending before the inputs that the same read brought after it."""
        self._ends.insert(0, End(link, fault, patient=False))

    def __bool__(self) -> bool:
        return bool(self._ends)

    @property
    def ready(self) -> bool:
        return bool(self._ends) and any(not self._waits_for_answers(end) for end in self._ends)

    def _waits_for_answers(self, end: End) -> bool:
        return end.patient and end.link.client is not None and not self._may_release(end.link.client)

    def carry_out(self, writes: Writes, now_ms: int) -> None:
        ends, self._ends = self._ends, []
        for end in ends:
            link, fault, _ = end
            if link.gone:
                continue
            if self._waits_for_answers(end):
                self._ends.append(end)
                continue
            if link.client is not None:
                # The client's requests before its close, or before its fault, are answered.
                self._links.take(link, link.client, writes)
                self._links.let_go(link, now_ms)
            if fault is not None:
                log.warning("connection %s closed: %s", link.peer_name, fault)
                link.connection.close(fault, now_ms)
                self._links.watch(link)
            elif link.connection.state is ConnectionState.ENDING:
                # Otherwise an earlier input was at fault, and the close was answered with that.
                link.connection.confirm_close()
            self._links.talk(link)

"""Connections that end after a batch: with a fault of theirs or ours, or because the client said so."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from pandomq.methods import ConnectionClose
from pandomq.wire.states import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.broker.client import Client
    from pandomq.errors import ConnectionFault
    from pandomq.node.link import Link
    from pandomq.node.links import Links, Writes

log = logging.getLogger("pandomq")


def for_client(link: Link, fault: ConnectionFault) -> ConnectionFault:
    """Of a tunnel, it concerns the client at its other end, not the way there: that a broker ends a connection says
    elsewhere that it is not the root, or not for long, and the client is to stay."""
    return fault if link.vouched is None else fault.at(ConnectionClose.class_id, ConnectionClose.method_id)


class End(NamedTuple):
    link: Link
    fault: ConnectionFault | None
    patient: bool
    """Who says good-bye has yet to hear what it asked for before. Who goes wrong does not, unless it was asked
    elsewhere, and the answers are on their way."""


class Endings:
    __slots__ = ("_ends", "_links", "_may_part")

    def __init__(self, links: Links, may_part: Callable[[Client], bool]) -> None:
        """Who says good-bye goes once it `may_part`: it has heard what it asked for before."""
        self._links = links
        self._may_part = may_part
        self._ends: list[End] = []

    def add(self, link: Link, fault: ConnectionFault | None, *, patient: bool = False) -> None:
        """Without a fault it is the client who says good-bye. Whoever is `patient` still hears what it asked before."""
        self._ends.append(End(link, fault, patient or fault is None))

    def add_first(self, link: Link, fault: ConnectionFault) -> None:
        """Before what the same read brought after it."""
        self._ends.insert(0, End(link, fault, patient=False))

    def __bool__(self) -> bool:
        return bool(self._ends)

    @property
    def ready(self) -> bool:
        return bool(self._ends) and any(not self._waits_for_answers(end) for end in self._ends)

    def _waits_for_answers(self, end: End) -> bool:
        return end.patient and end.link.client is not None and not self._may_part(end.link.client)

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
                # What the client asked for before it said good-bye, or went wrong, is answered.
                self._links.take(link, link.client, writes)
                self._links.let_go(link, now_ms)
            if fault is not None:
                log.warning("connection %s closed: %s", link.peer_name, fault)
                link.connection.close(fault, now_ms)
                self._links.watch(link)
            elif link.connection.state is State.ENDING:
                # Else something it said before its good-bye was at fault, and its close was answered with that.
                link.connection.confirm_close()
            self._links.talk(link)

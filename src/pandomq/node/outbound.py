"""Collects a step's requests to the runtime, from all parts of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.node.output import Control, Output

if TYPE_CHECKING:
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.data.sessions import DataSessions
    from pandomq.node.front.front_service import FrontService
    from pandomq.node.log.disk_log import DiskLog
    from pandomq.node.output import Writes
    from pandomq.node.peers.links import PeerLinks


class Outbound:
    __slots__ = ("_data", "_disk", "_front_service", "_links", "_peer_links")

    def __init__(
        self,
        links: ClientLinks,
        disk: DiskLog | None,
        peer_links: PeerLinks | None,
        front_service: FrontService | None,
        data: DataSessions,
    ) -> None:
        self._data = data
        self._links = links
        self._disk = disk
        self._peer_links = peer_links
        self._front_service = front_service

    def collect(self, writes: Writes, *, more: bool) -> Output:
        """Bytes for other brokers come before those for clients."""
        data = self._data.take_effects()
        to_peers: Writes = []
        asked: list[Control] = []
        if self._peer_links is not None:
            to_peers, asked = self._peer_links.take_writes(), self._peer_links.dialing.take_controls()
            self._peer_links.relays.pass_on(writes, to_peers, asked)
        if self._front_service is not None:
            self._front_service.take_writes(writes, to_peers, asked)
        requests = () if self._disk is None else self._disk.journal.take_requests()
        return Output(to_peers + writes, self._take_controls() + asked, more, requests, data=data)

    def collect_last(self, writes: Writes, reason: str) -> Output:
        """Collects the last output of this node, whose links have been notified."""
        to_peers: Writes = []
        asked: list[Control] = []
        if self._peer_links is not None:
            to_peers, asked = self._peer_links.close_all(reason)
        if self._front_service is not None:
            self._front_service.close_all(reason, to_peers, asked)
        data = self._data.take_effects()
        return Output(to_peers + writes, self._take_controls() + asked, False, (), reason, data)

    def _take_controls(self) -> list[Control]:
        controls, self._links.controls = self._links.controls, []
        return controls

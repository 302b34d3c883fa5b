"""Collects what a step asks of the runtime, from all who have something to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.node.output import Control, Output, PeerControl

if TYPE_CHECKING:
    from pandomq.node.data.desk import DataDesk
    from pandomq.node.disk_log import DiskLog
    from pandomq.node.front_desk import FrontDesk
    from pandomq.node.links import Links, Writes
    from pandomq.node.peer_links import PeerLinks
    from pandomq.node.target import PeerWrites


class Outbound:
    __slots__ = ("_data", "_disk", "_front_desk", "_links", "_peer_links")

    def __init__(
        self,
        links: Links,
        disk: DiskLog | None,
        peer_links: PeerLinks | None,
        front_desk: FrontDesk | None,
        data: DataDesk,
    ) -> None:
        self._data = data
        self._links = links
        self._disk = disk
        self._peer_links = peer_links
        self._front_desk = front_desk

    def collect(self, writes: Writes, *, more: bool) -> Output:
        data = self._data.take_effects()
        if self._front_desk is not None:
            self._front_desk.take_writes(writes)
        disk = self._disk
        if disk is None:
            return Output(writes, self._take_controls(), more, data=data)
        if self._peer_links is None:
            sends = disk.replication.take_sends()
            return Output(writes, self._take_controls(), more, disk.take_requests(), sends, data=data)
        said, asked = self._peer_links.take_writes(), self._peer_links.dialing.take_controls()
        self._peer_links.relays.pass_on(writes, said, asked)
        controls = self._take_controls()
        if self._front_desk is not None:
            self._front_desk.take_for_root(said, asked)
        requests = disk.take_requests()
        return Output(writes, controls, more, requests, peer_writes=said, peer_controls=asked, data=data)

    def collect_last(self, writes: Writes, reason: str) -> Output:
        """This life of the broker ends; its links have been told."""
        assert self._disk is not None
        said: PeerWrites = []
        asked: list[PeerControl] = []
        if self._peer_links is not None:
            said, asked = self._peer_links.part(reason)
        if self._front_desk is not None:
            self._front_desk.part(reason, said, asked)
        sends = self._disk.replication.take_sends()
        data = self._data.take_effects()
        return Output(writes, self._take_controls(), False, (), sends, reason, said, asked, data)

    def _take_controls(self) -> list[Control]:
        controls, self._links.controls = self._links.controls, []
        return controls

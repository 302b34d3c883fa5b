"""Sums over all queues and connections, by vhost; like a table built in slices and shared while they are recent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.admin.listings.shared_build import CostMeter, SharedBuild

if TYPE_CHECKING:
    from pandomq.node.views.views import Views

SLICE_SUMS: Final = 1000
"""A sum costs less than a row."""


class Sums(msgspec.Struct):
    queues: int = 0
    exchanges: int = 0
    ready: int = 0
    ready_bytes: int = 0
    unacked: int = 0
    consumers: int = 0
    connections: int = 0
    channels: int = 0

    def add(self, other: Sums) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Totals(msgspec.Struct):
    by_vhost: dict[str, Sums]
    by_user: dict[str, Sums]
    """Connections and channels only."""

    def all(self) -> Sums:
        return self.seen_by(None, None)

    def seen_by(self, vhosts: frozenset[str] | None, user: str | None) -> Sums:
        """For these vhosts, and only this user's connections; None means all."""
        whole = Sums()
        for name, sums in self.by_vhost.items():
            if vhosts is None or name in vhosts:
                whole.add(sums)
        if user is not None:
            own = self.by_user.get(user, Sums())
            whole.connections, whole.channels = own.connections, own.channels
        return whole


NO_TOTALS: Final = Totals({}, {})


class TotalsKeeper(SharedBuild):
    def __init__(self, views: Views) -> None:
        super().__init__()
        self._views = views
        self._totals = NO_TOTALS

    async def now(self) -> Totals:
        await self.refresh()
        return self._totals

    async def build(self, meter: CostMeter) -> None:
        by_vhost = {name: Sums() for name in self._views.vhost_names()}
        for count, size in enumerate(self._views.queue_sizes(), 1):
            sums = by_vhost.setdefault(size.vhost, Sums())
            sums.queues += 1
            sums.ready += size.ready
            sums.ready_bytes += size.ready_bytes
            sums.unacked += size.unacked
            sums.consumers += size.consumers
            if count % SLICE_SUMS == 0:
                await meter.pause()
        self._add_others(by_vhost)
        by_user: dict[str, Sums] = {}
        for vhost, user, channels in self._views.client_sizes():
            for sums in (by_vhost.setdefault(vhost, Sums()), by_user.setdefault(user, Sums())):
                sums.connections += 1
                sums.channels += channels
        self._totals = Totals(by_vhost, by_user)

    def _add_others(self, by_vhost: Mapping[str, Sums]) -> None:
        for vhost, count in self._views.exchange_counts().items():
            if vhost in by_vhost:
                by_vhost[vhost].exchanges = count

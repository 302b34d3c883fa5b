"""Whether this broker serves clients, and what those hear whom it does not serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.cluster.limits import TOLD_BYTES_MAX
from pandomq.errors import ConnectionFault, connection_forced, not_allowed
from pandomq.ids import NodeName
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.cluster_view import ROOT, is_in_step, own_role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pandomq.broker.broker import Broker
    from pandomq.node.cluster_notices import ClusterNotices
    from pandomq.node.disk_log import DiskLog


CONNECT_TO_ROOT: Final = "connect_to_root"
"""A client property."""


class Office:
    __slots__ = ("_disk", "_foundation", "_replication", "_settings", "opened", "proxy")

    def __init__(self, disk: DiskLog | None, settings: ClusterSettings) -> None:
        """Without a log on disk there are no other brokers."""
        self._disk = disk
        self._settings = settings
        self._replication = None if disk is None else disk.replication
        self._foundation = None if disk is None else disk.foundation
        self.opened = False
        """This broker is the root, and has all that it needs."""
        self.proxy: Callable[[], Broker | None] = lambda: None
        """Who serves clients in the root's name, if somebody does."""

    def open(self) -> None:
        self.opened = True

    def refusal(self) -> ConnectionFault | None:
        """None if clients may come in. Its code is one after which clients with several addresses go on to the next;
        what is not allowed would be an error for good to some, such as kombu."""
        if self.opened and (self._replication is None or self._replication.serving):
            return None
        return connection_forced(self._explanation)

    def host(self, broker: Broker, *, tunnel: bool) -> Broker:
        """Who serves a client that comes now; this broker itself if it can. Raises ConnectionFault."""
        refusal = self.refusal()
        if refusal is None:
            return broker
        proxy = None if tunnel else self.proxy()
        if proxy is None:
            raise refusal
        return proxy

    @property
    def takes_clients(self) -> bool:
        return self.refusal() is None or self.proxy() is not None

    def mismatch(self, client_properties: Mapping[str, object]) -> ConnectionFault | None:
        """Of a client that names the cluster it wants, and has come to another one."""
        wanted = client_properties.get("cluster")
        own = "" if self._disk is None else self._disk.cluster_id
        if not isinstance(wanted, str) or not wanted or wanted == own:
            return None
        return not_allowed(f"this broker belongs to {f'cluster {own}' if own else 'no cluster'}, not to {wanted}")

    def misplaced(self, client_properties: Mapping[str, object]) -> ConnectionFault | None:
        """Of a client that wants to be at the root itself, whoever could stand in for it."""
        return self.refusal() if client_properties.get(CONNECT_TO_ROOT) is True else None

    @property
    def in_step(self) -> bool:
        """It serves nobody, and has all that the root has said to be committed."""
        return self._replication is not None and is_in_step(self._replication)

    def farewell(self, reason: str) -> ConnectionFault:
        return connection_forced(f"this broker is no longer the root ({reason}); {self._where_the_root_is}")

    def server_properties(self) -> dict[str, object] | None:
        """Where things are, for clients; None if that is what it was when this was last asked."""
        if self._disk is None or self._replication is None:
            return None
        notices = self._replication.notices
        if not notices.changed and not notices.loads.changed:
            return None
        notices.changed = notices.loads.changed = False
        properties: dict[str, object] = {"cluster": self._disk.cluster_id, "http": self._settings.http}
        brokers = self._brokers(notices)
        if brokers:
            data = [places[0] for _, places in sorted(notices.data.items()) if places[0]]
            data_tls = [places[1] for _, places in sorted(notices.data.items()) if places[1]]
            properties |= {"root": notices.address_of(notices.root), "brokers": brokers}
            properties |= {"data_brokers": data, "data_brokers_tls": data_tls}
        return {name: value for name, value in properties.items() if value}

    def _brokers(self, notices: ClusterNotices) -> list[str]:
        """Addresses of all brokers, those first that have the fewest clients; where only the root serves, it is."""
        names = notices.loads.by_load({*notices.membership.members, *notices.loads.known})
        if self._settings.access == "redirect" and notices.root in names:
            names.remove(notices.root)
            names.insert(0, notices.root)
        told: list[str] = []
        size = 0
        for address in dict.fromkeys(filter(None, map(notices.address_of, map(NodeName, names)))):
            size += len(address) + 8
            if size <= TOLD_BYTES_MAX:
                told.append(address)
        return told

    @property
    def _explanation(self) -> str:
        waiting = None if self._foundation is None else self._foundation.waiting
        if waiting is not None:
            return f"this broker belongs to no cluster yet: {waiting}"
        role = ROOT if self._replication is None else own_role(self._replication)
        if self._replication is None or role == ROOT:
            return "this broker is the root, and will serve in a moment"
        return f"this broker is a {role}; {self._where_the_root_is}"

    @property
    def _where_the_root_is(self) -> str:
        return "" if self._replication is None else self._replication.notices.where_the_root_is

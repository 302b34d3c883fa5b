"""Decides whether this broker serves clients, and how it refuses clients that it does not serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.cluster.limits import TOLD_BYTES_MAX
from pandomq.cluster.proxy.awaiting import no_root
from pandomq.errors import ConnectionFault, connection_forced, not_allowed
from pandomq.ids import NodeName
from pandomq.node.broker_state import BrokerState
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.views.cluster_view import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pandomq.broker.broker import Broker
    from pandomq.node.broker_state import BrokerLife
    from pandomq.node.log.alone import Alone
    from pandomq.node.log.foundation import Foundation
    from pandomq.node.log.replication import Replication
    from pandomq.node.views.cluster_knowledge import ClusterKnowledge


CONNECT_TO_ROOT: Final = "connect_to_root"
"""A client property."""


class ServiceState:
    __slots__ = ("_foundation", "_life", "_replication", "_settings", "proxy", "proxy_has_lease")

    def __init__(
        self,
        life: BrokerLife,
        replication: Replication | Alone,
        foundation: Foundation | None,
        settings: ClusterSettings,
    ) -> None:
        self._life = life
        self._settings = settings
        self._replication = replication
        self._foundation = foundation
        self.proxy: Callable[[], Broker | None] = lambda: None
        """The front that serves clients while another broker is root, if there is one."""
        self.proxy_has_lease: Callable[[], bool] = lambda: True
        """Whether the front may serve now."""

    @property
    def serves(self) -> bool:
        """Whether this broker serves clients as root now. That needs a valid lease beside the state."""
        return self._life.state is BrokerState.SERVING and self._replication.serving

    def refusal(self) -> ConnectionFault | None:
        """The reply for clients that may not log in; None if they may. After its code clients with several addresses go
        on to the next; a refusal of access would be a permanent error for some, such as kombu."""
        return None if self.serves else connection_forced(self._explanation)

    def host(self, broker: Broker, *, tunnel: bool) -> Broker:
        """The broker for a client that connects now; this broker itself if it can. Raises ConnectionFault."""
        refusal = self.refusal()
        if refusal is None:
            return broker
        proxy = None if tunnel else self.proxy()
        if proxy is None:
            raise refusal
        return proxy

    @property
    def takes_clients(self) -> bool:
        return self.serves or self.proxy() is not None

    @property
    def lacks_lease(self) -> bool:
        """A client that connects now would be served by a front that has no lease: its users and permissions may be out
        of date (R16)."""
        return not self.serves and self.proxy() is not None and not self.proxy_has_lease()

    def unserved(self) -> ConnectionFault:
        """The fault for a client that has waited long enough for the lease."""
        return no_root(self._settings.root_wait_ms)

    def mismatch(self, client_properties: Mapping[str, object]) -> ConnectionFault | None:
        """The fault for a client that names the cluster it wants, and has connected to another one."""
        wanted = client_properties.get("cluster")
        own = self._replication.knowledge.cluster_id
        if not isinstance(wanted, str) or not wanted or wanted == own:
            return None
        return not_allowed(f"this broker belongs to {f'cluster {own}' if own else 'no cluster'}, not to {wanted}")

    def misplaced(self, client_properties: Mapping[str, object]) -> ConnectionFault | None:
        """The fault for a client that requires the root itself, and no front."""
        return self.refusal() if client_properties.get(CONNECT_TO_ROOT) is True else None

    @property
    def in_step(self) -> bool:
        """Whether this broker serves no client, and has everything that the root has reported as committed."""
        return self._replication.in_step

    def closing_fault(self, reason: str) -> ConnectionFault:
        return connection_forced(f"this broker is no longer the root ({reason}); {self._where_the_root_is}")

    def server_properties(self) -> dict[str, object] | None:
        """The addresses for clients; None if they have not changed since the last call."""
        knowledge = self._replication.knowledge
        if not knowledge.changed and not knowledge.loads.changed:
            return None
        knowledge.changed = knowledge.loads.changed = False
        properties: dict[str, object] = {"cluster": knowledge.cluster_id, "http": self._settings.http}
        brokers = self._brokers(knowledge)
        if brokers:
            data = [places[0] for _, places in sorted(knowledge.data.items()) if places[0]]
            data_tls = [places[1] for _, places in sorted(knowledge.data.items()) if places[1]]
            properties |= {"root": knowledge.address_of(knowledge.root), "brokers": brokers}
            properties |= {"data_brokers": data, "data_brokers_tls": data_tls}
        return {name: value for name, value in properties.items() if value}

    def _brokers(self, knowledge: ClusterKnowledge) -> list[str]:
        """Addresses of all brokers, those first that have the fewest clients; where only the root serves, its
        address."""
        names = knowledge.loads.by_load({*knowledge.membership.members, *knowledge.loads.known})
        if self._settings.access == "redirect" and knowledge.root in names:
            names.remove(knowledge.root)
            names.insert(0, knowledge.root)
        told: list[str] = []
        size = 0
        for address in dict.fromkeys(filter(None, map(knowledge.address_of, map(NodeName, names)))):
            size += len(address) + 8
            if size <= TOLD_BYTES_MAX:
                told.append(address)
        return told

    @property
    def _explanation(self) -> str:
        waiting = None if self._foundation is None else self._foundation.waiting
        if waiting is not None:
            return f"this broker is not yet part of a cluster: {waiting}"
        role = self._replication.own_role
        if role == ROOT:
            return "this broker is the root, and will accept clients in a moment"
        return f"this broker is a {role}; {self._where_the_root_is}"

    @property
    def _where_the_root_is(self) -> str:
        return self._replication.knowledge.where_the_root_is

"""The services for handlers: the broker and its log, whether this broker is the root, and the addresses of the
others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq import data_form
from pandomq.node.data.refusals import RequestRefused, not_now
from pandomq.node.data.waiting import Watches
from pandomq.node.views.cluster_view import BACKUP, ROOT, SECONDARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.broker.administration.administration import OnDone
    from pandomq.broker.broker import Broker
    from pandomq.broker.log.commands import AdministrativeCommand
    from pandomq.node.clients.attempts import LoginRequester
    from pandomq.node.clients.local_client import LocalClients
    from pandomq.node.clients.proxy_header import TrustedProxies
    from pandomq.node.log.alone import Alone
    from pandomq.node.log.replication import Replication
    from pandomq.node.service_state import ServiceState
    from pandomq.wire.inputs import Login


class DataServices:
    """`now_ms` is the time of the step in which a handler is called."""

    __slots__ = (
        "administer",
        "broker",
        "held_back",
        "local_clients",
        "log_in",
        "mechanisms",
        "now_ms",
        "replication",
        "service_state",
        "trusted_proxies",
        "watches",
    )

    def __init__(
        self,
        broker: Broker,
        service_state: ServiceState,
        replication: Replication | Alone,
        local_clients: LocalClients,
        log_in: Callable[[LoginRequester, Login, tuple[str, int], int], None],
        administer: Callable[[AdministrativeCommand, OnDone], None],
        held_back: Callable[[], str | None],
        mechanisms: Callable[[], tuple[str, ...]],
        trusted_proxies: Callable[[], TrustedProxies],
    ) -> None:
        self.broker = broker
        """The broker whose state is the log's, on the root and on all other primaries."""
        self.service_state = service_state
        self.replication = replication
        self.local_clients = local_clients
        self.log_in = log_in
        self.administer = administer
        """Submits a command for the log; the callback is called when it is committed, or with the reason why not."""
        self.watches = Watches()
        self.held_back = held_back
        """Why publishers are held back now; None if they are not."""
        self.mechanisms = mechanisms
        """The login mechanisms that clients may use now."""
        self.trusted_proxies = trusted_proxies
        self.now_ms = 0

    def demand_root(self, *, tls: bool) -> None:
        """Raises Refused: 421 if another broker is the root, 503 if none is, or if this one will be in a moment."""
        refusal = self.service_state.refusal()
        if refusal is None:
            return
        root = self.root(tls=tls)
        if self.role == ROOT or not root:
            raise not_now(refusal.reply_text)
        raise RequestRefused(data_form.NOT_THE_ROOT, refusal.reply_text, root=root)

    @property
    def ready(self) -> bool:
        """The broker has the state of a primary, possibly an old one."""
        return self.broker.state.had_users and self.role != SECONDARY

    @property
    def role(self) -> str:
        return self.replication.own_role

    @property
    def spoken_role(self) -> str:
        """A broker that will be the root in a moment, or just was, is not reported as root."""
        if self.service_state.serves:
            return ROOT
        return BACKUP if self.role == ROOT else self.role

    def root(self, *, tls: bool) -> str:
        """The address of the root's data port; empty if it is not known."""
        knowledge = self.replication.knowledge
        return "" if knowledge.root is None else knowledge.data.get(knowledge.root, ("", ""))[tls]

    def brokers(self, *, tls: bool) -> list[str]:
        """All known data ports."""
        return [places[tls] for name, places in sorted(self.replication.knowledge.data.items()) if places[tls]]

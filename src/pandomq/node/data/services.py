"""What handlers work with: the broker and its log, whether this broker is the root, and where the others are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq import data_form
from pandomq.node.cluster_view import BACKUP, ROOT, SECONDARY, own_role
from pandomq.node.data.refusals import Refused, not_now
from pandomq.node.data.waiting import Watches

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.broker.administration import OnDone
    from pandomq.broker.broker import Broker
    from pandomq.broker.commands import AdministrativeCommand
    from pandomq.node.attempts import Caller
    from pandomq.node.local_client import LocalClients
    from pandomq.node.office import Office
    from pandomq.node.replication import Replication
    from pandomq.wire.inputs import Login


class Services:
    """`now_ms` is the time of the step in which a handler is called."""

    __slots__ = (
        "administer",
        "broker",
        "held_back",
        "local_clients",
        "log_in",
        "mechanisms",
        "now_ms",
        "office",
        "replication",
        "watches",
    )

    def __init__(
        self,
        broker: Broker,
        office: Office,
        replication: Replication | None,
        local_clients: LocalClients,
        log_in: Callable[[Caller, Login, tuple[str, int], int], None],
        administer: Callable[[AdministrativeCommand, OnDone], None],
        held_back: Callable[[], str | None],
        mechanisms: Callable[[], tuple[str, ...]],
    ) -> None:
        self.broker = broker
        """Whose state is the log's, on the root and on all other primaries."""
        self.office = office
        self.replication = replication
        """None: there are no other brokers."""
        self.local_clients = local_clients
        self.log_in = log_in
        self.administer = administer
        """A command for the log; the callback hears when it is committed, or why not."""
        self.watches = Watches()
        self.held_back = held_back
        """Why publishers are held back now; None if they are not."""
        self.mechanisms = mechanisms
        """How clients may log in now."""
        self.now_ms = 0

    def demand_root(self, *, tls: bool) -> None:
        """Raises Refused: 421 if another broker is the root, 503 if none is, or if this one will be in a moment."""
        refusal = self.office.refusal()
        if refusal is None:
            return
        root = self.root(tls=tls)
        if self.role == ROOT or not root:
            raise not_now(refusal.reply_text)
        raise Refused(data_form.NOT_THE_ROOT, refusal.reply_text, root=root)

    @property
    def ready(self) -> bool:
        """It has what a primary has, of some time at least."""
        return self.broker.state.had_users and self.role != SECONDARY

    @property
    def role(self) -> str:
        return ROOT if self.replication is None else own_role(self.replication)

    @property
    def spoken_role(self) -> str:
        """Who will be the root in a moment, or just was, is of no use as one."""
        if self.office.refusal() is None:
            return ROOT
        return BACKUP if self.role == ROOT else self.role

    def root(self, *, tls: bool) -> str:
        """Where the root's data port is; empty if it is not known."""
        notices = None if self.replication is None else self.replication.notices
        return "" if notices is None or notices.root is None else notices.data.get(notices.root, ("", ""))[tls]

    def brokers(self, *, tls: bool) -> list[str]:
        """All data ports that are known."""
        if self.replication is None:
            return []
        notices = self.replication.notices
        return [places[tls] for name, places in sorted(notices.data.items()) if places[tls]]

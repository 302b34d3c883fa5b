"""The part of a front at the root for the private queues of one vhost: their names, an outlet, bindings (R27)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker.queues.removal import delete_queue, tell_cancelled
from pandomq.cluster.proxy.front_channel import ignore_reply
from pandomq.cluster.proxy.limits import PRODUCERS_SEEN_MAX, TRUNK_ATTEMPTS, TRUNK_BYTES_MAX, TRUNK_REDIAL_MS
from pandomq.cluster.proxy.private.claims import Claims
from pandomq.cluster.proxy.private.dead_letter_uplink import DeadLetterUplink
from pandomq.cluster.proxy.private.meta_bindings import MetaBindings
from pandomq.cluster.proxy.tunnel import TRUNK, Tunnel
from pandomq.methods import BasicAck, BasicConsume, ChannelOpen, QueueDeclare

if TYPE_CHECKING:
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.cluster.proxy.lane import Question, TunnelLane
    from pandomq.errors import ChannelFault, ConnectionFault

OUTLET_ARGUMENT: Final = "x-pandomq-outlet"
OUTLET: Final = 1
CLAIMS: Final = 2
BINDINGS: Final = 3
DEAD_LETTERS: Final = 4
"""The channels of a trunk."""


class Trunk:
    __slots__ = (
        "_followers",
        "_front",
        "_owes_receipt",
        "_received_count",
        "attached",
        "attempt_count",
        "bindings",
        "claims",
        "dead_letters",
        "routes",
        "settled",
        "tunnel",
        "vhost",
    )

    def __init__(self, front: "Front", vhost: "Vhost") -> None:
        self._front = front
        self.vhost = vhost
        self.tunnel: Tunnel | None = None
        self.attached = False
        self.settled = False
        """The root has confirmed everything that it has to know."""
        self._followers: dict[FrontClient, None] = {}
        self.attempt_count = 0
        self._received_count = 0
        """Messages that came out of this tunnel's outlet."""
        self._owes_receipt = False
        self.routes = kernel.Routes(front.limits.route_plans_max)
        """The routes of messages from the root on this front."""
        self.claims = Claims(CLAIMS, self._lose_name)
        self.bindings = MetaBindings(BINDINGS)
        self.dead_letters = DeadLetterUplink(front, DEAD_LETTERS)
        self.dial()

    def follow(self, client: "FrontClient") -> bool:
        """The client's tunnel comes after this one. False if it has nothing to wait for."""
        if self.settled:
            return False
        self._followers[client] = None
        return True

    def _settle(self, tunnel: Tunnel) -> None:
        if tunnel is not self.tunnel:
            # The tunnel was lost before the answer: the caller waits no more, but nothing is settled.
            return
        self.settled = True
        followers, self._followers = self._followers, {}
        for client in followers:
            client.dial()

    def dial(self) -> None:
        if self.tunnel is None:
            self.attempt_count += 1
            self.tunnel = Tunnel(self._front, self, purpose=TRUNK, user="", vhost=self.vhost.name)
            self._front.wanted.append(self.tunnel)

    def close(self) -> None:
        """The vhost is deleted."""
        self._front.awaiting.forget(self)
        if self.tunnel is not None:
            self.tunnel.hang_up()
        self._detach()

    @property
    def is_quiet(self) -> bool:
        """The root has received everything that is to be undone."""
        return self.claims.is_quiet and self.bindings.is_quiet

    def when_quiet(self, then: Callable[[], None]) -> None:
        self.claims.when_quiet(lambda: self.bindings.when_quiet(then))

    # The tunnel.

    def tunnel_opened(self) -> None:
        tunnel = self.tunnel
        assert tunnel is not None
        self.attempt_count = 0
        self._received_count = 0
        self._owes_receipt = False
        self.bindings.outlet = self._front.names.queue("amq.outlet")
        lane = tunnel.lane(OUTLET, self)
        lane.ask(ChannelOpen(), ignore_reply)
        lane.ask(QueueDeclare(self.bindings.outlet, exclusive=True, arguments={OUTLET_ARGUMENT: True}), ignore_reply)
        lane.ask(BasicConsume(self.bindings.outlet, "outlet", no_ack=True), ignore_reply)
        self.claims.open(tunnel)
        self.bindings.open(tunnel)
        # Clients may publish already: most messages come through bindings.
        self.bindings.ask_all()
        self.claims.ask_all()
        self.attached = True
        self.dead_letters.attach(tunnel)
        self.when_quiet(lambda: self._settle(tunnel))

    def tunnel_lost(self, reason: str) -> None:
        self._detach()
        first_ms = TRUNK_REDIAL_MS if self.attempt_count else 0
        self._front.awaiting.dial_later(self, self.attempt_count // TRUNK_ATTEMPTS, first_ms)

    def tunnel_refused(self, fault: "ConnectionFault") -> None:
        """The root has no such vhost, or accepts no brokers; this may change."""
        self.tunnel_lost(fault.reply_text)

    def _detach(self) -> None:
        self.tunnel = None
        self.attached = self.settled = False
        # The next tunnel may be dialed in the same batch, and has received nothing yet.
        self._owes_receipt = False
        self.claims.detach()
        self.bindings.detach()
        self.dead_letters.detach()
        for client in self._front.clients_of(self.vhost):
            self._front.awaiting.kept_waiting(client)

    @property
    def congested(self) -> bool:
        return self._front.engine.held_bytes > TRUNK_BYTES_MAX

    def take_run(self, run: "kernel.DeliveryRun | kernel.SettleRun") -> None:
        front = self._front
        if isinstance(run, kernel.DeliveryRun):
            seen = front.seen
            front.engine.fan_out(self.routes, self, run, seen, front.now_ms)
            self._received_count += len(run)
            self._owes_receipt = True
            if len(seen) > PRODUCERS_SEEN_MAX:
                for producer in list(seen)[: PRODUCERS_SEEN_MAX // 2]:
                    del seen[producer]
        else:
            self.dead_letters.take_confirms(run)

    def give_receipt(self) -> None:
        """Called once per batch: the root then confirms to publishers what has arrived here."""
        if self._owes_receipt:
            self._owes_receipt = False
            if self.tunnel is not None:
                self.tunnel.lanes[OUTLET].tell(BasicAck(self._received_count, True))

    def take_return(self, channel: int, payload: bytes, message: kernel.Message) -> None:
        """Never called: nothing that could be returned is published here."""

    # Unprompted actions of the root.

    def closed_above(self, lane: "TunnelLane", fault: "ChannelFault", unanswered: "list[Question]") -> None:
        """The outlet's channel was closed: the trunk does not work without it."""
        assert self.tunnel is not None
        self.tunnel.hang_up()
        self.tunnel_lost(fault.reply_text)

    def cancelled_above(self, tag: str) -> None:
        """A user with the right to delete others' queues has deleted the outlet."""
        assert self.tunnel is not None
        self.tunnel.hang_up()
        self.tunnel_lost("the outlet was deleted")

    def proven_above(self, number: int) -> None:
        """Never called: nothing is settled here."""

    def _lose_name(self, name: str) -> None:
        """Another broker has taken the name while the root changed."""
        queue = self.vhost.find_destination(name)
        if queue is not None and queue.owner is not None:
            tell_cancelled(delete_queue(self._front, queue))

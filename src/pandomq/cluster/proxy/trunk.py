"""What a front has at the root for the private queues of one vhost: their names, an outlet, and its bindings (R27).

Whatever other brokers' clients publish and a private queue here wants comes out of the outlet, one copy each, in the
order in which the root enqueued it, and is led to the private queues from here.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker.removal import delete_queue, tell_cancelled
from pandomq.cluster.proxy.claims import Claims
from pandomq.cluster.proxy.front_channel import unheeded
from pandomq.cluster.proxy.letters import Letters
from pandomq.cluster.proxy.limits import PRODUCERS_SEEN_MAX, TRUNK_ATTEMPTS, TRUNK_BYTES_MAX
from pandomq.cluster.proxy.meta_bindings import MetaBindings
from pandomq.cluster.proxy.tunnel import TRUNK, Tunnel
from pandomq.methods import BasicAck, BasicConsume, ChannelOpen, QueueDeclare

if TYPE_CHECKING:
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.cluster.proxy.lane import Lane, Question
    from pandomq.errors import ChannelFault, ConnectionFault

OUTLET_ARGUMENT: Final = "x-pandomq-outlet"
OUTLET: Final = 1
CLAIMS: Final = 2
BINDINGS: Final = 3
LETTERS: Final = 4
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
        "letters",
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
        """The root has confirmed all that it has to know."""
        self._followers: dict[FrontClient, None] = {}
        self.attempt_count = 0
        self._received_count = 0
        """Messages that came out of the outlet of this tunnel."""
        self._owes_receipt = False
        self.routes = kernel.Routes(front.limits.route_plans_max)
        """Where messages from the root go here."""
        self.claims = Claims(CLAIMS, self._lose_name)
        self.bindings = MetaBindings(BINDINGS)
        self.letters = Letters(front, LETTERS)
        self.dial()

    def follow(self, client: "FrontClient") -> bool:
        """The client's tunnel comes after this one. False if that has nothing to wait for."""
        if self.settled:
            return False
        self._followers[client] = None
        return True

    def _settle(self, tunnel: Tunnel) -> None:
        if tunnel is not self.tunnel:
            # It was lost before it was answered: who waited for that waits no more, but nothing is settled.
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
        """The vhost is gone."""
        self._front.awaiting.forget(self)
        if self.tunnel is not None:
            self.tunnel.hang_up()
        self._detach()

    @property
    def is_quiet(self) -> bool:
        """The root has heard of all that is to be undone."""
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
        lane.ask(ChannelOpen(), unheeded)
        lane.ask(QueueDeclare(self.bindings.outlet, exclusive=True, arguments={OUTLET_ARGUMENT: True}), unheeded)
        lane.ask(BasicConsume(self.bindings.outlet, "outlet", no_ack=True), unheeded)
        self.claims.open(tunnel)
        self.bindings.open(tunnel)
        # Others may publish already: bindings are the ways by which most of it comes.
        self.bindings.ask_all()
        self.claims.ask_all()
        self.attached = True
        self.letters.attach(tunnel)
        self.when_quiet(lambda: self._settle(tunnel))

    def tunnel_lost(self, reason: str) -> None:
        self._detach()
        self._front.awaiting.dial_later(self, -(-self.attempt_count // TRUNK_ATTEMPTS))

    def tunnel_refused(self, fault: "ConnectionFault") -> None:
        """The root has no such vhost, or wants no brokers: it may think better of it."""
        self.tunnel_lost(fault.reply_text)

    def _detach(self) -> None:
        self.tunnel = None
        self.attached = self.settled = False
        self.claims.detach()
        self.bindings.detach()
        self.letters.detach()
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
            self.letters.take_confirms(run)

    def give_receipt(self) -> None:
        """Once a batch: the root confirms to publishers what has come this far."""
        if self._owes_receipt:
            self._owes_receipt = False
            if self.tunnel is not None:
                self.tunnel.lanes[OUTLET].tell(BasicAck(self._received_count, True))

    def take_return(self, channel: int, payload: bytes, message: kernel.Message) -> None:
        """Nothing is published here that would come back."""

    # What the root does by itself.

    def closed_above(self, lane: "Lane", fault: "ChannelFault", unanswered: "list[Question]") -> None:
        """The outlet's channel: without it the trunk is worth nothing."""
        assert self.tunnel is not None
        self.tunnel.hang_up()
        self.tunnel_lost(fault.reply_text)

    def cancelled_above(self, tag: str) -> None:
        """The outlet was deleted by somebody who may delete what he does not own."""
        assert self.tunnel is not None
        self.tunnel.hang_up()
        self.tunnel_lost("the outlet was deleted")

    def proven_above(self, number: int) -> None:
        """Nothing is settled here."""

    def _lose_name(self, name: str) -> None:
        """While the root changed somebody else has taken the name."""
        queue = self.vhost.find_destination(name)
        if queue is not None and queue.owner is not None:
            tell_cancelled(delete_queue(self._front, queue))

"""A publish on a front that has no plan goes to private queues here, and always to the root.

The kernel asks for it in the middle of a run, through `FrontHooks`.
"""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.hooks import BASIC, PUBLISH, BrokerHooks
from pandomq.broker.publishing.copies import routing_keys_of, without_bcc
from pandomq.broker.publishing.producer_marks import unmarked
from pandomq.broker.publishing.publishing import checked, route
from pandomq.cluster.proxy.private.numbers_seen import is_publish
from pandomq.cluster.proxy.private.refusals import may_refuse, note_refusal
from pandomq.cluster.proxy.transactions import FrontTransaction
from pandomq.errors import ChannelFault, ConnectionFault, Fault
from pandomq.properties import read_headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.private.trunk import Trunk


class FrontHooks(BrokerHooks):
    __slots__ = ("_front",)

    def __init__(self, front: "Front") -> None:
        super().__init__(front)
        self._front = front

    def publish(self, channel: kernel.Channel, message: kernel.Message, flags: int) -> None:
        owner: FrontChannel = channel.owner
        try:
            publish(self._front, owner, message, flags)
        except ChannelFault as fault:
            fault.at(BASIC, PUBLISH)
            self._front.faults.close_channel(owner, fault)
        except ConnectionFault as fault:
            fault.at(BASIC, PUBLISH)
            self._front.faults.close_client(owner.client, fault)

    def fan_out(self, owner: "Trunk", message: kernel.Message) -> None:
        fan_out(self._front, owner, message)


def publish(front: "Front", channel: "FrontChannel", message: kernel.Message, flags: int) -> None:
    """Raises ChannelFault or ConnectionFault. The root makes the same checks: the front makes them so that private
    queues get nothing that the root refuses.

    Which private queues are to get the message may depend on bindings of other brokers (`Router.certain`). Then the
    front marks the message as undecided (by a bit that clients may not set), and the root sends it back through the
    outlet. The same applies to messages that the publisher numbers: only the root knows whether such a message came
    before."""
    exchange, message, routing_keys = checked(front, channel, message, flags)
    flags &= kernel.MANDATORY
    numbered = bool(message.special & kernel.SPECIAL_PRODUCER)
    transaction = channel.transaction
    vhost = channel.client.vhost
    if transaction is not None:
        assert isinstance(transaction, FrontTransaction)
        names: tuple[str, ...]
        if numbered:
            names, flags = (), flags | kernel.IMMEDIATE
        elif exchange.name == "":
            # As at the root: the commit determines whether such queues exist.
            names = (message.routing_key,) if routing_keys is None else tuple(dict.fromkeys(routing_keys))
        else:
            names = tuple(queue.owner.name for queue in _private(vhost, exchange, message, routing_keys))
            if not vhost.router.certain:
                names, flags = (), flags | kernel.IMMEDIATE
        transaction.forward(channel, message, names, flags)
        return
    plan = vhost.router.plan(exchange, message.routing_key) if routing_keys is None else None
    if plan is not None and not message.special and not any(map(may_refuse, plan.queues)):
        channel.client.session.routes.put(message.routing, plan)
    queues = _private(vhost, exchange, message, routing_keys) if plan is None else plan.queues
    accepted = True
    if numbered or (plan is None and not vhost.router.certain):
        flags |= kernel.IMMEDIATE
    elif queues:
        accepted = front.engine.enqueue(None, _shown(message), queues, 0, front.now_ms)
        # The message was taken here: it need not come back, even if the root has no queue for it.
        flags = 0
    front.engine.forward(channel.kernel, message, flags)
    if not accepted:
        note_refusal(channel)


def fan_out(front: "Front", trunk: "Trunk", message: kernel.Message) -> None:
    """Delivers a message from another broker, or one without a publisher, to private queues here."""
    vhost = trunk.vhost
    exchange = vhost.router.exchanges.get(message.exchange)
    if exchange is None:
        return
    routing_keys = None
    if message.special & kernel.SPECIAL_COPIES:
        try:
            routing_keys = routing_keys_of(message, read_headers(message.header))
        except Fault:
            # The root read the keys differently, and let the message pass.
            return
    plan = vhost.router.plan(exchange, message.routing_key) if routing_keys is None else None
    if plan is not None and not message.special:
        trunk.routes.put(message.routing, plan)
    queues = _private(vhost, exchange, message, routing_keys) if plan is None else plan.queues
    if not queues:
        return
    if is_publish(message):
        user, message = unmarked(message)
        if not front.numbers_seen.is_new(vhost.name, user, message, front.now_ms):
            return
    front.engine.enqueue(None, _shown(message), queues, 0, front.now_ms)


def _private(
    vhost: "Vhost", exchange: "Exchange", message: kernel.Message, routing_keys: "Sequence[str] | None"
) -> list[kernel.Queue]:
    return route(vhost, exchange, message, routing_keys)


def _shown(message: kernel.Message) -> kernel.Message:
    """The message as consumers may see it."""
    return without_bcc(message) if message.special & kernel.SPECIAL_COPIES else message

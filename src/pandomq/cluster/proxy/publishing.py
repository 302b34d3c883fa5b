"""What happens to a publish on a front that has no plan: to private queues here, and always to the root."""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.copies import routing_keys_of, without_bcc
from pandomq.broker.publishing import checked, route
from pandomq.cluster.proxy.refusals import may_refuse, note_refusal
from pandomq.cluster.proxy.transactions import FrontTransaction
from pandomq.errors import Fault
from pandomq.properties import read_headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.vhost import Vhost
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.trunk import Trunk


def publish(front: "Front", channel: "FrontChannel", message: kernel.Message, flags: int) -> None:
    """Raises ChannelFault or ConnectionFault. The root makes the same checks: here they are made so that private queues
    get nothing that the root refuses.

    Which private queues are to get the message may depend on bindings of other brokers' (`Router.certain`). Then the
    root is told (by a bit that clients may not set) that it is undecided, and sends it back by the outlet. The same for
    what is numbered by its publisher: only the root knows whether it came before."""
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
            # As at the root: whether there are such queues is a question for the commit.
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
        # It was taken here: it need not come back, even if the root has no queue for it.
        flags = 0
    front.engine.forward(channel.kernel, message, flags)
    if not accepted:
        note_refusal(channel)


def fan_out(front: "Front", trunk: "Trunk", message: kernel.Message) -> None:
    """A message from another broker, or of nobody: to private queues here."""
    vhost = trunk.vhost
    exchange = vhost.router.exchanges.get(message.exchange)
    if exchange is None:
        return
    routing_keys = None
    if message.special & kernel.SPECIAL_COPIES:
        try:
            routing_keys = routing_keys_of(message, read_headers(message.header))
        except Fault:
            # The root let it pass, with other eyes.
            return
    plan = vhost.router.plan(exchange, message.routing_key) if routing_keys is None else None
    if plan is not None and not message.special:
        trunk.routes.put(message.routing, plan)
    queues = _private(vhost, exchange, message, routing_keys) if plan is None else plan.queues
    if queues and front.numbers_seen.is_new(vhost.name, message, front.now_ms):
        front.engine.enqueue(None, _shown(message), queues, 0, front.now_ms)


def _private(
    vhost: "Vhost", exchange: "Exchange", message: kernel.Message, routing_keys: "Sequence[str] | None"
) -> list[kernel.Queue]:
    return route(vhost, exchange, message, routing_keys)


def _shown(message: kernel.Message) -> kernel.Message:
    """As consumers may see it."""
    return without_bcc(message) if message.special & kernel.SPECIAL_COPIES else message

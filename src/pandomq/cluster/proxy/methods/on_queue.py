"""Class queue on a front. This broker handles private queues, within what its trunk has at the root; everything else is
requested from the root.
"""

from typing import TYPE_CHECKING

import msgspec

from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.methods import on_queue
from pandomq.broker.naming import check_not_reserved, without_line_ends
from pandomq.broker.publishing import reply_to
from pandomq.broker.queues.queue_arguments import check_server_named
from pandomq.cluster.proxy.methods.on_exchange import ask
from pandomq.cluster.proxy.private import private_queues
from pandomq.errors import access_refused
from pandomq.methods import QueueBind, QueueDeclare, QueueDeclareOk, QueueDelete, QueuePurge, QueueUnbind

if TYPE_CHECKING:
    from pandomq.broker.queues.queue import Queue
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.methods import Method


def private_queue(channel: "FrontChannel", name: str) -> "Queue | None":
    """The queue of this name, if it is private and on this front."""
    queue = channel.client.vhost.queues.get(name)
    return queue if queue is not None and queue.owner is not None else None


def declare(front: "Front", channel: "FrontChannel", method: QueueDeclare) -> None:
    name = without_line_ends(method.queue)
    vhost = channel.client.vhost
    if name == reply_to.PSEUDO_QUEUE or name in vhost.reply_queues or private_queue(channel, name) is not None:
        on_queue.declare(front, channel, method)
        return
    if method.exclusive and not method.passive:
        private_queues.declare(front, channel, method, name)
        return
    if not method.passive:
        if name:
            if not name.startswith(reply_to.PSEUDO_QUEUE):
                check_not_reserved("queue", name)
        else:
            # The front chooses the name, so that it can repeat the request if the root changes meanwhile.
            check_server_named(method.arguments)
            name = channel.made_name = channel.made_name or front.names.queue()
    question = msgspec.structs.replace(method, queue=name)

    def heard(answer: "Method") -> None:
        assert isinstance(answer, QueueDeclareOk)
        channel.last_queue = answer.queue
        channel.made_name = ""

    is_address = name.startswith(reply_to.PSEUDO_QUEUE)
    ask(channel, question, lambda: is_address or name in vhost.queues, heard)


def delete(front: "Front", channel: "FrontChannel", method: QueueDelete) -> None:
    name = without_line_ends(channel.queue_name(method.queue))
    if private_queue(channel, name) is not None:
        private_queues.delete(front, channel, method)
        return
    queues = channel.client.vhost.queues
    ask(channel, msgspec.structs.replace(method, queue=name), lambda: name not in queues)


def purge(front: "Front", channel: "FrontChannel", method: QueuePurge) -> None:
    name = channel.queue_name(method.queue)
    if private_queue(channel, name) is not None:
        on_queue.purge(front, channel, method)
    else:
        ask(channel, msgspec.structs.replace(method, queue=name), lambda: True)


def bind(front: "Front", channel: "FrontChannel", method: QueueBind) -> None:
    question = _named(channel, method)
    if private_queue(channel, question.queue) is not None:
        private_queues.bind(front, channel, method)
    else:
        ask(channel, question, lambda: _is_bound(channel, question))


def unbind(front: "Front", channel: "FrontChannel", method: QueueUnbind) -> None:
    question = _named(channel, method)
    if private_queue(channel, question.queue) is not None:
        private_queues.unbind(front, channel, method)
    else:
        ask(channel, question, lambda: not _is_bound(channel, question))


def _named(channel: "FrontChannel", method: "QueueBind | QueueUnbind") -> "QueueBind | QueueUnbind":
    """The method with the names that empty ones stand for."""
    name = channel.queue_name(method.queue)
    if name.startswith(reply_to.ADDRESS_PREFIX):
        raise access_refused("cannot bind or unbind to a volatile (direct reply-to) queue")
    routing_key = method.routing_key if method.queue else method.routing_key or name
    return msgspec.structs.replace(method, queue=name, routing_key=routing_key)


def _is_bound(channel: "FrontChannel", method: "QueueBind | QueueUnbind") -> bool:
    vhost = channel.client.vhost
    exchange, queue = vhost.router.exchanges.get(method.exchange), vhost.queues.get(method.queue)
    if exchange is None or queue is None:
        return False
    return Binding.to_queue(method.exchange, queue, method.routing_key, method.arguments) in exchange.bindings()

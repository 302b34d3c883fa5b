"""Class queue.

A queue's message count must include the effects of all earlier inputs. Within a batch consumers have not got their
messages yet, nor has a queue that is too long dropped any; so `Engine.deliver` comes first.
"""

from typing import TYPE_CHECKING

from pandomq.broker.administration.access import demand, demand_topic
from pandomq.broker.administration.quotas import check_binding, check_queue
from pandomq.broker.administration.rights import (
    DEAD_LETTERS,
    EXCHANGE,
    QUEUE,
    QUEUE_BIND,
    QUEUE_DECLARE,
    QUEUE_DECLARE_DEAD_LETTERS,
    QUEUE_DECLARE_PASSIVE,
    QUEUE_DELETE,
    QUEUE_PURGE,
    QUEUE_UNBIND,
)
from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.log.commands import BindQueue, DeclareQueue, UnbindQueue
from pandomq.broker.naming import check_not_default, check_not_reserved, without_line_ends
from pandomq.broker.publishing import reply_to
from pandomq.broker.queues.levels import check_replication
from pandomq.broker.queues.outlets import OUTLET, Stub, add_outlet, check_outlet, claim, refuse_binding
from pandomq.broker.queues.queue import NO_ARGUMENTS, Queue
from pandomq.broker.queues.queue_arguments import check_new, check_same, check_server_named
from pandomq.broker.queues.removal import delete_orphans, delete_queue, tell_cancelled
from pandomq.errors import access_refused, not_implemented, precondition_failed
from pandomq.fieldtable import encode_table
from pandomq.methods import (
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
    QueuePurge,
    QueuePurgeOk,
    QueueUnbind,
    QueueUnbindOk,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.methods import Method


def declare(broker: "Broker", channel: "Channel", method: QueueDeclare) -> None:
    client = channel.client
    vhost = client.vhost
    name = without_line_ends(method.queue)
    if name.startswith(reply_to.PSEUDO_QUEUE) and not (client.trunk and method.exclusive):
        answer = reply_to.declare(vhost, name)
        channel.last_queue = name
        if not method.no_wait:
            channel.reply(answer)
        return
    if method.passive:
        demand(client, QUEUE_DECLARE_PASSIVE, QUEUE, name)
        queue = vhost.queue(name)
        queue.check_access(client)
    else:
        queue = _declared(broker, channel, method, name)
    queue.used_ms = broker.now_ms
    channel.last_queue = queue.name
    if not method.no_wait:
        broker.engine.deliver(broker.now_ms)
        _answer(channel, queue, QueueDeclareOk(queue.name, queue.message_count, queue.kernel.consumer_count))


def _declared(broker: "Broker", channel: "Channel", method: QueueDeclare, name: str) -> Queue:
    client = channel.client
    vhost = client.vhost
    if name:
        if client.origin is None:
            check_not_reserved("queue", name)
    else:
        check_server_named(method.arguments)
        name = broker.names.queue()
    demand(client, QUEUE_DECLARE, QUEUE, name)
    # An exclusive queue ends with its connection, so durability has no meaning for it.
    durable = method.durable and not method.exclusive
    queue = vhost.queues.get(name)
    if queue is not None:
        queue.check_declared_by(client, method.exclusive)
        if not isinstance(queue, Stub) and (
            queue.durable is not durable
            or queue.auto_delete is not method.auto_delete
            or method.arguments != queue.arguments
        ):
            received = (durable, method.auto_delete, method.arguments)
            check_same(queue.resource, received, (queue.durable, queue.auto_delete, queue.arguments))
        return queue
    return _created(broker, channel, method, name, durable)


def _created(broker: "Broker", channel: "Channel", method: QueueDeclare, name: str, durable: bool) -> Queue:
    client = channel.client
    vhost = client.vhost
    arguments = method.arguments
    if arguments:
        resource = f"queue '{name}' in vhost '{vhost.name}'"
        check_new(arguments, resource, durable=durable, exclusive=method.exclusive, auto_delete=method.auto_delete)
        check_replication(arguments, resource)
        if OUTLET in arguments:
            check_outlet(client, arguments, resource, exclusive=method.exclusive)
            return add_outlet(broker, client, name)
        if "x-dead-letter-exchange" in arguments:
            demand(client, QUEUE_DECLARE_DEAD_LETTERS, QUEUE, name)
            demand(client, QUEUE_DECLARE_DEAD_LETTERS, DEAD_LETTERS, arguments["x-dead-letter-exchange"])
    check_queue(broker, vhost, name)
    if method.exclusive and client.origin is not None:
        return claim(broker, client, name, address=name.startswith(reply_to.ADDRESS_PREFIX))
    if method.exclusive:
        queue = add_private_queue(broker, client, method, name)
    else:
        broker.issue(
            DeclareQueue(
                vhost.name,
                name,
                broker.state.next_queue_id,
                durable,
                method.auto_delete,
                encode_table(arguments),
                client.user,
                broker.now_ms,
                honours_replicate=True,
            )
        )
        queue = vhost.queues[name]
    return queue


def add_private_queue(broker: "Broker", client: "Client", method: QueueDeclare, name: str) -> Queue:
    """Adds a queue that only this broker and its client know; nothing of it is logged."""
    queue = Queue(
        client.vhost,
        name,
        auto_delete=method.auto_delete,
        arguments=method.arguments,
        owner=client,
        user=client.user,
        now_ms=broker.now_ms,
    )
    broker.commands_changed += 1
    client.vhost.add_queue(queue)
    client.add_private_queue(queue)
    if queue.settings.expires_ms > 0:
        broker.timers.watch_queue(queue, broker.now_ms + queue.settings.expires_ms)
    return queue


def delete(broker: "Broker", channel: "Channel", method: QueueDelete) -> None:
    client = channel.client
    name = without_line_ends(channel.queue_name(method.queue))
    demand(client, QUEUE_DELETE, QUEUE, name)
    queue = client.vhost.queues.get(name)
    if queue is None and client.trunk:
        queue = client.vhost.reply_queues.get(name)
    if queue is None or (client.trunk and queue.owner is None):
        # Trunks delete the names that they have claimed. A name that belongs to another broker by now is left alone.
        if not method.no_wait:
            channel.reply_when_settled(QueueDeleteOk(0))
        return
    queue.check_access(client)
    broker.engine.deliver(broker.now_ms)
    if method.if_unused and queue.kernel.consumer_count:
        raise precondition_failed(f"{queue.resource} in use")
    if method.if_empty and queue.message_count:
        raise precondition_failed(f"{queue.resource} not empty")
    message_count = queue.message_count
    consumers = delete_queue(broker, queue)
    if not method.no_wait:
        _answer(channel, queue, QueueDeleteOk(message_count))
    # The deleting client gets its answer before its own consumers are cancelled.
    tell_cancelled(consumers)


def purge(broker: "Broker", channel: "Channel", method: QueuePurge) -> None:
    client = channel.client
    name = channel.queue_name(method.queue)
    demand(client, QUEUE_PURGE, QUEUE, name)
    queue = client.vhost.queue(name)
    queue.check_access(client)
    if queue.stream is not None:
        raise not_implemented(f"queue.purge not supported by stream queues {queue.resource}")
    broker.engine.deliver(broker.now_ms)
    message_count = queue.kernel.purge()
    if not method.no_wait:
        channel.reply_when_committed(QueuePurgeOk(message_count))


def bind(broker: "Broker", channel: "Channel", method: QueueBind) -> None:
    name, routing_key = binding_names(channel, method)
    client = channel.client
    vhost = client.vhost
    exchange = vhost.exchange(method.exchange)
    queue = vhost.queue(name)
    queue.check_access(client)
    refuse_binding(queue)
    exchange.check_binding(routing_key, method.arguments)
    binding = Binding.to_queue(method.exchange, queue, routing_key, method.arguments or NO_ARGUMENTS)
    if binding not in exchange.bindings():
        check_binding(broker, method.exchange, name)
        if queue.owner is None:
            arguments = encode_table(method.arguments)
            broker.issue(BindQueue(vhost.name, method.exchange, name, routing_key, arguments))
        else:
            broker.commands_changed += 1
            vhost.router.bind(binding)
    if not method.no_wait:
        _answer(channel, queue, QueueBindOk())


def unbind(broker: "Broker", channel: "Channel", method: QueueUnbind) -> None:
    """Unbinding what is not bound, or does not exist, is no error."""
    name, routing_key = binding_names(channel, method)
    client = channel.client
    vhost = client.vhost
    queue = vhost.queues.get(name)
    exchange = vhost.router.exchanges.get(method.exchange)
    if queue is None or exchange is None:
        channel.reply_when_settled(QueueUnbindOk())
        return
    binding = Binding.to_queue(method.exchange, queue, routing_key, method.arguments)
    if binding in exchange.bindings():
        queue.check_access(client)
        if queue.owner is None:
            arguments = encode_table(method.arguments)
            broker.issue(UnbindQueue(vhost.name, method.exchange, name, routing_key, arguments))
        else:
            broker.commands_changed += 1
            broker.state.unbind(vhost, binding)
        delete_orphans(broker, vhost)
    _answer(channel, queue, QueueUnbindOk())


def binding_names(channel: "Channel", method: QueueBind | QueueUnbind) -> tuple[str, str]:
    """The queue's name and the routing key that are meant. Raises ChannelFault."""
    # Without any name the last declared queue is meant, and its name is also the routing key.
    name = channel.queue_name(method.queue)
    routing_key = method.routing_key if method.queue else method.routing_key or name
    if name.startswith(reply_to.ADDRESS_PREFIX):
        raise access_refused("cannot bind or unbind to a volatile (direct reply-to) queue")
    operation = QUEUE_BIND if isinstance(method, QueueBind) else QUEUE_UNBIND
    demand(channel.client, operation, QUEUE, name)
    check_not_default(method.exchange)
    demand(channel.client, operation, EXCHANGE, method.exchange)
    source = channel.client.vhost.router.exchanges.get(method.exchange)
    if source is not None:
        demand_topic(channel.client, operation, source, (routing_key,))
    return name, routing_key


def _answer(channel: "Channel", queue: Queue, method: "Method") -> None:
    # No other client knows a private queue: replies about it wait for nothing.
    if queue.owner is None:
        channel.reply_when_settled(method)
    else:
        channel.reply(method)

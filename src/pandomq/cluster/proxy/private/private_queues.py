"""Private queues of a front's clients: the front declares and binds them once the root holds their names, and routes
the messages for them to the outlet (R27).
"""

from typing import TYPE_CHECKING

from pandomq.broker.administration.access import demand
from pandomq.broker.administration.quotas import check_binding, check_consumer, check_queue
from pandomq.broker.administration.rights import (
    DEAD_LETTERS,
    QUEUE,
    QUEUE_DECLARE,
    QUEUE_DECLARE_DEAD_LETTERS,
    QUEUE_DELETE,
)
from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.methods import on_queue
from pandomq.broker.naming import check_not_reserved
from pandomq.broker.publishing import reply_to
from pandomq.broker.queues.consumers import add_consumer
from pandomq.broker.queues.levels import check_replication
from pandomq.broker.queues.queue import NO_ARGUMENTS, Queue, locked
from pandomq.broker.queues.queue_arguments import check_new, check_server_named
from pandomq.broker.queues.removal import delete_queue, tell_cancelled
from pandomq.errors import ChannelFault, precondition_failed
from pandomq.methods import (
    BasicConsume,
    BasicConsumeOk,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
    QueueUnbind,
    QueueUnbindOk,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.methods import Method


def declare(front: "Front", channel: "FrontChannel", method: QueueDeclare, name: str) -> None:
    """Declares a name that is not private here; a shared queue may have it. Raises ChannelFault."""
    client = channel.client
    vhost = client.vhost
    if name:
        check_not_reserved("queue", name)
    else:
        check_server_named(method.arguments)
        name = front.names.queue()
    demand(client, QUEUE_DECLARE, QUEUE, name)
    if name in vhost.queues:
        vhost.queues[name].check_declared_by(client, True)
    arguments = method.arguments
    if arguments:
        resource = f"queue '{name}' in vhost '{vhost.name}'"
        check_new(arguments, resource, durable=False, exclusive=True, auto_delete=method.auto_delete)
        check_replication(arguments, resource)
        if "x-dead-letter-exchange" in arguments:
            demand(client, QUEUE_DECLARE_DEAD_LETTERS, QUEUE, name)
            demand(client, QUEUE_DECLARE_DEAD_LETTERS, DEAD_LETTERS, arguments["x-dead-letter-exchange"])
    check_queue(front, vhost, name)

    def create() -> None:
        on_queue.add_private_queue(front, client, method, name)
        channel.last_queue = name
        if not method.no_wait:
            channel.reply(QueueDeclareOk(name, 0, 0))

    _claim(front, channel, name, method, create)


def consume_replies(front: "Front", channel: "FrontChannel", method: BasicConsume, tag: str) -> None:
    """Begins a consumer of direct reply-to. Its address is claimed at the root like the name of a queue. Raises
    ChannelFault."""
    if not method.no_ack:
        raise precondition_failed("reply consumer cannot acknowledge")
    if channel.reply_queue is not None:
        raise precondition_failed("reply consumer already set")
    client = channel.client
    name = reply_to.ADDRESS_PREFIX + front.names.token()
    queue = Queue(client.vhost, name, auto_delete=True, owner=client, user=client.user, now_ms=front.now_ms)
    check_consumer(front, channel, queue)

    def create() -> None:
        # Other queues may have been declared meanwhile. If there are too many, there is no queue either.
        check_consumer(front, channel, queue)
        front.commands_changed += 1
        client.vhost.add_reply_queue(queue)
        channel.reply_queue = queue
        add_consumer(front, channel, queue, tag, no_ack=True)
        if not method.no_wait:
            channel.reply(BasicConsumeOk(tag))

    _claim(front, channel, name, method, create)


def _claim(front: "Front", channel: "FrontChannel", name: str, method: "Method", create: "Callable[[], None]") -> None:
    """The client waits until the name is held; if it is not, its channel is closed."""
    vhost = channel.client.vhost
    trunk = front.trunk_of(vhost)
    if name in trunk.claims:
        # Another client here has just requested the name, and will get it.
        raise locked(f"queue '{name}' in vhost '{vhost.name}'")
    front.commands_changed += 1
    call = channel.client.call_trunk(channel, trunk, create)
    call.on_abandoned = lambda: trunk.claims.release(name)

    def granted() -> None:
        call.end(create)
        if vhost.find_destination(name) is None:
            # The client has disconnected meanwhile, or may not have the queue after all.
            trunk.claims.release(name)

    def refused(fault: ChannelFault) -> None:
        fault.class_id, fault.method_id = method.class_id, method.method_id
        call.end(lambda: front.faults.close_channel(channel, fault))

    trunk.claims.claim(name, granted, refused)


def delete(front: "Front", channel: "FrontChannel", method: QueueDelete) -> None:
    client = channel.client
    name = channel.queue_name(method.queue)
    demand(client, QUEUE_DELETE, QUEUE, name)
    queue = client.vhost.queues[name]
    queue.check_access(client)
    front.engine.deliver(front.now_ms)
    if method.if_unused and queue.kernel.consumer_count:
        raise precondition_failed(f"{queue.resource} in use")
    if method.if_empty and queue.kernel.ready_count:
        raise precondition_failed(f"{queue.resource} not empty")
    answer = QueueDeleteOk(queue.kernel.ready_count)
    consumers = delete_queue(front, queue)

    def done() -> None:
        if not method.no_wait:
            channel.reply(answer)
        tell_cancelled(consumers)

    _when_undone(front, channel, done)


def bind(front: "Front", channel: "FrontChannel", method: QueueBind) -> None:
    name, routing_key = on_queue.binding_names(channel, method)
    client = channel.client
    vhost = client.vhost
    exchange = vhost.exchange(method.exchange)
    queue = vhost.queue(name)
    queue.check_access(client)
    exchange.check_binding(routing_key, method.arguments)
    binding = Binding.to_queue(method.exchange, queue, routing_key, method.arguments or NO_ARGUMENTS)

    def done() -> None:
        if not method.no_wait:
            channel.reply(QueueBindOk())

    if binding in exchange.bindings():
        done()
        return
    check_binding(front, method.exchange, name)
    # This comes before the root routes anything to the outlet, so that no such message is missed.
    front.commands_changed += 1
    vhost.router.bind(binding)
    trunk = front.trunk_of(vhost)
    call = client.call_trunk(channel, trunk, done)

    def refused(fault: ChannelFault) -> None:
        if vhost.router.exchanges.get(method.exchange) is exchange:
            front.state.unbind(vhost, binding)
            vhost.orphans.clear()
        fault.class_id, fault.method_id = method.class_id, method.method_id
        call.end(lambda: front.faults.close_channel(channel, fault))

    trunk.bindings.add(binding, lambda: call.end(done), refused)


def unbind(front: "Front", channel: "FrontChannel", method: QueueUnbind) -> None:
    """Unbinding what is not bound, or does not exist, is no error."""
    name, routing_key = on_queue.binding_names(channel, method)
    vhost = channel.client.vhost
    queue, exchange = vhost.queues[name], vhost.router.exchanges.get(method.exchange)
    if exchange is not None:
        binding = Binding.to_queue(method.exchange, queue, routing_key, method.arguments)
        if binding in exchange.bindings():
            queue.check_access(channel.client)
            front.commands_changed += 1
            front.state.unbind(vhost, binding)
            vhost.orphans.clear()
            front.trunk_of(vhost).bindings.drop(binding)
    _when_undone(front, channel, lambda: channel.reply(QueueUnbindOk()))


def _when_undone(front: "Front", channel: "FrontChannel", done: "Callable[[], None]") -> None:
    """The root has removed what is no longer held or bound; exchanges without other users may be deleted."""
    trunk = front.trunk_of(channel.client.vhost)
    if trunk.is_quiet:
        done()
    else:
        call = channel.client.call_trunk(channel, trunk, done)
        trunk.when_quiet(lambda: call.end(done))

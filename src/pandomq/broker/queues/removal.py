"""Removes dependent objects: consumers with their queue, auto-delete queues with their last consumer, bindings with
either end, auto-delete exchanges with their last binding, and the rest of a channel or a connection.
"""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.log.commands import DeleteExchange, DeleteQueue
from pandomq.methods import BasicCancel

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost


def delete_queue(broker: "Broker", queue: "Queue") -> list[kernel.Consumer]:
    """Returns the consumers it had; the caller notifies them by `tell_cancelled`."""
    consumers = queue.kernel.consumers()
    vhost = queue.vhost
    if queue.owner is None:
        if not queue.inner:
            broker.leases.queue_leaves(queue)
        broker.issue(DeleteQueue(vhost.name, queue.name, queue.inner))
    else:
        broker.commands_changed += 1
        broker.private_queue_leaves(queue)
        queue.owner.remove_private_queue(queue)
        vhost.remove_queue(queue)
    for consumer in consumers:
        consumer.channel.owner.pop_consumer(consumer.tag.decode())
    if vhost.orphans:
        delete_orphans(broker, vhost)
    broker.deleted_queues.append(queue.kernel)
    return consumers


def tell_cancelled(consumers: list[kernel.Consumer]) -> None:
    """Sends basic.cancel to the consumers of a deleted queue. Clients without consumer_cancel_notify simply get no more
    deliveries."""
    for consumer in consumers:
        channel: Channel = consumer.channel.owner
        if channel.client.cancel_notify and not channel.closing and not channel.client.failed:
            channel.reply(BasicCancel(consumer.tag.decode(), True))


def delete_exchange(broker: "Broker", vhost: "Vhost", exchange: "Exchange") -> None:
    broker.issue(DeleteExchange(vhost.name, exchange.name))
    delete_orphans(broker, vhost)


def delete_orphans(broker: "Broker", vhost: "Vhost") -> None:
    """Each deletion may leave further exchanges without a binding; every one is a command of its own, see `state`."""
    while vhost.orphans:
        exchange = vhost.orphans.pop()
        if vhost.router.exchanges.get(exchange.name) is exchange and not exchange.binding_count:
            broker.issue(DeleteExchange(vhost.name, exchange.name))


def consumer_left(broker: "Broker", consumer: kernel.Consumer) -> None:
    """To be called after the consumer was cancelled or its channel closed."""
    queue: Queue = consumer.queue.owner
    if queue.exclusive_consumer is consumer:
        queue.exclusive_consumer = None
    if queue.kernel.deleted or queue.kernel.consumer_count:
        return
    queue.used_ms = broker.now_ms
    if queue.auto_delete:
        delete_queue(broker, queue)


def release_channel(broker: "Broker", channel: "Channel") -> None:
    """Removes consumers, returns unacked messages to their queues, and drops an open transaction."""
    broker.commands_changed += 1
    consumers = list(channel.consumers.values())
    broker.producers.left(channel)
    if channel.transaction is not None:
        channel.transaction.forget()
        channel.transaction = None
    channel.reply_queue = None
    channel.kernel.close(broker.now_ms)
    for consumer in consumers:
        channel.pop_consumer(consumer.tag.decode())
        consumer_left(broker, consumer)


def release_client(broker: "Broker", client: "Client") -> None:
    """Calls `release_channel` for all channels of the client, and then removes its exclusive queues."""
    broker.commands_changed += 1
    for channel in client.channels.values():
        if not channel.closing:
            release_channel(broker, channel)
        channel.part_from_kernel()
    client.tally.channel_count -= len(client.channels)
    client.channels.clear()
    for queue in client.private_queues:
        delete_queue(broker, queue)

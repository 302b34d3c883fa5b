"""Class basic, except for the methods that come in runs: publishes and settlements."""

from typing import TYPE_CHECKING

from pandomq.broker.administration.access import demand
from pandomq.broker.administration.rights import BASIC_CONSUME, BASIC_GET, QUEUE
from pandomq.broker.log.earlier_deliveries import count_held
from pandomq.broker.log.places import place_of
from pandomq.broker.publishing import reply_to
from pandomq.broker.queues.consumers import add_consumer, limit_time, remove_consumer
from pandomq.broker.queues.queue_arguments import QUORUM
from pandomq.broker.queues.removal import consumer_left
from pandomq.broker.streams.consuming import begin_reading
from pandomq.errors import not_allowed, not_implemented, resource_locked
from pandomq.kernel.constants import NACK
from pandomq.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicQos,
    BasicQosOk,
    BasicRecover,
    BasicRecoverAsync,
    BasicRecoverOk,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel


def qos(broker: "Broker", channel: "Channel", method: BasicQos) -> None:
    if method.prefetch_size:
        raise not_implemented(f"prefetch_size!=0 ({method.prefetch_size})")
    if method.global_:
        channel.kernel.set_prefetch(method.prefetch_count)
    else:
        channel.prefetch_count = method.prefetch_count
        # As in RabbitMQ, a limit for each consumer removes the one for the channel.
        channel.kernel.set_prefetch(0)
    channel.reply(BasicQosOk())


def consume(broker: "Broker", channel: "Channel", method: BasicConsume) -> None:
    name = channel.queue_name(method.queue)
    tag = method.consumer_tag
    if tag in channel.consumers:
        raise not_allowed(f"attempt to reuse consumer tag '{tag}'")
    tag = tag or broker.names.consumer_tag()
    if name == reply_to.PSEUDO_QUEUE:
        reply_to.consume(broker, channel, tag, method)
    else:
        client = channel.client
        demand(client, BASIC_CONSUME, QUEUE, name)
        queue = client.vhost.queue(name)
        queue.check_access(client)
        consumer = add_consumer(
            broker,
            channel,
            queue,
            tag,
            no_ack=method.no_ack,
            exclusive=method.exclusive,
            arguments=method.arguments,
        )
        if queue.stream is not None:
            full = broker.streams.full_of(queue.stream)
            first_offset = begin_reading(queue.stream, consumer, method.arguments, full, broker.now_ms)
            if client.origin is not None:
                # Fronts have their own tags, but need the offset to continue at another root.
                tag = "" if first_offset is None else str(first_offset)
        elif client.origin is not None and not client.trunk:
            # Fronts also need to settle at another root the deliveries of this one.
            consumer.identified = not method.no_ack
            tag = str(queue.kernel.queue_id)
        if channel.held_before:
            count_held(channel, method.consumer_tag, consumer)
    if not method.no_wait:
        channel.reply(BasicConsumeOk(tag))


def cancel(broker: "Broker", channel: "Channel", method: BasicCancel) -> None:
    consumer = remove_consumer(channel, method.consumer_tag)
    if not method.no_wait:
        channel.reply(BasicCancelOk(method.consumer_tag))
    if consumer is not None:
        consumer_left(broker, consumer)


def cancel_ok(broker: "Broker", channel: "Channel", method: BasicCancelOk) -> None:
    """The client confirms that its queue is deleted, although no answer is required."""


def get(broker: "Broker", channel: "Channel", method: BasicGet) -> None:
    client = channel.client
    name = channel.queue_name(method.queue)
    demand(client, BASIC_GET, QUEUE, name)
    queue = client.vhost.queue(name)
    queue.check_access(client)
    if queue.stream is not None:
        raise not_implemented(f"basic.get not supported by stream queues {queue.resource}")
    if queue.settings.single_active and queue.settings.type == QUORUM:
        raise resource_locked(
            f"cannot obtain access to locked {queue.resource}. basic.get operations are not supported by quorum "
            "queues with single active consumer"
        )
    queue.used_ms = broker.now_ms
    if channel.held_count:
        # The answer would wait for the log, behind others. If the broker crashed meanwhile, no client would have the
        # message that it takes, but clients might have those behind it.
        client.awaited_channel = channel
        return
    if not method.no_ack:
        limit_time(broker, channel, queue)
    # As in `on_queue`: earlier inputs of this batch take effect first.
    broker.engine.deliver(broker.now_ms)
    taken = queue.kernel.take(channel.kernel, method.no_ack, broker.now_ms)
    if taken is None and queue.kernel.head_missing:
        # The request is repeated, before any later input of the client, when the message has come from the disk.
        client.awaited_queue = queue.kernel
        return
    if taken is None:
        channel.reply(BasicGetEmpty())
        return
    tag, redelivered, message, left = taken
    reply = BasicGetOk(tag, redelivered, message.exchange, message.routing_key, left)
    channel.reply_with_content(reply, message, b"" if client.origin is None else place_of(channel, queue, tag))


def recover(broker: "Broker", channel: "Channel", method: BasicRecover) -> None:
    _recover(broker, channel, method.requeue)
    channel.reply(BasicRecoverOk())


def recover_async(broker: "Broker", channel: "Channel", method: BasicRecoverAsync) -> None:
    _recover(broker, channel, method.requeue)


def _recover(broker: "Broker", channel: "Channel", requeue: bool) -> None:
    if not requeue:
        raise not_implemented("requeue=false")
    transaction = channel.transaction
    if transaction is None or not transaction.settled_count:
        channel.kernel.recover(broker.now_ms)
        return
    # Messages that the transaction has settled are not recovered.
    for tag in channel.kernel.outstanding(0, True):
        if not transaction.is_settled(tag):
            broker.engine.settle_one(channel.kernel, NACK, tag, False, True, broker.now_ms)

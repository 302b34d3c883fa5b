"""The arguments of a consumer that the kernel does not need, and how consumers are added and removed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pandomq import kernel
from pandomq.broker.administration import quotas
from pandomq.broker.queues.outlets import Outlet
from pandomq.broker.queues.queue import NO_ARGUMENTS
from pandomq.broker.queues.queue_arguments import check_consumer
from pandomq.broker.streams.consuming import check_consume
from pandomq.errors import access_refused

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.queues.queue import Queue


class ConsumerOptions(msgspec.Struct, frozen=True):
    """The kernel consumer's owner."""

    exclusive: bool = False
    arguments: Mapping[str, Any] = NO_ARGUMENTS


_PLAIN: Final = ConsumerOptions()
"""Shared by all consumers without arguments."""


def add_consumer(
    broker: "Broker",
    channel: "Channel",
    queue: "Queue",
    tag: str,
    *,
    no_ack: bool,
    exclusive: bool = False,
    arguments: Mapping[str, Any] = NO_ARGUMENTS,
) -> kernel.Consumer:
    """Raises ChannelFault: 406 for its arguments, 403 if it or another is exclusive; ConnectionFault (540)."""
    settings = queue.settings
    quotas.check_consumer(broker, channel, queue)
    if queue.stream is None:
        check_consumer(arguments, queue.resource, settings.type)
    else:
        check_consume(channel, queue, no_ack=no_ack, arguments=arguments)
    in_use = exclusive and (queue.kernel.consumer_count or settings.single_active)
    if in_use or queue.exclusive_consumer is not None:
        raise access_refused(f"{queue.resource} in exclusive use")
    consumer = kernel.Consumer(
        channel.kernel,
        queue.kernel,
        tag.encode(),
        no_ack,
        channel.prefetch_count,
        int(arguments.get("x-priority", 0)),
        ConsumerOptions(exclusive, arguments) if exclusive or arguments else _PLAIN,
    )
    # The broker behind an outlet needs the users of these messages, and their numbers.
    consumer.labelled = isinstance(queue, Outlet)
    if exclusive:
        queue.exclusive_consumer = consumer
    channel.add_consumer(tag, consumer)
    if not no_ack:
        limit_time(broker, channel, queue, arguments)
    return consumer


def remove_consumer(channel: "Channel", tag: str) -> kernel.Consumer | None:
    """The consumer's unacked messages stay with the channel. None if there is no such consumer, which is no error."""
    consumer = channel.pop_consumer(tag)
    if consumer is not None:
        consumer.cancel()
        if channel.reply_queue is not None and channel.reply_queue.kernel is consumer.queue:
            channel.reply_queue = None
    return consumer


def limit_time(
    broker: "Broker", channel: "Channel", queue: "Queue", arguments: Mapping[str, Any] = NO_ARGUMENTS
) -> None:
    """The channel will hold deliveries of this queue, and must acknowledge them in time.

    The kernel knows the age of a channel's oldest delivery, not its consumer: the shortest limit counts for the
    channel.
    """
    timeout_ms = arguments.get("x-consumer-timeout", queue.settings.consumer_timeout_ms)
    if timeout_ms < 0:
        timeout_ms = broker.limits.consumer_timeout_ms
    if timeout_ms and not 0 < channel.timeout_ms <= timeout_ms:
        channel.timeout_ms = int(timeout_ms)
        broker.timers.watch_acks(int(timeout_ms), broker.now_ms)


def renew_time_limits(broker: "Broker", queue: "Queue") -> None:
    """The queue's limit has changed, and with it the limits of the channels that consume from it."""
    for channel in {consumer.channel.owner: None for consumer in queue.kernel.consumers()}:
        channel.timeout_ms = 0
        for consumer in channel.consumers.values():
            if not consumer.no_ack:
                limit_time(broker, channel, consumer.queue.owner, consumer.owner.arguments)

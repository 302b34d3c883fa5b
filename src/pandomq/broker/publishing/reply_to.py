"""Direct reply-to: answers go straight to the requesting channel, without a declared queue.

A client consumes from the pseudo-queue amq.rabbitmq.reply-to and names it as the reply-to of its requests; the broker
replaces that by an address made for the channel, which exists as long as the consumer. The address is a queue that only
the default exchange knows, with the channel as its one consumer.
"""

from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker.administration.quotas import check_consumer
from pandomq.broker.publishing.content_header import reply_to_of, spans_of, with_reply_to
from pandomq.broker.queues.consumers import add_consumer
from pandomq.broker.queues.queue import Queue
from pandomq.errors import not_found, precondition_failed
from pandomq.methods import QueueDeclareOk

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.vhost import Vhost
    from pandomq.methods import BasicConsume

PSEUDO_QUEUE: Final = "amq.rabbitmq.reply-to"
ADDRESS_PREFIX: Final = f"{PSEUDO_QUEUE}."


def consume(broker: "Broker", channel: "Channel", tag: str, method: "BasicConsume") -> None:
    if not method.no_ack:
        raise precondition_failed("reply consumer cannot acknowledge")
    if channel.reply_queue is not None:
        raise precondition_failed("reply consumer already set")
    client = channel.client
    queue = Queue(
        client.vhost,
        ADDRESS_PREFIX + broker.names.token(),
        auto_delete=True,
        owner=client,
        user=client.user,
        now_ms=broker.now_ms,
    )
    # If there are too many consumers, there is no queue either.
    check_consumer(broker, channel, queue)
    broker.commands_changed += 1
    client.vhost.add_reply_queue(queue)
    channel.reply_queue = queue
    add_consumer(broker, channel, queue, tag, no_ack=True)


def declare(vhost: "Vhost", name: str) -> QueueDeclareOk:
    """Declaring an address only checks whether it still has a consumer."""
    if name != PSEUDO_QUEUE and name not in vhost.reply_queues:
        raise not_found(f"no queue '{name}' in vhost '{vhost.name}'")
    return QueueDeclareOk(name, 0, 1)


def addressed(channel: "Channel", message: kernel.Message) -> kernel.Message:
    """A request with the channel's address in place of the pseudo-queue."""
    header = message.header
    spans = spans_of(header)
    if reply_to_of(header, spans) != PSEUDO_QUEUE.encode():
        return message
    if channel.reply_queue is None:
        raise precondition_failed("fast reply consumer does not exist")
    changed = with_reply_to(header, spans, channel.reply_queue.name.encode())
    return kernel.Message(message.routing, changed, message.body)

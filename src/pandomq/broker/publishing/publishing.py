"""A publish that has no plan is checked and routed here, and gets a plan for the next one like it.

The kernel calls this for the first message of a route, for messages with special properties, and in transactions.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.administration import access
from pandomq.broker.administration.rights import BASIC_PUBLISH, EXCHANGE
from pandomq.broker.administration.users import IMPERSONATOR
from pandomq.broker.exchanges.message_headers import MessageHeaders
from pandomq.broker.publishing import delayed
from pandomq.broker.publishing.content_header import expiration_of, spans_of, with_expiration
from pandomq.broker.publishing.copies import routing_keys_of
from pandomq.broker.publishing.reply_to import addressed
from pandomq.broker.queues.outlets import Outlet, apart, versions_of
from pandomq.broker.queues.queue import Queue
from pandomq.errors import access_refused, not_implemented, precondition_failed, syntax_error
from pandomq.limits import EXPIRATION_MS_MAX
from pandomq.properties import read_headers, read_property

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.publishing.deduplication import Label
    from pandomq.broker.vhost import Vhost


def checked(
    broker: "Broker", channel: "Channel", message: kernel.Message, flags: int
) -> "tuple[Exchange, kernel.Message, list[str] | None]":
    """The exchange, the message as it may be routed, and its routing keys if there are more than its own. Raises
    ChannelFault or ConnectionFault."""
    if flags & kernel.IMMEDIATE and channel.client.origin is None:
        raise not_implemented("immediate=true")
    if flags & kernel.OVERSIZED:
        size_max = broker.limits.message_bytes_max
        raise precondition_failed(f"message size {message.body_size} is larger than configured max size {size_max}")
    client = channel.client
    vhost = client.vhost
    access.demand(client, BASIC_PUBLISH, EXCHANGE, message.exchange)
    exchange = vhost.exchange(message.exchange)
    if exchange.internal:
        raise access_refused(f"cannot publish to internal exchange '{exchange.name}' in vhost '{vhost.name}'")
    special = message.special
    routing_keys = None
    if special:
        message = _checked(channel, message)
        if special & kernel.SPECIAL_COPIES:
            routing_keys = routing_keys_of(message, read_headers(message.header))
    if client.access.topics:
        keys = (message.routing_key,) if routing_keys is None else routing_keys
        access.demand_topic(client, BASIC_PUBLISH, exchange, keys)
    return exchange, message, routing_keys


def publish(broker: "Broker", channel: "Channel", message: kernel.Message, flags: int) -> None:
    """Raises ChannelFault or ConnectionFault."""
    producer, number = message.producer, message.number
    client = channel.client
    suspect = bool(producer) and number <= channel.kernel.repeats_through
    if suspect and flags & kernel.CONFIRMED_BEFORE and client.origin is not None:
        # The publish was counted, which is all that its sender needs.
        return
    exchange, message, routing_keys = checked(broker, channel, message, flags)
    vhost = client.vhost
    repeated = suspect and channel.numbering is not None and number <= channel.numbering.known
    label = None
    if message.special & kernel.SPECIAL_PRODUCER and not repeated:
        if channel.transaction is not None:
            broker.deduplication.check(channel, message)
        else:
            label = broker.deduplication.admit(channel, message)
            if label is None:
                return
    if channel.transaction is not None and exchange.name == "":
        # The commit determines whether such queues exist.
        names = (message.routing_key,) if routing_keys is None else tuple(dict.fromkeys(routing_keys))
        channel.transaction.publish(message, names, flags)
        return
    # From another broker's client the flag means that the broker cannot know which of its own queues are to get the
    # message.
    undecided = bool(flags & kernel.IMMEDIATE)
    without = None if undecided else vhost.outlet_to(client.origin)
    plan = vhost.router.plan(exchange, message.routing_key, without) if routing_keys is None else None
    if plan is not None:
        queues = plan.queues
        if not message.special & ~kernel.SPECIAL_PRODUCER and not undecided:
            client.session.routes.put(message.routing, plan)
    else:
        queues = route(vhost, exchange, message, routing_keys, without)
    if channel.transaction is not None:
        channel.transaction.publish(message, [_target(queue) for queue in queues], flags)
        return
    if repeated and queues:
        queues = _of_repeated(broker, channel, queues)
        if not queues:
            return
    before = 0 if label is None else _taken(queues)
    accepted = True
    for version, places in versions_of(message, queues, client.user):
        version.producer, version.number, version.suspect = producer, number, suspect
        accepted = enqueue(broker, channel.kernel, vhost, version, places, flags & kernel.MANDATORY) and accepted
    if label is not None:
        _settle(broker, label, queues, flags, before, accepted=accepted)


def publish_numbered(broker: "Broker", channel: "Channel", message: kernel.Message, flags: int) -> bool:
    """Publishes a message whose only special property is the publisher's number, if there is a plan: its checks still
    hold. False if there is none, or other brokers are to get the message. Raises ChannelFault."""
    plan = channel.client.session.routes.find(message.routing)
    if plan is None or any(isinstance(queue.owner, Outlet) for queue in plan.queues):
        return False
    label = broker.deduplication.admit(channel, message)
    if label is not None:
        queues = plan.queues
        before = _taken(queues)
        accepted = broker.engine.enqueue(channel.kernel, message, queues, flags, broker.now_ms)
        _settle(broker, label, queues, flags, before, accepted=accepted)
    return True


def _settle(
    broker: "Broker", label: "Label", queues: Sequence[kernel.Queue], flags: int, before: int, *, accepted: bool
) -> None:
    if not queues and flags & kernel.MANDATORY:
        broker.deduplication.settle(label, accepted=False, in_part=False)
    else:
        broker.deduplication.settle(label, accepted=accepted, in_part=not accepted and _taken(queues) > before)


def _taken(queues: Sequence[kernel.Queue]) -> int:
    """How many messages they have taken, if it matters which of them take one."""
    return sum(queue.published for queue in queues) if len(queues) > 1 else 0


def _of_repeated(broker: "Broker", channel: "Channel", queues: Sequence[kernel.Queue]) -> list[kernel.Queue]:
    """The queues among these for a publish that had its effect before."""
    here, outlets = apart(queues)
    if any(isinstance(queue.owner, Queue) and queue.owner.settings.refuses for queue in here):
        # One of them may have refused it then. Refusing it once more is better than confirming a message that is
        # nowhere.
        broker.engine.refuse(channel.kernel)
    return outlets


def _target(queue: kernel.Queue) -> "str | delayed.DelayedMessages":
    owner: Queue | delayed.DelayedMessages = queue.owner
    return owner if isinstance(owner, delayed.DelayedMessages) else owner.name


def enqueue(
    broker: "Broker",
    channel: kernel.Channel | None,
    vhost: "Vhost",
    message: kernel.Message,
    queues: Sequence[kernel.Queue],
    flags: int = 0,
) -> bool:
    """Enqueues the message. False if a queue refused it."""
    for queue in queues:
        if isinstance(queue.owner, delayed.DelayedMessages):
            return _delay(broker, channel, vhost, message, queues, flags)
    return broker.engine.enqueue(channel, message, queues, flags, broker.now_ms)


def _delay(
    broker: "Broker",
    channel: kernel.Channel | None,
    vhost: "Vhost",
    message: kernel.Message,
    queues: Sequence[kernel.Queue],
    flags: int,
) -> bool:
    owners = [queue.owner for queue in queues]
    accepted = delayed.enqueue(broker.engine, channel, message, owners, flags, broker.now_ms)
    for owner in owners:
        if isinstance(owner, delayed.DelayedMessages):
            broker.timers.watch_delayed(vhost, owner)
    return accepted


def route(
    vhost: "Vhost",
    exchange: "Exchange",
    message: kernel.Message,
    routing_keys: Sequence[str] | None = None,
    without: kernel.Queue | None = None,
) -> list[kernel.Queue]:
    """The destinations of one message; `routing_keys` is given if there are more than its own."""
    keys = (message.routing_key,) if routing_keys is None else routing_keys
    found = [destination.kernel for destination in vhost.router.route(exchange, keys, MessageHeaders(message))]
    return found if without is None else [queue for queue in found if queue is not without]


def _checked(channel: "Channel", message: kernel.Message) -> kernel.Message:
    """The message as it may be routed; its special properties were checked."""
    special = message.special
    if special & kernel.SPECIAL_MALFORMED:
        raise syntax_error("the properties of the message are malformed")
    if special & kernel.SPECIAL_REPLY_TO:
        message = addressed(channel, message)
    if special & kernel.SPECIAL_EXPIRATION:
        message = _with_plain_expiration(message)
    if special & kernel.SPECIAL_USER_ID:
        user = read_property(message.header, "user_id")
        if user != channel.client.user and not _may_impersonate(channel.client):
            raise precondition_failed(
                f"user_id property set to '{user}' but authenticated user was '{channel.client.user}'"
            )
    return message


def _may_impersonate(client: "Client") -> bool:
    user = client.broker.state.users.get(client.user)
    return user is not None and IMPERSONATOR in user.tags


def _with_plain_expiration(message: kernel.Message) -> kernel.Message:
    header = message.header
    spans = spans_of(header)
    text = expiration_of(header, spans).decode("utf-8", "replace")
    # RabbitMQ reads as many digits as there are, and then checks the rest.
    sign, unsigned = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    digits = unsigned[: len(unsigned) - len(unsigned.lstrip("0123456789"))]
    left = unsigned[len(digits) :]
    if not digits:
        wrong = "no_integer"
    elif left:
        wrong = f'{{leftover_string,"{left}"}}'
    elif sign == "-" and int(digits):
        wrong = f"{{value_negative,-{int(digits)}}}"
    elif int(digits) > EXPIRATION_MS_MAX:
        wrong = f"{{value_too_large,{int(digits)}}}"
    else:
        plain = str(int(digits)).encode()
        return kernel.Message(message.routing, with_expiration(header, spans, plain), message.body)
    raise precondition_failed(f"invalid expiration '{text}': {wrong}")

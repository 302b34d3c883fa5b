"""Frozen copies for outside readers: queues, exchanges and bindings."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pandomq.broker.exchanges.binding import DestinationKind
from pandomq.broker.leases.lease import LeaseView
from pandomq.broker.queues.levels import level_of
from pandomq.broker.queues.outlets import Outlet
from pandomq.fieldtable import FieldTable

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.exchanges.binding import Binding
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.streams.stream import Stream


_NO_DEFINITION: Final[Mapping[str, Any]] = {}


class StreamView(msgspec.Struct, frozen=True):
    first_offset: int
    """The offset of the oldest message; the next one's if there is none."""
    committed_end: int
    """The offset after the last message."""
    first_time_us: int
    last_time_us: int
    segments: int
    open_bytes: int
    """The bytes of it that are always in memory."""
    stored_offsets: Mapping[str, int]


class QueueView(msgspec.Struct, frozen=True):
    vhost: str
    name: str
    type: str
    durable: bool
    auto_delete: bool
    exclusive: bool
    arguments: FieldTable
    policy: str | None
    operator_policy: str | None
    effective_policy_definition: Mapping[str, Any]
    level: str
    """The level of persistent messages in it."""
    transient_level: str
    """The level of the others."""
    user: str
    owner: str | None
    """The peer an exclusive queue belongs to."""
    ready: int
    ready_bytes: int
    unacked: int
    consumers: int
    published: int
    delivered: int
    redelivered: int
    acked: int
    dropped: int
    stream: StreamView | None = None
    leases: tuple[LeaseView, ...] = ()


class ExchangeView(msgspec.Struct, frozen=True):
    vhost: str
    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: FieldTable
    policy: str | None


class BindingView(msgspec.Struct, frozen=True):
    vhost: str
    source: str
    destination: str
    destination_type: str
    routing_key: str
    arguments: FieldTable
    properties_key: str


def queues(broker: "Broker") -> Iterator[QueueView]:
    for vhost in broker.state.vhosts.values():
        for queue in vhost.listed_queues():
            yield queue_view(broker, queue)


def queue_view(broker: "Broker", queue: "Queue") -> QueueView:
    place, effect, replicated, is_alone = queue.kernel, queue.policy, broker.has_copies, not broker.replicated
    leases = broker.leases.of_queue(queue)
    return QueueView(
        vhost=queue.vhost.name,
        name=queue.name,
        type=queue.settings.type,
        durable=queue.durable,
        auto_delete=queue.auto_delete,
        exclusive=queue.owner is not None,
        arguments=dict(queue.arguments),
        policy=None if effect is None else effect.policy_name,
        operator_policy=None if effect is None else effect.operator_name,
        effective_policy_definition=_NO_DEFINITION if effect is None else effect.definition,
        level=level_of(queue, persistent=True, is_alone=is_alone, replicated=replicated),
        transient_level=level_of(queue, persistent=False, is_alone=is_alone, replicated=replicated),
        user=queue.user,
        owner=None if queue.owner is None else queue.owner.peer,
        ready=queue.message_count,
        ready_bytes=queue.message_bytes,
        unacked=place.unacked_count + sum(lease.end_offset - lease.first_offset for lease in leases),
        consumers=place.consumer_count,
        published=place.published,
        delivered=place.delivered,
        redelivered=place.redelivered,
        acked=place.acked + broker.leases.acked_count(queue),
        dropped=place.dropped,
        stream=None if queue.stream is None else stream_view(queue.stream),
        leases=tuple(leases),
    )


def stream_view(stream: "Stream") -> StreamView:
    return StreamView(
        stream.first_offset,
        stream.committed_end,
        stream.first_time_us,
        stream.last_time_us,
        stream.segment_count,
        stream.open_chunk.size_bytes if stream.open_chunk.count else 0,
        stream.stored_offsets,
    )


def exchanges(broker: "Broker") -> Iterator[ExchangeView]:
    for vhost in broker.state.vhosts.values():
        for exchange in vhost.router.exchanges.values():
            yield exchange_view(vhost.name, exchange)


def exchange_view(vhost: str, exchange: "Exchange") -> ExchangeView:
    return ExchangeView(
        vhost=vhost,
        name=exchange.name,
        type=exchange.type_name,
        durable=exchange.durable,
        auto_delete=exchange.auto_delete,
        internal=exchange.internal,
        arguments=dict(exchange.arguments),
        policy=None if exchange.policy is None else exchange.policy.policy_name,
    )


def bindings(broker: "Broker") -> Iterator[BindingView]:
    """Each queue's implicit binding from the default exchange comes first, as RabbitMQ lists them."""
    for vhost in broker.state.vhosts.values():
        for queue in vhost.listed_queues():
            yield BindingView(vhost.name, "", queue.name, DestinationKind.QUEUE.value, queue.name, {}, queue.name)
        for exchange in vhost.router.exchanges.values():
            for binding in listed_bindings(exchange):
                yield binding_view(vhost.name, binding)


def listed_bindings(exchange: "Exchange") -> "list[Binding]":
    """The bindings without those that represent bindings of private queues on other brokers."""
    return [binding for binding in exchange.bindings() if not isinstance(binding.destination, Outlet)]


def binding_view(vhost: str, binding: "Binding") -> BindingView:
    return BindingView(
        vhost=vhost,
        source=binding.source,
        destination=binding.destination.name,
        destination_type=binding.kind.value,
        routing_key=binding.routing_key,
        arguments=dict(binding.arguments),
        properties_key=binding.properties_key,
    )

"""Frozen copies of connections, channels and consumers, for outside readers; and the broker's counters."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from pandomq import kernel
from pandomq.broker.queues.consumers import ConsumerOptions
from pandomq.fieldtable import FieldTable

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.broker.queues.queue import Queue


class ConnectionView(msgspec.Struct, frozen=True):
    number: int
    peer: str
    user: str
    vhost: str
    origin: str | None
    """The broker that it is a client of, if that is another one."""
    channels: int
    frame_max: int
    channel_max: int
    connected_ms: int
    client_properties: FieldTable
    pending_bytes: int


class ChannelView(msgspec.Struct, frozen=True):
    connection: int
    number: int
    user: str
    vhost: str
    confirms: bool
    transactional: bool
    consumers: int
    prefetch_count: int
    global_prefetch_count: int
    unacked: int
    unconfirmed: int
    uncommitted: int
    acks_uncommitted: int


class ConsumerView(msgspec.Struct, frozen=True):
    connection: int
    channel: int
    vhost: str
    queue: str
    tag: str
    no_ack: bool
    exclusive: bool
    active: bool
    prefetch_count: int
    priority: int
    arguments: FieldTable
    unacked: int
    delivered: int


class CountersView(msgspec.Struct, frozen=True):
    """Since the broker started; the last six are current values."""

    published: int
    unroutable: int
    delivered: int
    redelivered: int
    acked: int
    confirmed: int
    held_messages: int
    held_bytes: int
    connections: int
    channels: int
    queues: int
    producers: int
    """Channels of other brokers' clients whose last number the log knows."""


def connections(broker: "Broker") -> Iterator[ConnectionView]:
    return map(connection_view, list(broker.clients))


def connection_view(client: "Client") -> ConnectionView:
    return ConnectionView(
        number=client.number,
        peer=client.peer,
        user=client.user,
        vhost=client.vhost.name,
        origin=client.origin,
        channels=len(client.channels),
        frame_max=client.session.frame_max,
        channel_max=client.channel_max,
        connected_ms=client.connected_ms,
        client_properties=client.properties,
        pending_bytes=client.session.pending_bytes,
    )


def channels(broker: "Broker") -> Iterator[ChannelView]:
    for client in list(broker.clients):
        yield from map(channel_view, client.channels.values())


def channel_view(channel: "Channel") -> ChannelView:
    inner, transaction = channel.kernel, channel.transaction
    return ChannelView(
        connection=channel.client.number,
        number=channel.number,
        user=channel.client.user,
        vhost=channel.client.vhost.name,
        confirms=inner.mode == kernel.CONFIRM,
        transactional=transaction is not None,
        consumers=len(channel.consumers),
        prefetch_count=channel.prefetch_count,
        global_prefetch_count=inner.prefetch_max,
        unacked=inner.unacked_count,
        unconfirmed=inner.unconfirmed_count,
        uncommitted=0 if transaction is None else transaction.publish_count,
        acks_uncommitted=0 if transaction is None else transaction.settled_count,
    )


def consumers(broker: "Broker") -> Iterator[ConsumerView]:
    for client in list(broker.clients):
        for channel in client.channels.values():
            yield from map(consumer_view, channel.consumers.values())


def consumer_view(consumer: kernel.Consumer) -> ConsumerView:
    channel: Channel = consumer.channel.owner
    queue: Queue = consumer.queue.owner
    options: ConsumerOptions = consumer.owner
    return ConsumerView(
        connection=channel.client.number,
        channel=channel.number,
        vhost=queue.vhost.name,
        queue=queue.name,
        tag=consumer.tag.decode(),
        no_ack=consumer.no_ack,
        exclusive=options.exclusive,
        active=consumer.active,
        prefetch_count=consumer.prefetch_max,
        priority=consumer.priority,
        arguments=dict(options.arguments),
        unacked=consumer.unacked_count,
        delivered=consumer.delivered,
    )


def counters(broker: "Broker") -> CountersView:
    engine = broker.engine
    return CountersView(
        published=engine.published,
        unroutable=engine.unroutable,
        delivered=engine.delivered,
        redelivered=engine.redelivered,
        acked=engine.acked,
        confirmed=engine.confirmed,
        held_messages=engine.held_messages,
        held_bytes=engine.held_bytes,
        connections=len(broker.clients),
        channels=sum(len(client.channels) for client in broker.clients),
        queues=sum(vhost.queue_count for vhost in broker.state.vhosts.values()),
        producers=len(broker.state.producers),
    )

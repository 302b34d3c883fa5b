"""Connections, channels and consumers in RabbitMQ's shape."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from pandomq.admin.field_json import json_table, json_text
from pandomq.admin.listings.rate import Rate, Rates
from pandomq.node.views.records import LinkChannelView, LinkConsumerView, LinkView


class ConnectionDetails(msgspec.Struct, frozen=True, gc=False):
    name: str
    peer_host: str
    peer_port: int


class ConnectionRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    user: str
    user_who_performed_action: str
    vhost: str
    node: str
    type: str
    protocol: str
    state: str
    host: str
    port: int
    peer_host: str
    peer_port: int
    ssl: bool
    auth_mechanism: str
    channels: int
    channel_max: int
    frame_max: int
    timeout: int
    connected_at: int
    client_properties: dict[str, Any]
    recv_oct: int
    recv_oct_details: Rate
    recv_cnt: int
    send_oct: int
    send_oct_details: Rate
    send_cnt: int
    send_pend: int
    ssl_protocol: str | None = None
    ssl_key_exchange: str | None = None
    ssl_cipher: str | None = None
    ssl_hash: str | None = None
    peer_cert_subject: str | None = None
    peer_cert_issuer: str | None = None
    peer_cert_validity: str | None = None
    user_provided_name: str | UnsetType = UNSET
    """The client's own name for the connection, if it has one."""


class ChannelRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    number: int
    user: str
    user_who_performed_action: str
    vhost: str
    node: str
    state: str
    connection_details: ConnectionDetails
    confirm: bool
    transactional: bool
    consumer_count: int
    prefetch_count: int
    global_prefetch_count: int
    messages_unacknowledged: int
    messages_unconfirmed: int
    messages_uncommitted: int
    acks_uncommitted: int
    pending_raft_commands: int


class ChannelDetailRow(ChannelRow, frozen=True, kw_only=True):
    consumer_details: list[ConsumerRow]
    deliveries: list[Any]
    publishes: list[Any]


class ChannelDetails(msgspec.Struct, frozen=True, gc=False):
    name: str
    connection_name: str
    number: int
    node: str
    peer_host: str
    peer_port: int
    user: str


class QueueReference(msgspec.Struct, frozen=True, gc=False):
    name: str
    vhost: str


class ConsumerRow(msgspec.Struct, frozen=True, kw_only=True):
    consumer_tag: str
    queue: QueueReference
    channel_details: ChannelDetails
    ack_required: bool
    active: bool
    activity_status: str
    exclusive: bool
    prefetch_count: int
    arguments: dict[str, Any]


def connection_key(view: LinkView) -> tuple[str | int, ...]:
    return (view.name,)


def connection_counters(view: LinkView) -> tuple[int, ...]:
    return view.received_bytes, view.sent_bytes


def connection_row(view: LinkView, rates: Rates, node: str) -> ConnectionRow:
    received, sent = rates or (0.0, 0.0)
    properties = json_table(view.client_properties)
    given_name = properties.get("connection_name")
    return ConnectionRow(
        name=view.name,
        user=view.user,
        user_who_performed_action=view.user,
        vhost=view.vhost,
        node=node,
        type="network",
        protocol="AMQP 0-9-1",
        state=view.state,
        host=view.local[0],
        port=view.local[1],
        peer_host=view.peer[0],
        peer_port=view.peer[1],
        ssl=view.tls,
        auth_mechanism=view.mechanism,
        channels=view.channels,
        channel_max=view.channel_max,
        frame_max=view.frame_max,
        timeout=view.heartbeat_s,
        connected_at=view.connected_ms,
        client_properties=properties,
        recv_oct=view.received_bytes,
        recv_oct_details=Rate(received),
        recv_cnt=view.received_count,
        send_oct=view.sent_bytes,
        send_oct_details=Rate(sent),
        send_cnt=view.sent_count,
        send_pend=view.pending_bytes,
        user_provided_name=given_name if isinstance(given_name, str) else UNSET,
    )


def connection_details(name: str) -> ConnectionDetails:
    """For a connection of which only the name is known."""
    host, _, port = name.partition(" -> ")[0].rpartition(":")
    return ConnectionDetails(name, host.removeprefix("[").removesuffix("]"), int(port) if port.isdigit() else 0)


def channel_key(view: LinkChannelView) -> tuple[str | int, ...]:
    return view.connection, view.channel.number


def channel_name(connection: str, number: int) -> str:
    return f"{connection} ({number})"


def channel_row(view: LinkChannelView, _rates: Rates, node: str) -> ChannelRow:
    return ChannelRow(**_channel_fields(view, node))


def channel_detail_row(view: LinkChannelView, node: str, consumers: list[ConsumerRow]) -> ChannelDetailRow:
    return ChannelDetailRow(**_channel_fields(view, node), consumer_details=consumers, deliveries=[], publishes=[])


def _channel_fields(view: LinkChannelView, node: str) -> dict[str, Any]:
    channel = view.channel
    return {
        "name": channel_name(view.connection, channel.number),
        "number": channel.number,
        "user": channel.user,
        "user_who_performed_action": channel.user,
        "vhost": channel.vhost,
        "node": node,
        "state": "running",
        "connection_details": ConnectionDetails(view.connection, *view.peer),
        "confirm": channel.confirms,
        "transactional": channel.transactional,
        "consumer_count": channel.consumers,
        "prefetch_count": channel.prefetch_count,
        "global_prefetch_count": channel.global_prefetch_count,
        "messages_unacknowledged": channel.unacked,
        "messages_unconfirmed": channel.unconfirmed,
        "messages_uncommitted": channel.uncommitted,
        "acks_uncommitted": channel.acks_uncommitted,
        "pending_raft_commands": 0,
    }


def consumer_key(view: LinkConsumerView) -> tuple[str | int, ...]:
    consumer = view.consumer
    return consumer.vhost, consumer.queue, view.connection, consumer.channel, consumer.tag


def consumer_row(view: LinkConsumerView, node: str) -> ConsumerRow:
    consumer = view.consumer
    return ConsumerRow(
        consumer_tag=json_text(consumer.tag),
        queue=QueueReference(consumer.queue, consumer.vhost),
        channel_details=ChannelDetails(
            name=channel_name(view.connection, consumer.channel),
            connection_name=view.connection,
            number=consumer.channel,
            node=node,
            peer_host=view.peer[0],
            peer_port=view.peer[1],
            user=view.user,
        ),
        ack_required=not consumer.no_ack,
        active=consumer.active,
        activity_status="up" if consumer.active else "waiting",
        exclusive=consumer.exclusive,
        prefetch_count=consumer.prefetch_count,
        arguments=json_table(consumer.arguments),
    )

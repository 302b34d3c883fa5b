"""Queues in RabbitMQ's shape.

RabbitMQ's fields about its own internals (reductions, garbage collection, the backing queue) are left out.
`message_bytes` counts the bodies of ready messages; for a stream, those that it keeps. Streams have some more fields,
as in RabbitMQ, and times in milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from pandomq.admin.field_json import json_table
from pandomq.admin.listings.client_rows import ConnectionDetails, ConsumerRow, connection_details, consumer_row
from pandomq.admin.listings.rate import NO_RATE, Rate, Rates
from pandomq.broker.leases.lease import LeaseView
from pandomq.broker.views import QueueView, StreamView
from pandomq.node.views.records import QueueUseView


class QueueStats(msgspec.Struct, frozen=True, gc=False):
    publish: int
    publish_details: Rate
    deliver_get: int
    deliver_get_details: Rate
    deliver: int
    deliver_details: Rate
    redeliver: int
    redeliver_details: Rate
    ack: int
    ack_details: Rate


class LeaseRow(msgspec.Struct, frozen=True):
    """Messages of the queue that are read by offset; RabbitMQ has no such row. They are included in the unacknowledged
    messages."""

    name: str
    stream: str
    messages: int
    first_offset: int
    end_offset: int
    timeout_ms: int
    state: str


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    vhost: str
    type: str
    durable: bool
    auto_delete: bool
    exclusive: bool
    arguments: dict[str, Any]
    node: str
    state: str
    policy: str | None
    operator_policy: str | None
    effective_policy_definition: Mapping[str, Any]
    level: str
    transient_level: str
    consumers: int
    consumer_capacity: float
    consumer_utilisation: float
    memory: int
    messages: int
    messages_details: Rate
    messages_ready: int
    messages_ready_details: Rate
    messages_unacknowledged: int
    messages_unacknowledged_details: Rate
    message_bytes: int
    message_bytes_ready: int
    committed_offset: int | UnsetType = UNSET
    first_offset: int | UnsetType = UNSET
    first_timestamp: int | UnsetType = UNSET
    last_timestamp: int | UnsetType = UNSET
    segments: int | UnsetType = UNSET
    readers: dict[str, int] | UnsetType = UNSET
    stored_offsets: Mapping[str, int] | UnsetType = UNSET
    owner_pid_details: ConnectionDetails | UnsetType = UNSET
    message_stats: QueueStats | UnsetType = UNSET


class QueueDetailRow(QueueRow, frozen=True, kw_only=True):
    """For a single queue."""

    exclusive_consumer_tag: str | None
    single_active_consumer_tag: str | None
    consumer_details: list[ConsumerRow]
    deliveries: list[Any]
    incoming: list[Any]
    user_who_performed_action: str
    leases: list[LeaseRow] | UnsetType = UNSET


MESSAGE_MEMORY_BYTES: Final = 160
"""Memory of a message beside its body."""


def queue_counters(view: QueueView) -> tuple[int, ...]:
    """The counters with rates, in the order in which `queue_row` takes them."""
    return (
        view.published,
        view.delivered,
        view.redelivered,
        view.acked,
        view.ready + view.unacked,
        view.ready,
        view.unacked,
    )


def queue_row(view: QueueView, rates: Rates, node: str) -> QueueRow:
    return QueueRow(**_fields(view, rates, node))


def queue_detail_row(view: QueueView, rates: Rates, node: str, use: QueueUseView) -> QueueDetailRow:
    return QueueDetailRow(
        **_fields(view, rates, node),
        exclusive_consumer_tag=use.exclusive_consumer_tag,
        single_active_consumer_tag=use.single_active_consumer_tag,
        consumer_details=[consumer_row(consumer, node) for consumer in use.consumers],
        deliveries=[],
        incoming=[],
        user_who_performed_action=view.user,
        leases=list(map(_lease_row, view.leases)) or UNSET,
    )


def _lease_row(lease: LeaseView) -> LeaseRow:
    return LeaseRow(
        name=lease.name,
        stream=lease.stream,
        messages=lease.end_offset - lease.first_offset,
        first_offset=lease.first_offset,
        end_offset=lease.end_offset,
        timeout_ms=lease.timeout_ms,
        state="ending" if lease.ending else "running",
    )


def _fields(view: QueueView, rates: Rates, node: str) -> dict[str, Any]:
    details = [Rate(rate) for rate in rates] if rates else [NO_RATE] * 7
    fields: dict[str, Any] = {
        "name": view.name,
        "vhost": view.vhost,
        "type": view.type,
        "durable": view.durable,
        "auto_delete": view.auto_delete,
        "exclusive": view.exclusive,
        "arguments": json_table(view.arguments),
        "node": node,
        "state": "running",
        "policy": view.policy,
        "operator_policy": view.operator_policy,
        "effective_policy_definition": view.effective_policy_definition,
        "level": view.level,
        "transient_level": view.transient_level,
        "consumers": view.consumers,
        "consumer_capacity": 1.0 if view.consumers else 0.0,
        "consumer_utilisation": 1.0 if view.consumers else 0.0,
        "memory": view.ready_bytes + (view.ready + view.unacked) * MESSAGE_MEMORY_BYTES,
        "messages": view.ready + view.unacked,
        "messages_details": details[4],
        "messages_ready": view.ready,
        "messages_ready_details": details[5],
        "messages_unacknowledged": view.unacked,
        "messages_unacknowledged_details": details[6],
        "message_bytes": view.ready_bytes,
        "message_bytes_ready": view.ready_bytes,
    }
    if view.stream is not None:
        fields |= _stream_fields(view, view.stream, node)
    if view.owner is not None:
        fields["owner_pid_details"] = connection_details(view.owner)
    if view.published or view.delivered or view.acked:
        fields["message_stats"] = QueueStats(
            publish=view.published,
            publish_details=details[0],
            deliver_get=view.delivered,
            deliver_get_details=details[1],
            deliver=view.delivered,
            deliver_details=details[1],
            redeliver=view.redelivered,
            redeliver_details=details[2],
            ack=view.acked,
            ack_details=details[3],
        )
    return fields


def _stream_fields(view: QueueView, stream: StreamView, node: str) -> dict[str, Any]:
    """Messages that are read from a stream stay in it, so unacknowledged ones are not added."""
    fields: dict[str, Any] = {
        "messages": view.ready,
        "memory": stream.open_bytes,
        "committed_offset": stream.committed_end - 1,
        "first_offset": stream.first_offset,
        "segments": stream.segments,
        "readers": {node: view.consumers},
        "stored_offsets": stream.stored_offsets,
    }
    if view.ready:
        fields["first_timestamp"] = stream.first_time_us // 1000
        fields["last_timestamp"] = stream.last_time_us // 1000
    return fields

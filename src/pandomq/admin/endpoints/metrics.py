"""Metrics for Prometheus, under RabbitMQ's names where they exist, so that its dashboards and alerts still work.

/metrics contains no names and needs no login; /metrics/per-object names queues and queries, and needs the tag for
monitoring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from pandomq import __version__, kernel
from pandomq.admin import process_facts
from pandomq.admin.endpoints.cluster_metrics import add_cluster, add_passes, add_sync_times
from pandomq.admin.exposition import CONTENT_TYPE, COUNTER, GAUGE, Exposition
from pandomq.node.clients.offers import IMPLEMENTATION, RABBITMQ_VERSION

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.admin.listings.queue_rows import QueueRow
    from pandomq.admin.listings.totals import Sums

_PROTOCOL: Final = {"protocol": "amqp091"}
_UNROUTABLE: Final = "Messages of published staged batches that were not routed to any queue"

_OF_QUEUES: Final[tuple[tuple[str, str, Callable[[Sums], int]], ...]] = (
    ("rabbitmq_queues", "Queues available", lambda sums: sums.queues),
    ("rabbitmq_queue_messages_ready", "Messages ready to be delivered to consumers", lambda sums: sums.ready),
    (
        "rabbitmq_queue_messages_unacked",
        "Messages delivered to consumers but not yet acknowledged",
        lambda sums: sums.unacked,
    ),
    (
        "rabbitmq_queue_messages",
        "Sum of ready and unacknowledged messages - total queue depth",
        lambda sums: sums.ready + sums.unacked,
    ),
    ("rabbitmq_queue_messages_ready_bytes", "Size in bytes of ready messages", lambda sums: sums.ready_bytes),
    ("rabbitmq_queue_consumers", "Consumers on a queue", lambda sums: sums.consumers),
    ("rabbitmq_consumers", "Consumers currently connected", lambda sums: sums.consumers),
    ("rabbitmq_connections", "Connections currently open", lambda sums: sums.connections),
    ("rabbitmq_channels", "Channels currently open", lambda sums: sums.channels),
    ("pandomq_exchanges", "Exchanges", lambda sums: sums.exchanges),
)

_OF_EACH_QUEUE: Final[tuple[tuple[str, str, str, Callable[[QueueRow], int]], ...]] = (
    ("rabbitmq_queue_messages_ready", GAUGE, "Messages ready to be delivered", lambda row: row.messages_ready),
    (
        "rabbitmq_queue_messages_unacked",
        GAUGE,
        "Messages delivered to consumers but not yet acknowledged",
        lambda row: row.messages_unacknowledged,
    ),
    ("rabbitmq_queue_messages", GAUGE, "Sum of ready and unacknowledged messages", lambda row: row.messages),
    ("rabbitmq_queue_messages_ready_bytes", GAUGE, "Size in bytes of ready messages", lambda row: row.message_bytes),
    ("rabbitmq_queue_consumers", GAUGE, "Consumers on a queue", lambda row: row.consumers),
    (
        "rabbitmq_queue_messages_published_total",
        COUNTER,
        "Total number of messages published to queues",
        lambda row: row.message_stats.publish if row.message_stats else 0,
    ),
    (
        "pandomq_queue_messages_delivered_total",
        COUNTER,
        "Total number of messages delivered from a queue",
        lambda row: row.message_stats.deliver if row.message_stats else 0,
    ),
    (
        "pandomq_queue_messages_acknowledged_total",
        COUNTER,
        "Total number of messages of a queue that were acknowledged",
        lambda row: row.message_stats.ack if row.message_stats else 0,
    ),
)


async def metrics(call: HttpCall) -> Response:
    page = Exposition()
    sums = (await call.tables.totals.now()).all()
    _add_identity(page, call)
    _add_counters(page, call)
    for name, text, value in _OF_QUEUES:
        page.add(name, GAUGE, text, value(sums))
    _add_node(page, call)
    _add_data_port(page, call)
    add_cluster(page, call.views.cluster())
    add_sync_times(page, call.views.sync_times())
    add_passes(page, call.views.passes())
    return _answer(page)


async def per_object(call: HttpCall) -> Response:
    page = Exposition()
    entries = await call.tables.queues.entries()
    labels: list[Mapping[str, str]] = [{"vhost": entry.row.vhost, "queue": entry.row.name} for entry in entries]
    for name, kind, text, value in _OF_EACH_QUEUE:
        values = (value(entry.row) for entry in entries)
        await page.add_slices(name, kind, text, zip(labels, values, strict=True))
    by_query = call.views.producers.staged().unroutable_by_query
    samples = [({"vhost": vhost, "query": query}, count) for (vhost, query), count in by_query.items()]
    page.add_all("pandomq_staged_unroutable_total", COUNTER, _UNROUTABLE, samples)
    return _answer(page)


def _answer(page: Exposition) -> Response:
    return Response(page.encode(), headers={"content-type": CONTENT_TYPE})


def _add_identity(page: Exposition, call: HttpCall) -> None:
    cluster = call.views.cluster()
    page.add(
        "rabbitmq_build_info",
        GAUGE,
        "Version info",
        1,
        {"rabbitmq_version": RABBITMQ_VERSION, "product_name": IMPLEMENTATION, "product_version": __version__},
    )
    page.add(
        "rabbitmq_identity_info",
        GAUGE,
        "Node and cluster identity info",
        1,
        {
            "rabbitmq_node": call.services.settings.name,
            "rabbitmq_cluster": call.services.settings.name,
            "rabbitmq_cluster_permanent_id": cluster.cluster,
        },
    )
    page.add("pandomq_kernel_info", GAUGE, "Kernel in use", 1, {"kernel": kernel.KIND})


def _add_counters(page: Exposition, call: HttpCall) -> None:
    counters = call.views.counters()
    for name, text, value in (
        ("received", "Total number of messages received from publishers", counters.published),
        ("confirmed", "Total number of messages confirmed to publishers", counters.confirmed),
        ("delivered", "Total number of messages delivered to consumers", counters.delivered),
        ("redelivered", "Total number of messages redelivered to consumers", counters.redelivered),
        ("acknowledged", "Total number of messages acknowledged by consumers", counters.acked),
    ):
        page.add(f"rabbitmq_global_messages_{name}_total", COUNTER, text, value, _PROTOCOL)
    page.add(
        "pandomq_messages_unroutable_total",
        COUNTER,
        "Total number of unroutable messages, dropped or returned",
        counters.unroutable,
    )
    producers, staged = call.views.producers.summary(), call.views.producers.staged()
    for metric, kind, meaning, amount in (
        ("pandomq_producers", GAUGE, "Producers that are remembered for deduplication", producers.producers),
        ("pandomq_producers_max", GAUGE, "Maximum number of remembered producers", producers.producers_max),
        (
            "pandomq_producer_age_seconds",
            GAUGE,
            "Time for which an idle producer is remembered",
            producers.producer_age_ms / 1000,
        ),
        ("pandomq_producers_forgotten_total", COUNTER, "Producers that were forgotten", producers.forgotten),
        ("pandomq_messages_duplicate_total", COUNTER, "Duplicate publishes that were dropped", producers.duplicates),
        ("pandomq_staged_attempts", GAUGE, "Staged attempts that are not yet published", staged.attempts),
        ("pandomq_staged_bytes", GAUGE, "Bytes of staged attempts that are not yet published", staged.size_bytes),
        ("pandomq_staged_batches_open", GAUGE, "Batches that are being published", staged.batches_open),
        ("pandomq_staged_parts_published_total", COUNTER, "Staged parts that were published", staged.parts_published),
        ("pandomq_staged_unroutable_total", COUNTER, _UNROUTABLE, staged.unroutable),
        (
            "pandomq_messages_fenced_total",
            COUNTER,
            "Publishes that were refused because a newer connection has the producer's name",
            producers.fenced,
        ),
    ):
        page.add(metric, kind, meaning, amount)


def _add_node(page: Exposition, call: HttpCall) -> None:
    node = call.views.node()
    for name, kind, text, value in (
        (
            "rabbitmq_alarms_memory_used_watermark",
            GAUGE,
            "is 1 if memory watermark alarm is in effect",
            node.memory_alarm,
        ),
        (
            "rabbitmq_alarms_free_disk_space_watermark",
            GAUGE,
            "is 1 if free disk space watermark alarm is in effect",
            node.disk_alarm,
        ),
        ("rabbitmq_process_open_fds", GAUGE, "Open file descriptors", process_facts.open_files()),
        ("rabbitmq_process_max_fds", GAUGE, "Open file descriptors limit", process_facts.open_files_max()),
        ("rabbitmq_process_resident_memory_bytes", GAUGE, "Memory used in bytes", process_facts.resident_bytes()),
        ("rabbitmq_resident_memory_limit_bytes", GAUGE, "Memory high watermark in bytes", node.memory_bytes_max),
        ("pandomq_process_cpu_seconds_total", COUNTER, "Processor time used", process_facts.processor_seconds()),
        ("pandomq_uptime_seconds", GAUGE, "Time since the start", node.uptime_ms / 1000),
        ("pandomq_messages_held", GAUGE, "Messages in memory, each counted once", node.held_messages),
        ("pandomq_messages_held_bytes", GAUGE, "Bodies and headers of messages in memory", node.held_bytes),
        ("pandomq_log_index", GAUGE, "Index of the last entry of the log", node.log_index),
        ("pandomq_log_bytes_total", COUNTER, "Bytes appended to the log", node.log_bytes),
    ):
        page.add(name, kind, text, int(value) if isinstance(value, bool) else value)


def _add_data_port(page: Exposition, call: HttpCall) -> None:
    data = call.views.data.summary()
    for name, kind, text, value in (
        ("pandomq_data_connections", GAUGE, "Connections to the data port", data.connections),
        ("pandomq_data_connections_max", GAUGE, "Maximum number of connections to the data port", data.connections_max),
        ("pandomq_data_requests_total", COUNTER, "Requests to the data port", data.requests),
        ("pandomq_data_received_bytes_total", COUNTER, "Bytes received at the data port", data.received_bytes),
        ("pandomq_data_sent_bytes_total", COUNTER, "Bytes sent at the data port", data.sent_bytes),
    ):
        page.add(name, kind, text, value)

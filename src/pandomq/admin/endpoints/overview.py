"""The broker as a whole: overview, whoami, cluster name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pandomq import __version__
from pandomq.admin.responses import Json
from pandomq.node.clients.offers import IMPLEMENTATION, RABBITMQ_VERSION

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.node.views.records import ListenerView

RATES_MODE: Final = "basic"

_EXCHANGE_TYPES: Final = {
    "direct": "AMQP direct exchange, as per the AMQP specification",
    "fanout": "AMQP fanout exchange, as per the AMQP specification",
    "topic": "AMQP topic exchange, as per the AMQP specification",
    "headers": "AMQP headers exchange, as per the AMQP specification",
    "x-consistent-hash": "Consistent Hashing Exchange",
    "x-delayed-message": "Delayed Message Exchange.",
    "x-random": "Random exchange",
}


async def whoami(call: HttpCall) -> Json:
    return call.show({"name": call.identity.name, "tags": list(call.identity.tags)})


async def overview(call: HttpCall) -> Json:
    node = call.views.node()
    totals = (await call.tables.totals.now()).seen_by(
        call.visible_vhosts, None if call.identity.monitors else call.identity.name
    )
    counters = call.views.counters()
    stats = {
        "publish": counters.published,
        "confirm": counters.confirmed,
        "deliver_get": counters.delivered,
        "deliver": counters.delivered,
        "redeliver": counters.redelivered,
        "ack": counters.acked,
        "drop_unroutable": counters.unroutable,
    }
    messages = {
        "messages": totals.ready + totals.unacked,
        "messages_ready": totals.ready,
        "messages_unacknowledged": totals.unacked,
    }
    # Rates for a user with partial access would mix data of several users.
    rates = call.services.meters.rates({**stats, **messages}) if call.visible_vhosts is None else {}
    name = call.services.settings.name
    shown = {
        "management_version": RABBITMQ_VERSION,
        "rates_mode": RATES_MODE,
        "exchange_types": exchange_types(),
        "product_name": IMPLEMENTATION,
        "product_version": __version__,
        "rabbitmq_version": RABBITMQ_VERSION,
        "cluster_name": name,
        "disable_stats": False,
        "enable_queue_totals": False,
        "message_stats": _with_rates(stats, rates) if call.identity.monitors else {},
        "queue_totals": _with_rates(messages, rates),
        "object_totals": {
            "connections": totals.connections,
            "channels": totals.channels,
            "consumers": totals.consumers,
            "exchanges": totals.exchanges,
            "queues": totals.queues,
        },
        "statistics_db_event_queue": 0,
        "node": name,
    }
    if call.identity.monitors:
        shown["listeners"] = [_listener(listener, name) for listener in node.listeners]
        shown["contexts"] = [
            {"node": name, "description": "PandoMQ HTTP", "path": "/", "ip": at.host, "port": str(at.port)}
            for at in node.listeners
            if at.protocol == "http"
        ]
    return call.show(shown)


async def cluster_name(call: HttpCall) -> Json:
    return Json({"name": call.services.settings.name})


async def extensions(_call: HttpCall) -> Json:
    """Plugins of RabbitMQ's web page; there are none."""
    return Json([])


def _with_rates(counters: dict[str, int], rates: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in counters.items():
        shown[name] = value
        shown[f"{name}_details"] = {"rate": rates.get(name, 0.0)}
    return shown


def exchange_types() -> list[dict[str, Any]]:
    return [{"name": name, "description": text, "enabled": True} for name, text in _EXCHANGE_TYPES.items()]


def _listener(listener: ListenerView, node: str) -> dict[str, Any]:
    return {
        "node": node,
        "protocol": listener.protocol,
        "ip_address": listener.host,
        "port": listener.port,
        "socket_opts": {},
    }

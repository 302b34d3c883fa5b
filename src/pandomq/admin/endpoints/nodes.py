"""The brokers of the cluster, in the form of RabbitMQ's nodes: of other brokers only the data that this one has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pandomq.admin import process_facts
from pandomq.admin.endpoints.overview import RATES_MODE, exchange_types
from pandomq.admin.listings.query import select
from pandomq.admin.refusals import not_found
from pandomq.admin.responses import Json

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.node.views.records import MemberView, PeerLinkView


async def list_all(call: HttpCall) -> Json:
    columns = call.query.columns
    return Json([select(node, columns) for node in _nodes(call)])


async def show(call: HttpCall) -> Json:
    for node in _nodes(call):
        if node["name"] == call.path["node"]:
            return call.show(node)
    raise not_found()


def _nodes(call: HttpCall) -> Iterator[dict[str, Any]]:
    view = call.views.cluster()
    for member in view.members:
        if member.name == view.name:
            yield {**_own(call, view.links), **_place(member)}
        else:
            yield {
                "name": member.name,
                "type": "disc",
                "running": member.role != "absent",
                "partitions": [],
                "cluster_links": [_link(link) for link in view.links if link.name == member.name],
                **_place(member),
            }


def _place(member: MemberView) -> dict[str, Any]:
    """Fields that RabbitMQ's nodes do not have."""
    return {"role": member.role, "address": member.address, "in_sync": member.in_sync}


def _link(link: PeerLinkView) -> dict[str, Any]:
    host, _, port = (link.address or link.amqp).rpartition(":")
    return {
        "name": link.name,
        "peer_addr": host.removeprefix("[").removesuffix("]"),
        "peer_port": int(port) if port.isdigit() else 0,
        "state": link.state,
    }


def _own(call: HttpCall, links: Sequence[PeerLinkView]) -> dict[str, Any]:
    view = call.views.node()
    return {
        "name": view.name,
        "type": "disc",
        "running": True,
        "os_pid": str(os.getpid()),
        "uptime": view.uptime_ms,
        "processors": os.cpu_count() or 1,
        "rates_mode": RATES_MODE,
        "mem_used": process_facts.resident_bytes(),
        "mem_limit": view.memory_bytes_max,
        "mem_alarm": view.memory_alarm,
        "disk_free_alarm": view.disk_alarm,
        "fd_used": process_facts.open_files(),
        "fd_total": process_facts.open_files_max(),
        "sockets_used": view.connections,
        "sockets_total": view.connections_max,
        "partitions": [],
        "cluster_links": [_link(link) for link in links if link.linked],
        "exchange_types": exchange_types(),
        "auth_mechanisms": [
            {"name": name, "description": text, "enabled": name in call.services.settings.mechanisms}
            for name, text in (
                ("PLAIN", "SASL PLAIN authentication mechanism"),
                ("AMQPLAIN", "QPid AMQPLAIN mechanism"),
                ("EXTERNAL", "SASL EXTERNAL authentication mechanism"),
            )
        ],
        "enabled_plugins": [],
        "config_files": [],
        "log_files": [],
    }

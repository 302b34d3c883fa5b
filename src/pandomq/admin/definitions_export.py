"""All declarations, as one JSON document in RabbitMQ's form.

Exclusive queues are left out, since they end with their connections; so are the exchanges and bindings that every vhost
has initially. Operators' policies and limits of vhosts are among the parameters, where RabbitMQ keeps them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from pandomq import __version__
from pandomq.admin import limits
from pandomq.admin.endpoints.policies import policy_row
from pandomq.admin.endpoints.users import user_row
from pandomq.admin.field_json import json_table, json_text
from pandomq.admin.listings.exchange_rows import exchange_fields
from pandomq.node.clients.offers import IMPLEMENTATION, RABBITMQ_VERSION

if TYPE_CHECKING:
    from pandomq.node.views.views import Views

Item = dict[str, Any]

OPERATOR_POLICY = "operator_policy"
VHOST_LIMITS = "vhost-limits"


async def export_definitions(views: Views, vhost: str | None) -> bytes:
    """For one vhost, without its name and without users; or for the whole broker."""
    sections: dict[str, Iterable[Item]] = {}
    if vhost is None:
        sections["users"] = map(user_row, views.users())
        sections["vhosts"] = (
            {"name": view.name, "description": view.description, "tags": list(view.tags)} for view in views.vhosts()
        )
        sections["permissions"] = map(msgspec.structs.asdict, views.permissions())
        sections["topic_permissions"] = map(msgspec.structs.asdict, views.topic_permissions())
    sections["parameters"] = _parameters(views)
    if vhost is None:
        sections["global_parameters"] = ()
    sections["policies"] = map(policy_row, views.policies(operator=False))
    sections["queues"] = _queues(views, vhost)
    sections["exchanges"] = _exchanges(views, vhost)
    sections["bindings"] = _bindings(views, vhost)
    parts = [_head()]
    for name, items in sections.items():
        concerned = items if vhost is None else (_within(item) for item in items if item["vhost"] == vhost)
        parts.append(b'"' + name.encode() + b'":[' + b",".join(await _encoded(concerned)) + b"]")
    return b"{" + b",".join(parts) + b"}"


def _head() -> bytes:
    versions = {
        "rabbit_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": IMPLEMENTATION,
        "product_version": __version__,
    }
    return msgspec.json.encode(versions)[1:-1]


async def _encoded(items: Iterable[Item]) -> list[bytes]:
    encoded: list[bytes] = []
    for item in items:
        encoded.append(msgspec.json.encode(item))
        if len(encoded) % limits.SLICE_ROWS == 0:
            await asyncio.sleep(0)
    return encoded


def _within(item: Item) -> Item:
    return {name: value for name, value in item.items() if name != "vhost"}


def _parameters(views: Views) -> Iterator[Item]:
    for vhost in views.vhosts():
        if vhost.limits:
            yield {"vhost": vhost.name, "component": VHOST_LIMITS, "name": "limits", "value": dict(vhost.limits)}
    for policy in views.policies(operator=True):
        row = policy_row(policy)
        value = {name: row[name] for name in ("pattern", "apply-to", "definition", "priority")}
        yield {"vhost": policy.vhost, "component": OPERATOR_POLICY, "name": policy.name, "value": value}


def _queues(views: Views, vhost: str | None) -> Iterator[Item]:
    for view in views.queues(vhost):
        if not view.exclusive:
            yield {
                "name": view.name,
                "vhost": view.vhost,
                "durable": view.durable,
                "auto_delete": view.auto_delete,
                "arguments": json_table(view.arguments),
            }


def _exchanges(views: Views, vhost: str | None) -> Iterator[Item]:
    for view in views.exchanges(vhost):
        if view.name and not view.name.startswith("amq."):
            yield exchange_fields(view)


def _bindings(views: Views, vhost: str | None) -> Iterator[Item]:
    exclusive = {(view.vhost, view.name) for view in views.queues(vhost) if view.exclusive}
    for view in views.bindings(vhost):
        if view.source and (view.destination_type == "exchange" or (view.vhost, view.destination) not in exclusive):
            yield {
                "source": view.source,
                "vhost": view.vhost,
                "destination": view.destination,
                "destination_type": view.destination_type,
                "routing_key": json_text(view.routing_key),
                "arguments": json_table(view.arguments),
            }

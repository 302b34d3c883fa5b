"""Exchanges and bindings in RabbitMQ's shape."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pandomq.admin.field_json import json_table, json_text
from pandomq.broker.views import BindingView, ExchangeView

DEFAULT_ALIAS: Final = "amq.default"
"""The name of the default exchange in paths; its own name is empty."""


class ExchangeRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    vhost: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: dict[str, Any]
    policy: str | None


class ExchangeDetailRow(ExchangeRow, frozen=True, kw_only=True):
    incoming: list[Any]
    outgoing: list[Any]


class BindingRow(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    vhost: str
    destination: str
    destination_type: str
    routing_key: str
    arguments: dict[str, Any]
    properties_key: str


def exchange_of(path_name: str) -> str:
    return "" if path_name == DEFAULT_ALIAS else path_name


def exchange_key(view: ExchangeView) -> tuple[str | int, ...]:
    return view.vhost, view.name


def exchange_row(view: ExchangeView) -> ExchangeRow:
    return ExchangeRow(**exchange_fields(view), policy=view.policy)


def exchange_detail_row(view: ExchangeView) -> ExchangeDetailRow:
    return ExchangeDetailRow(**exchange_fields(view), policy=view.policy, incoming=[], outgoing=[])


def exchange_fields(view: ExchangeView) -> dict[str, Any]:
    return {
        "name": view.name,
        "vhost": view.vhost,
        "type": view.type,
        "durable": view.durable,
        "auto_delete": view.auto_delete,
        "internal": view.internal,
        "arguments": json_table(view.arguments),
    }


def binding_key(view: BindingView) -> tuple[str | int, ...]:
    return view.vhost, view.source, view.destination_type, view.destination, view.properties_key


def binding_row(view: BindingView) -> BindingRow:
    return BindingRow(
        source=view.source,
        vhost=view.vhost,
        destination=view.destination,
        destination_type=view.destination_type,
        routing_key=json_text(view.routing_key),
        arguments=json_table(view.arguments),
        properties_key=view.properties_key,
    )

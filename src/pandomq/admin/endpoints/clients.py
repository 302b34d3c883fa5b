"""Connections, channels and consumers: list, show; and closing a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.admin.listings.client_rows import (
    channel_detail_row,
    channel_name,
    channel_row,
    connection_row,
    consumer_row,
)
from pandomq.admin.listings.scopes import check_owner, of_clients, of_consumers
from pandomq.admin.listings.tables import list_rows
from pandomq.admin.refusals import not_found
from pandomq.admin.responses import Encoded, Json, Nothing, deleted, listed

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.node.views.records import LinkView

DEFAULT_REASON: Final = "Closed via management plugin"


async def list_connections(call: HttpCall) -> Encoded:
    return await listed(call.request, await list_rows(call.tables.connections, of_clients(call), call.query))


async def list_channels(call: HttpCall) -> Encoded:
    return await listed(call.request, await list_rows(call.tables.channels, of_clients(call), call.query))


async def list_consumers(call: HttpCall) -> Encoded:
    vhost = call.path.get("vhost")
    if vhost is not None and not call.views.has_vhost(vhost):
        raise not_found()
    return await listed(call.request, await list_rows(call.tables.consumers, of_consumers(call), call.query.unpaged()))


async def show_connection(call: HttpCall) -> Json:
    view = _found(call)
    rates = call.tables.connections.rates_of((view.name,))
    return call.show(connection_row(view, rates, call.services.settings.name))


async def close_connection(call: HttpCall) -> Nothing:
    view = _found(call, to_change=True)
    _close(call, view.name)
    return deleted()


async def list_connections_of_user(call: HttpCall) -> Encoded:
    user = _checked_user(call)
    views = (view for view in call.views.connections() if view.user == user)
    return await call.show_list(
        views,
        lambda view: {
            "name": view.name,
            "node": call.services.settings.name,
            "user": view.user,
            "vhost": view.vhost,
        },
    )


async def close_connections_of_user(call: HttpCall) -> Nothing:
    user = _checked_user(call, to_change=True)
    for view in list(call.views.connections()):
        if view.user == user:
            _close(call, view.name)
    return deleted()


async def list_channels_of_connection(call: HttpCall) -> Encoded:
    view = _found(call)
    node = call.services.settings.name
    return await call.show_list(call.views.channels(view.name), lambda channel: channel_row(channel, (), node))


async def show_channel(call: HttpCall) -> Json:
    connection, _, _number = call.path["channel"].removesuffix(")").rpartition(" (")
    view = next(
        (
            view
            for view in call.views.channels(connection)
            if channel_name(connection, view.channel.number) == call.path["channel"]
        ),
        None,
    )
    if view is None:
        raise not_found()
    check_owner(call, view.channel.user)
    node = call.services.settings.name
    consumers = [
        consumer_row(consumer, node)
        for consumer in call.views.consumers(connection)
        if consumer.consumer.channel == view.channel.number
    ]
    return call.show(channel_detail_row(view, node, consumers))


def _found(call: HttpCall, *, to_change: bool = False) -> LinkView:
    view = call.views.connection(call.path["connection"])
    if view is None:
        raise not_found()
    check_owner(call, view.user, to_change=to_change)
    return view


def _checked_user(call: HttpCall, *, to_change: bool = False) -> str:
    check_owner(call, call.path["user"], to_change=to_change)
    return call.path["user"]


def _close(call: HttpCall, name: str) -> None:
    # Headers arrive as Latin-1, whatever encoding a client meant.
    reason = call.request.headers.get("x-reason", "").encode("latin-1").decode("utf-8", "replace")
    call.node.close_connection(name, reason or DEFAULT_REASON)
    call.services.wake()

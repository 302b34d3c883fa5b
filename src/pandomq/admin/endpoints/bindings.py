"""Bindings: list, show, bind, unbind.

A binding between two ends is identified by its properties key, which is in a listing: the routing key, and a digest of
the arguments if there are any.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_plus

from pandomq.admin.field_json import amqp_table
from pandomq.admin.listings.exchange_rows import binding_row, exchange_of
from pandomq.admin.listings.scopes import in_vhosts
from pandomq.admin.listings.tables import list_rows
from pandomq.admin.names import short
from pandomq.admin.refusals import not_found
from pandomq.admin.responses import Encoded, Json, Nothing, deleted, listed
from pandomq.methods import ExchangeBind, ExchangeUnbind, Method, QueueBind, QueueUnbind

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.broker.views import BindingView


async def list_all(call: HttpCall) -> Encoded:
    return await listed(call.request, await list_rows(call.tables.bindings, in_vhosts(call), call.query.unpaged()))


async def list_between(call: HttpCall) -> Encoded:
    return await call.show_list(_between(call), binding_row)


async def show(call: HttpCall) -> Json:
    return call.show(binding_row(_found(call)))


async def bind(call: HttpCall) -> Nothing:
    vhost = call.path["vhost"]
    source = short("exchange", exchange_of(call.path["source"]))
    routing_key = short("routing_key", call.text("routing_key", ""))
    arguments = amqp_table(call.value("arguments", {}))
    method: Method
    if "queue" in call.path:
        end = call.path["queue"]
        method = QueueBind(short("queue", end), source, routing_key, arguments=arguments)
    else:
        end = call.path["destination"]
        method = ExchangeBind(short("exchange", exchange_of(end)), source, routing_key, arguments=arguments)
    async with call.client(vhost) as client:
        await client.ask(method)
    made = next(
        view for view in _between(call) if view.routing_key == routing_key and dict(view.arguments) == arguments
    )
    location = f"{quote(end, safe='')}/{quote(made.properties_key, safe='')}"
    return Nothing(201, {"location": location})


async def unbind(call: HttpCall) -> Nothing:
    view = _found(call)
    method: Method
    if "queue" in call.path:
        method = QueueUnbind(view.destination, view.source, view.routing_key, view.arguments)
    else:
        method = ExchangeUnbind(view.destination, view.source, view.routing_key, arguments=view.arguments)
    async with call.client(view.vhost) as client:
        await client.ask(method)
    return deleted()


def _between(call: HttpCall) -> Iterator[BindingView]:
    kind = "queue" if "queue" in call.path else "exchange"
    end = call.path["queue"] if kind == "queue" else exchange_of(call.path["destination"])
    for view in call.views.bindings_from(call.path["vhost"], exchange_of(call.path["source"])):
        if view.destination == end and view.destination_type == kind:
            yield view


def _found(call: HttpCall) -> BindingView:
    key = call.path["properties"]
    view = next((view for view in _between(call) if key in _keys(view)), None)
    if view is None:
        raise not_found()
    return view


def _keys(view: BindingView) -> tuple[str, str]:
    """The properties key in the form of a listing, and without its escapes: clients differ in how often they escape
    it."""
    key, tilde, digest = view.properties_key.partition("~")
    return view.properties_key, f"{unquote_plus(key)}{tilde}{digest}"

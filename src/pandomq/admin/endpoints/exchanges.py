"""Exchanges: list, show, declare, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.admin.field_json import amqp_table
from pandomq.admin.listings.exchange_rows import binding_row, exchange_detail_row, exchange_of
from pandomq.admin.listings.scopes import in_vhosts
from pandomq.admin.listings.tables import list_rows
from pandomq.admin.names import short
from pandomq.admin.refusals import not_found
from pandomq.admin.responses import Encoded, Json, Nothing, created, deleted, listed
from pandomq.methods import ExchangeDeclare, ExchangeDelete

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.broker.views import ExchangeView

DEFAULT_TYPE: Final = "direct"


async def list_all(call: HttpCall) -> Encoded:
    return await listed(call.request, await list_rows(call.tables.exchanges, in_vhosts(call), call.query))


async def show(call: HttpCall) -> Json:
    return call.show(exchange_detail_row(_found(call)))


async def put(call: HttpCall) -> Nothing:
    vhost, name = call.path["vhost"], short("exchange", exchange_of(call.path["exchange"]))
    declare = ExchangeDeclare(
        exchange=name,
        type=short("type", call.text("type", DEFAULT_TYPE)),
        durable=call.boolean("durable"),
        auto_delete=call.boolean("auto_delete"),
        internal=call.boolean("internal"),
        arguments=amqp_table(call.value("arguments", {})),
    )
    new = call.views.exchange(vhost, name) is None
    async with call.client(vhost) as client:
        await client.ask(declare)
    return created(new=new)


async def delete(call: HttpCall) -> Nothing:
    view = _found(call)
    async with call.client(view.vhost) as client:
        await client.ask(ExchangeDelete(exchange=view.name, if_unused=call.flag("if-unused")))
    return deleted()


async def list_outgoing(call: HttpCall) -> Encoded:
    """An empty list for an unknown exchange, as in RabbitMQ."""
    views = call.views.bindings_from(call.path["vhost"], exchange_of(call.path["exchange"]))
    return await call.show_list(views, binding_row)


async def list_incoming(call: HttpCall) -> Encoded:
    views = call.views.bindings_to_exchange(call.path["vhost"], exchange_of(call.path["exchange"]))
    return await call.show_list(views, binding_row)


def _found(call: HttpCall) -> ExchangeView:
    view = call.views.exchange(call.path["vhost"], exchange_of(call.path["exchange"]))
    if view is None:
        raise not_found()
    return view

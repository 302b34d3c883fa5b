"""Queues: list, show, declare, delete, purge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.admin.field_json import amqp_table
from pandomq.admin.listings.exchange_rows import binding_row
from pandomq.admin.listings.queue_rows import queue_detail_row
from pandomq.admin.listings.scopes import in_vhosts
from pandomq.admin.listings.tables import list_rows
from pandomq.admin.names import short
from pandomq.admin.refusals import not_found
from pandomq.admin.responses import Encoded, Json, Nothing, created, deleted, listed
from pandomq.methods import QueueDeclare, QueueDelete, QueuePurge
from pandomq.node.views.views import default_binding

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.broker.views import QueueView


async def list_all(call: HttpCall) -> Encoded:
    return await listed(call.request, await list_rows(call.tables.queues, in_vhosts(call), call.query))


async def show(call: HttpCall) -> Json:
    view = _found(call)
    use = call.views.queue_use(view.vhost, view.name)
    if use is None:
        raise not_found()
    rates = call.tables.queues.rates_of((view.vhost, view.name))
    return call.show(queue_detail_row(view, rates, call.services.settings.name, use))


async def put(call: HttpCall) -> Nothing:
    vhost, name = call.path["vhost"], short("queue", call.path["queue"])
    declare = QueueDeclare(
        queue=name,
        durable=call.boolean("durable"),
        auto_delete=call.boolean("auto_delete"),
        arguments=amqp_table(call.value("arguments", {})),
    )
    new = call.views.queue(vhost, name) is None
    async with call.client(vhost) as client:
        await client.ask(declare)
    return created(new=new)


async def delete(call: HttpCall) -> Nothing:
    view = _found(call)
    method = QueueDelete(queue=view.name, if_unused=call.flag("if-unused"), if_empty=call.flag("if-empty"))
    async with call.client(view.vhost) as client:
        await client.ask(method)
    return deleted()


async def purge(call: HttpCall) -> Nothing:
    view = _found(call)
    async with call.client(view.vhost) as client:
        await client.ask(QueuePurge(queue=view.name))
    return deleted()


async def list_bindings(call: HttpCall) -> Encoded:
    """For one queue, its own from the default exchange first. RabbitMQ returns that also for an unknown queue."""
    vhost, name = call.path["vhost"], call.path["queue"]
    views = [default_binding(vhost, name), *call.views.bindings_to_queue(vhost, name)]
    return await call.show_list(views, binding_row)


def _found(call: HttpCall) -> QueueView:
    view = call.views.queue(call.path["vhost"], call.path["queue"])
    if view is None:
        raise not_found()
    return view

"""Vhosts: list, show, make, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pandomq.admin.listings.rate import NO_RATE
from pandomq.admin.listings.tables import render_rows
from pandomq.admin.listings.totals import Sums
from pandomq.admin.names import read_tags
from pandomq.admin.refusals import bad_request, not_found
from pandomq.admin.responses import Encoded, Json, Nothing, created, deleted, listed
from pandomq.broker.log.commands import DeleteVhost, PutPermissions, PutTracing, PutVhost

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.broker.administration.administration_views import VhostView

ALL = ".*"


async def list_all(call: HttpCall) -> Encoded:
    """A user with the tag for monitoring gets all of them, others those that they have access to."""
    visible = None if call.identity.monitors else call.visible_vhosts
    views = [view for view in call.views.vhosts() if visible is None or view.name in visible]
    return await listed(call.request, await render_rows(await _rows(call, views), call.query))


async def show(call: HttpCall) -> Json:
    view = next((view for view in call.views.vhosts() if view.name == call.path["vhost"]), None)
    if view is None:
        raise not_found()
    return call.show((await _rows(call, [view]))[0])


async def put(call: HttpCall) -> Nothing:
    name = call.path["vhost"]
    view = next((view for view in call.views.vhosts() if view.name == name), None)
    new = view is None
    tracing = _tracing(call, name, 0.0 if view is None else view.trace_sample)
    if view is None or tracing is None or call.has("description") or call.has("tags"):
        # A request for traces only leaves the rest unchanged.
        await call.administer(PutVhost(name, call.text("description", ""), read_tags(call.value("tags", ""))))
    if new:
        # As in RabbitMQ, the creator of a vhost gets all rights in it.
        await call.administer(PutPermissions(name, call.identity.name, ALL, ALL, ALL))
    if tracing is not None:
        # Last, since it may be rejected.
        await call.administer(tracing)
    return created(new=new)


def _tracing(call: HttpCall, name: str, sample: float) -> PutTracing | None:
    """The tracing in the request, if there is any. RabbitMQ's `tracing` alone traces all messages, or as many as
    before."""
    if not call.has("tracing") and not call.has("trace_sample"):
        return None
    asked: Any = call.value("trace_sample", sample)
    if not isinstance(asked, int | float) or isinstance(asked, bool):
        raise bad_request("trace_sample is not a number")
    wanted = call.boolean("tracing") if call.has("tracing") else asked != 0
    # A value out of bounds stays out of bounds, also if it would not fit into the machine's numbers.
    part = float(min(max(asked, -1), 2))
    return PutTracing(name, (part or 1.0) if wanted else 0.0)


async def delete(call: HttpCall) -> Nothing:
    await call.administer(DeleteVhost(call.path["vhost"]))
    return deleted()


async def _rows(call: HttpCall, views: Sequence[VhostView]) -> list[dict[str, Any]]:
    totals = await call.tables.totals.now()
    return [_row(view, totals.by_vhost.get(view.name, Sums()), call.services.settings.name) for view in views]


def _row(view: VhostView, sums: Sums, node: str) -> dict[str, Any]:
    return {
        "name": view.name,
        "description": view.description,
        "tags": list(view.tags),
        "metadata": {"description": view.description, "tags": list(view.tags)},
        "default_queue_type": "classic",
        "tracing": view.trace_sample > 0,
        "trace_sample": view.trace_sample,
        "cluster_state": {node: "running"},
        "messages": sums.ready + sums.unacked,
        "messages_details": NO_RATE,
        "messages_ready": sums.ready,
        "messages_ready_details": NO_RATE,
        "messages_unacknowledged": sums.unacked,
        "messages_unacknowledged_details": NO_RATE,
    }

"""Producers that number their messages: list, show. RabbitMQ's API has no equivalent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pandomq.admin.refusals import not_found
from pandomq.admin.responses import Encoded, Json

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.broker.publishing.producer_views import ProducerView


async def list_all(call: HttpCall) -> Encoded:
    vhost, visible, age_ms = call.path.get("vhost"), call.visible_vhosts, _age_ms(call)
    views = [
        view
        for view in call.views.producers.all()
        if vhost in (None, view.vhost) and (visible is None or view.vhost in visible)
    ]
    return await call.show_list(
        sorted(views, key=lambda view: (view.vhost, view.name, view.user)), lambda view: _row(view, age_ms)
    )


async def show(call: HttpCall) -> Json:
    view = call.views.producers.one(call.path["vhost"], call.path["producer"])
    if view is None:
        raise not_found()
    return call.show(_row(view, _age_ms(call)))


def _age_ms(call: HttpCall) -> int:
    return call.views.producers.summary().producer_age_ms


def _row(view: ProducerView, age_ms: int) -> dict[str, Any]:
    return {
        "vhost": view.vhost,
        "name": view.name,
        "user": view.user,
        "last_sequence": view.last_sequence,
        "forgotten_through": view.forgotten_through,
        "gaps": view.gaps,
        "refused": view.refused,
        "connection": view.connection,
        "published_at": view.noted_ms,
        "forgotten_at": view.noted_ms + age_ms,
    }

"""Connections to this broker's data port: list. RabbitMQ's API has no equivalent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.admin.responses import Encoded
    from pandomq.node.data.views import DataConnectionView


async def list_all(call: HttpCall) -> Encoded:
    """The user's own, or all with the tag for monitoring."""
    node, mine = call.services.settings.name, None if call.identity.monitors else call.identity.name
    views = [view for view in call.views.data.connections() if mine in (None, view.user)]
    return await call.show_list(sorted(views, key=lambda view: view.name), lambda view: _row(view, node))


def _row(view: DataConnectionView, node: str) -> dict[str, Any]:
    return {
        "name": view.name,
        "node": node,
        "peer_host": view.peer[0],
        "peer_port": view.peer[1],
        "ssl": view.tls,
        "user": view.user,
        "vhost": view.vhost,
        "state": view.state,
        "connected_at": view.connected_ms,
        "requests": view.requests,
        "requests_waiting": view.waiting,
        "recv_oct": view.received_bytes,
        "send_oct": view.sent_bytes,
    }

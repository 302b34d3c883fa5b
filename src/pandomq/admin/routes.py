"""Every path of the API: what may be done there, and who may."""

from __future__ import annotations

from pandomq.admin.access import Access
from pandomq.admin.endpoints import bindings, clients, exchanges, health, messages, metrics, overview, queues
from pandomq.admin.router import Action, Handler, Router

_OPEN = Access.OPEN
_ANYBODY = Access.MANAGEMENT
_VHOST = Access.VHOST
_MONITORING = Access.MONITORING

_Actions = dict[str, tuple[Access, Handler]]

_ROUTES: dict[str, _Actions] = {
    "healthz": {"GET": (_OPEN, health.alive)},
    "readyz": {"GET": (_OPEN, health.ready)},
    "metrics": {"GET": (_OPEN, metrics.metrics)},
    "metrics/per-object": {"GET": (_MONITORING, metrics.per_object)},
    "api/overview": {"GET": (_ANYBODY, overview.overview)},
    "api/whoami": {"GET": (_ANYBODY, overview.whoami)},
    "api/cluster": {"GET": (_ANYBODY, overview.cluster)},
    "api/cluster-name": {"GET": (_ANYBODY, overview.cluster_name)},
    "api/extensions": {"GET": (_ANYBODY, overview.extensions)},
    "api/nodes": {"GET": (_MONITORING, overview.list_nodes)},
    "api/nodes/{node}": {"GET": (_MONITORING, overview.show_node)},
    # Queues and exchanges.
    "api/queues": {"GET": (_ANYBODY, queues.list_all)},
    "api/queues/{vhost}": {"GET": (_VHOST, queues.list_all)},
    "api/queues/{vhost}/{queue}": {
        "GET": (_VHOST, queues.show),
        "PUT": (_VHOST, queues.put),
        "DELETE": (_VHOST, queues.delete),
    },
    "api/queues/{vhost}/{queue}/bindings": {"GET": (_VHOST, queues.list_bindings)},
    "api/queues/{vhost}/{queue}/contents": {"DELETE": (_VHOST, queues.purge)},
    "api/queues/{vhost}/{queue}/get": {"POST": (_VHOST, messages.get)},
    "api/exchanges": {"GET": (_ANYBODY, exchanges.list_all)},
    "api/exchanges/{vhost}": {"GET": (_VHOST, exchanges.list_all)},
    "api/exchanges/{vhost}/{exchange}": {
        "GET": (_VHOST, exchanges.show),
        "PUT": (_VHOST, exchanges.put),
        "DELETE": (_VHOST, exchanges.delete),
    },
    "api/exchanges/{vhost}/{exchange}/bindings/source": {"GET": (_VHOST, exchanges.list_outgoing)},
    "api/exchanges/{vhost}/{exchange}/bindings/destination": {"GET": (_VHOST, exchanges.list_incoming)},
    "api/exchanges/{vhost}/{exchange}/publish": {"POST": (_VHOST, messages.publish)},
    "api/bindings": {"GET": (_ANYBODY, bindings.list_all)},
    "api/bindings/{vhost}": {"GET": (_VHOST, bindings.list_all)},
    "api/bindings/{vhost}/e/{source}/q/{queue}": {
        "GET": (_VHOST, bindings.list_between),
        "POST": (_VHOST, bindings.bind),
    },
    "api/bindings/{vhost}/e/{source}/q/{queue}/{properties}": {
        "GET": (_VHOST, bindings.show),
        "DELETE": (_VHOST, bindings.unbind),
    },
    "api/bindings/{vhost}/e/{source}/e/{destination}": {
        "GET": (_VHOST, bindings.list_between),
        "POST": (_VHOST, bindings.bind),
    },
    "api/bindings/{vhost}/e/{source}/e/{destination}/{properties}": {
        "GET": (_VHOST, bindings.show),
        "DELETE": (_VHOST, bindings.unbind),
    },
    # Clients.
    "api/connections": {"GET": (_ANYBODY, clients.list_connections)},
    "api/connections/{connection}": {
        "GET": (_ANYBODY, clients.show_connection),
        "DELETE": (_ANYBODY, clients.close_connection),
    },
    "api/connections/{connection}/channels": {"GET": (_ANYBODY, clients.list_channels_of_connection)},
    "api/connections/username/{user}": {
        "GET": (_ANYBODY, clients.list_connections_of_user),
        "DELETE": (_ANYBODY, clients.close_connections_of_user),
    },
    "api/channels": {"GET": (_ANYBODY, clients.list_channels)},
    "api/channels/{channel}": {"GET": (_ANYBODY, clients.show_channel)},
    "api/consumers": {"GET": (_ANYBODY, clients.list_consumers)},
    "api/consumers/{vhost}": {"GET": (_ANYBODY, clients.list_consumers)},
    "api/vhosts/{vhost}/connections": {"GET": (_VHOST, clients.list_connections)},
    "api/vhosts/{vhost}/channels": {"GET": (_VHOST, clients.list_channels)},
    # Health.
    "api/aliveness-test/{vhost}": {"GET": (_VHOST, health.aliveness)},
    "api/health/checks/alarms": {"GET": (_ANYBODY, health.alarms)},
    "api/health/checks/local-alarms": {"GET": (_ANYBODY, health.alarms)},
    "api/health/checks/virtual-hosts": {"GET": (_ANYBODY, health.fine)},
    "api/health/checks/is-in-service": {"GET": (_ANYBODY, health.fine)},
    "api/health/checks/port-listener/{port}": {"GET": (_ANYBODY, health.port_listener)},
    "api/health/checks/protocol-listener/{protocol}": {"GET": (_ANYBODY, health.protocol_listener)},
    "api/health/checks/node-is-quorum-critical": {"GET": (_ANYBODY, health.not_critical)},
    "api/health/checks/node-is-mirror-sync-critical": {"GET": (_ANYBODY, health.not_critical)},
}


def make_router() -> Router:
    router = Router()
    for template, actions in _ROUTES.items():
        router.add(template, {method: Action(*action) for method, action in actions.items()})
    return router

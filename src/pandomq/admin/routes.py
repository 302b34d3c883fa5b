"""Every path of the API: its methods, and the rights they need."""

from __future__ import annotations

from typing import Final

from pandomq.admin import limits
from pandomq.admin.access.tags import EndpointAccess
from pandomq.admin.endpoints import (
    bindings,
    clients,
    cluster,
    data_connections,
    definitions,
    exchanges,
    fetching,
    health,
    messages,
    metrics,
    nodes,
    overview,
    permissions,
    producers,
    queues,
    quotas,
    users,
    vhosts,
)
from pandomq.admin.endpoints.policies import PolicyEndpoints
from pandomq.admin.router import CHANGES, Action, Handler, HttpRouter

_OPEN = EndpointAccess.OPEN
_ANYBODY = EndpointAccess.MANAGEMENT
_VHOST = EndpointAccess.VHOST
_POLICIES = EndpointAccess.POLICIES
_MONITORING = EndpointAccess.MONITORING
_ADMINISTRATOR = EndpointAccess.ADMINISTRATOR
_USERS = EndpointAccess.USERS
_policies = PolicyEndpoints(operator=False)
_operators = PolicyEndpoints(operator=True)

_Actions = dict[str, tuple[EndpointAccess, Handler]]

_ROUTES: dict[str, _Actions] = {
    "healthz": {"GET": (_OPEN, health.alive)},
    "readyz": {"GET": (_OPEN, health.ready)},
    "api/health/ready": {"GET": (_OPEN, health.ready)},
    "api/health/root": {"GET": (_OPEN, health.root)},
    "api/health/clients": {"GET": (_OPEN, health.clients)},
    "metrics": {"GET": (_OPEN, metrics.metrics)},
    "metrics/per-object": {"GET": (_MONITORING, metrics.per_object)},
    "api/overview": {"GET": (_ANYBODY, overview.overview)},
    "api/whoami": {"GET": (_ANYBODY, overview.whoami)},
    "api/cluster": {"GET": (EndpointAccess.CLUSTER_VIEW, cluster.show)},
    "api/cluster/members": {"GET": (EndpointAccess.CLUSTER_VIEW, cluster.list_members)},
    "api/cluster/members/{name}": {
        "PUT": (EndpointAccess.CLUSTER, cluster.put_member),
        "DELETE": (EndpointAccess.CLUSTER, cluster.delete_member),
    },
    "api/cluster/promote": {"POST": (EndpointAccess.CLUSTER, cluster.promote)},
    "api/cluster-name": {"GET": (_ANYBODY, overview.cluster_name)},
    "api/extensions": {"GET": (_ANYBODY, overview.extensions)},
    "api/nodes": {"GET": (_MONITORING, nodes.list_all)},
    "api/nodes/{node}": {"GET": (_MONITORING, nodes.show)},
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
    "api/queues/{vhost}/{queue}/get": {"POST": (_VHOST, fetching.get)},
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
    "api/producers": {"GET": (_ANYBODY, producers.list_all)},
    "api/producers/{vhost}": {"GET": (_VHOST, producers.list_all)},
    "api/producers/{vhost}/{producer}": {"GET": (_VHOST, producers.show)},
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
    "api/data-connections": {"GET": (_ANYBODY, data_connections.list_all)},
    "api/channels": {"GET": (_ANYBODY, clients.list_channels)},
    "api/channels/{channel}": {"GET": (_ANYBODY, clients.show_channel)},
    "api/consumers": {"GET": (_ANYBODY, clients.list_consumers)},
    "api/consumers/{vhost}": {"GET": (_ANYBODY, clients.list_consumers)},
    "api/vhosts/{vhost}/connections": {"GET": (_VHOST, clients.list_connections)},
    "api/vhosts/{vhost}/channels": {"GET": (_VHOST, clients.list_channels)},
    # Settings of administrators.
    "api/vhosts": {"GET": (_ANYBODY, vhosts.list_all)},
    "api/vhosts/{vhost}": {
        "GET": (_ADMINISTRATOR, vhosts.show),
        "PUT": (_ADMINISTRATOR, vhosts.put),
        "DELETE": (_ADMINISTRATOR, vhosts.delete),
    },
    "api/vhosts/{vhost}/permissions": {"GET": (_USERS, permissions.list_all)},
    "api/vhosts/{vhost}/topic-permissions": {"GET": (_ADMINISTRATOR, permissions.list_topics)},
    "api/users": {"GET": (_USERS, users.list_all)},
    "api/users/without-permissions": {"GET": (_USERS, users.list_without_permissions)},
    "api/users/bulk-delete": {"POST": (_USERS, users.delete_many)},
    "api/users/{user}": {
        "GET": (_USERS, users.show),
        "PUT": (_USERS, users.put),
        "DELETE": (_USERS, users.delete),
    },
    "api/users/{user}/permissions": {"GET": (_USERS, permissions.list_all)},
    "api/users/{user}/topic-permissions": {"GET": (_ADMINISTRATOR, permissions.list_topics)},
    "api/permissions": {"GET": (_USERS, permissions.list_all)},
    "api/permissions/{vhost}/{user}": {
        "GET": (_USERS, permissions.show),
        "PUT": (_USERS, permissions.put),
        "DELETE": (_USERS, permissions.delete),
    },
    "api/topic-permissions": {"GET": (_ADMINISTRATOR, permissions.list_topics)},
    "api/topic-permissions/{vhost}/{user}": {
        "GET": (_ADMINISTRATOR, permissions.show_topics),
        "PUT": (_ADMINISTRATOR, permissions.put_topic),
        "DELETE": (_ADMINISTRATOR, permissions.delete_topics),
    },
    "api/topic-permissions/{vhost}/{user}/{exchange}": {"DELETE": (_ADMINISTRATOR, permissions.delete_topics)},
    "api/policies": {"GET": (_ANYBODY, _policies.list_all)},
    "api/policies/{vhost}": {"GET": (_VHOST, _policies.list_all)},
    "api/policies/{vhost}/{policy}": {
        "GET": (_POLICIES, _policies.show),
        "PUT": (_POLICIES, _policies.put),
        "DELETE": (_POLICIES, _policies.delete),
    },
    "api/operator-policies": {"GET": (_ANYBODY, _operators.list_all)},
    "api/operator-policies/{vhost}": {"GET": (_VHOST, _operators.list_all)},
    "api/operator-policies/{vhost}/{policy}": {
        "GET": (_ADMINISTRATOR, _operators.show),
        "PUT": (_ADMINISTRATOR, _operators.put),
        "DELETE": (_ADMINISTRATOR, _operators.delete),
    },
    "api/definitions": {"GET": (_ADMINISTRATOR, definitions.export), "POST": (_ADMINISTRATOR, definitions.import_)},
    "api/definitions/{vhost}": {
        "GET": (_ADMINISTRATOR, definitions.export),
        "POST": (_ADMINISTRATOR, definitions.import_),
    },
    "api/vhost-limits": {"GET": (_ANYBODY, quotas.list_of_vhosts)},
    "api/vhost-limits/{vhost}": {"GET": (_ANYBODY, quotas.list_of_vhosts)},
    "api/vhost-limits/{vhost}/{name}": {
        "PUT": (_ADMINISTRATOR, quotas.put_of_vhost),
        "DELETE": (_ADMINISTRATOR, quotas.delete_of_vhost),
    },
    "api/user-limits": {"GET": (_ANYBODY, quotas.list_of_users)},
    "api/user-limits/{user}": {"GET": (_ANYBODY, quotas.list_of_users)},
    "api/user-limits/{user}/{name}": {
        "PUT": (_ADMINISTRATOR, quotas.put_of_user),
        "DELETE": (_ADMINISTRATOR, quotas.delete_of_user),
    },
    # Health.
    "api/aliveness-test/{vhost}": {"GET": (_VHOST, health.aliveness)},
    "api/health/checks/alarms": {"GET": (_ANYBODY, health.alarms)},
    "api/health/checks/local-alarms": {"GET": (_ANYBODY, health.alarms)},
    "api/health/checks/virtual-hosts": {"GET": (_ANYBODY, health.fine)},
    "api/health/checks/is-in-service": {"GET": (_ANYBODY, health.fine)},
    "api/health/checks/port-listener/{port}": {"GET": (_ANYBODY, health.port_listener)},
    "api/health/checks/protocol-listener/{protocol}": {"GET": (_ANYBODY, health.protocol_listener)},
    "api/health/checks/node-is-quorum-critical": {"GET": (_ANYBODY, health.quorum_critical)},
    "api/health/checks/node-is-mirror-sync-critical": {"GET": (_ANYBODY, health.not_critical)},
}


_HERE: Final = frozenset(
    (
        clients.close_connection,
        clients.close_connections_of_user,
        cluster.promote,
    )
)
"""Changes that any broker carries out itself; the others go to the root."""
_ROOT: Final = frozenset((health.aliveness,))
"""Endpoints that are not changes by their method, but change something on the root."""
_LARGE: Final = frozenset((definitions.import_, messages.publish))
"""Their bodies may be large."""
_ANSWERS: Final[dict[Handler, int]] = {fetching.get: limits.GET_BYTES_MAX}
"""The size of answers that may be large. Listings are not among them: all clients share them."""


def make_router() -> HttpRouter:
    router = HttpRouter()
    for template, actions in _ROUTES.items():
        router.add(template, {method: _action(method, *action) for method, action in actions.items()})
    return router


def _action(method: str, access: EndpointAccess, handler: Handler) -> Action:
    here = handler in _HERE or (method not in CHANGES and handler not in _ROOT)
    changes = method in CHANGES or handler in _ROOT
    return Action(access, handler, here, handler in _LARGE, _ANSWERS.get(handler, 0), changes)

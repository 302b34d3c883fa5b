"""Each endpoint with each tag: what docs/security.md says of HTTP is what is asked for."""

from __future__ import annotations

import pytest

from pandomq.admin.access.identity import HttpUser
from pandomq.admin.access.tags import EndpointAccess, check_tags
from pandomq.admin.refusals import Refusal
from pandomq.admin.routes import _ROUTES

TAGS = ("management", "policymaker", "monitoring", "administrator")
ALLOWED = {
    EndpointAccess.MANAGEMENT: TAGS,
    EndpointAccess.VHOST: TAGS,
    EndpointAccess.CLUSTER_VIEW: TAGS,
    EndpointAccess.POLICIES: ("policymaker", "administrator"),
    EndpointAccess.MONITORING: ("monitoring", "administrator"),
    EndpointAccess.ADMINISTRATOR: ("administrator",),
    EndpointAccess.CLUSTER: ("administrator",),
    EndpointAccess.USERS: ("administrator",),
}
CELLS = [(path, method, needed) for path, actions in _ROUTES.items() for method, (needed, _) in actions.items()]


@pytest.mark.parametrize(("path", "method", "needed"), CELLS)
def test_each_endpoint_with_each_tag(path: str, method: str, needed: EndpointAccess) -> None:
    if needed is EndpointAccess.OPEN:
        assert method == "GET", "nothing is changed without a login"
        return
    for tags in ((), ("impersonator",), *((tag,) for tag in TAGS)):
        identity = HttpUser("ann", tags)
        if set(tags) & set(ALLOWED[needed]):
            check_tags(needed, identity)
        else:
            with pytest.raises(Refusal):
                check_tags(needed, identity)


def test_a_change_for_others_needs_a_tag_or_the_users_own_rights() -> None:
    """Those without are done by AMQP methods under the user's rights, or are about the user's own connections."""
    own = {
        path
        for path, method, needed in CELLS
        if method != "GET" and needed in (EndpointAccess.VHOST, EndpointAccess.MANAGEMENT)
    }
    assert own == {
        "api/queues/{vhost}/{queue}",
        "api/queues/{vhost}/{queue}/contents",
        "api/queues/{vhost}/{queue}/get",
        "api/exchanges/{vhost}/{exchange}",
        "api/exchanges/{vhost}/{exchange}/publish",
        "api/bindings/{vhost}/e/{source}/q/{queue}",
        "api/bindings/{vhost}/e/{source}/q/{queue}/{properties}",
        "api/bindings/{vhost}/e/{source}/e/{destination}",
        "api/bindings/{vhost}/e/{source}/e/{destination}/{properties}",
        "api/connections/{connection}",
        "api/connections/username/{user}",
    }

"""Which tags a request needs, endpoint by endpoint; the words and the order of the checks are RabbitMQ's."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from pandomq.admin.refusals import not_authorised, not_found

if TYPE_CHECKING:
    from pandomq.admin.identity import Identity


class Access(Enum):
    OPEN = auto()
    """Anybody, also without a login: health, and figures that name nobody."""
    MANAGEMENT = auto()
    """Whoever may use the API at all."""
    VHOST = auto()
    """And has access to the vhost in the path."""
    POLICIES = auto()
    """And may change policies there."""
    MONITORING = auto()
    ADMINISTRATOR = auto()
    CLUSTER = auto()
    """An administrator, or who has the cluster's key."""
    CLUSTER_VIEW = auto()
    """Whoever may use the API at all, or has the cluster's key."""


OF_CLUSTER = (Access.CLUSTER, Access.CLUSTER_VIEW)


def check_tags(access: Access, identity: Identity) -> None:
    """Raises Refusal (401)."""
    if not identity.manages:
        raise not_authorised("Not management user")
    if access is Access.MONITORING and not identity.monitors:
        raise not_authorised("Not monitor user")
    if access in (Access.ADMINISTRATOR, Access.CLUSTER) and not identity.administrates:
        raise not_authorised("Not administrator user")
    if access is Access.POLICIES and not identity.makes_policies:
        raise not_authorised("User not authorised to access object")


def check_vhost(*, exists: bool, accessible: bool) -> None:
    """Raises Refusal: 404 if there is no such vhost, 401 if it is not the user's."""
    if not exists:
        raise not_found()
    if not accessible:
        raise not_authorised("User not authorised to access virtual host")

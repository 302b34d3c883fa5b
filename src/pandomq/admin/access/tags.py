"""The tags that a request needs, endpoint by endpoint; the messages and the order of the checks are RabbitMQ's."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from pandomq.admin.refusals import not_authorised, not_found

if TYPE_CHECKING:
    from pandomq.admin.access.identity import HttpUser


class EndpointAccess(Enum):
    OPEN = auto()
    """Everyone, also without a login: health, and figures without names."""
    MANAGEMENT = auto()
    """Every user that may use the API at all."""
    VHOST = auto()
    """Users who also have access to the vhost in the path."""
    POLICIES = auto()
    """Users who also may change policies there."""
    MONITORING = auto()
    ADMINISTRATOR = auto()
    CLUSTER = auto()
    """An administrator, or a holder of the cluster's key."""
    CLUSTER_VIEW = auto()
    """Every user that may use the API at all, or a holder of the cluster's key."""
    USERS = auto()
    """An administrator, or the holder of a key: this restores access when there is no administrator."""


BY_KEY_TOO = (EndpointAccess.CLUSTER, EndpointAccess.CLUSTER_VIEW, EndpointAccess.USERS)


def check_tags(access: EndpointAccess, identity: HttpUser) -> None:
    """Raises Refusal (401)."""
    if not identity.manages:
        raise not_authorised("Not management user")
    if access is EndpointAccess.MONITORING and not identity.monitors:
        raise not_authorised("Not monitor user")
    if (
        access in (EndpointAccess.ADMINISTRATOR, EndpointAccess.CLUSTER, EndpointAccess.USERS)
        and not identity.administrates
    ):
        raise not_authorised("Not administrator user")
    if access is EndpointAccess.POLICIES and not identity.makes_policies:
        raise not_authorised("User not authorised to access object")


def check_vhost(*, exists: bool, accessible: bool) -> None:
    """Raises Refusal: 404 if there is no such vhost, 401 if it is not the user's."""
    if not exists:
        raise not_found()
    if not accessible:
        raise not_authorised("User not authorised to access virtual host")

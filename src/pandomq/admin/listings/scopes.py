"""The part of a listing that a user may see: objects in its vhosts; only its own connections, unless it has the tag for
monitoring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pandomq.admin.listings.tables import EVERYTHING, Scope
from pandomq.admin.refusals import not_authorised

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall


def in_vhosts(call: HttpCall) -> Scope:
    """The rows of the vhost in the path, or of all vhosts to which the user has access."""
    vhost = call.path.get("vhost")
    if vhost is not None:
        return Scope(("vhost", vhost), lambda row: row.vhost == vhost)
    visible = call.visible_vhosts
    if visible is None:
        return EVERYTHING
    return Scope(("vhosts", visible), lambda row: row.vhost in visible)


def of_clients(call: HttpCall) -> Scope:
    """Connections and channels."""
    vhost = call.path.get("vhost")
    user = None if call.identity.monitors else call.identity.name
    if vhost is None and user is None:
        return EVERYTHING
    return Scope(("clients", vhost, user), lambda row: vhost in (None, row.vhost) and user in (None, row.user))


def of_consumers(call: HttpCall) -> Scope:
    vhost = call.path.get("vhost")
    user = None if call.identity.monitors else call.identity.name
    if vhost is None and user is None:
        return EVERYTHING

    def keep(row: Any) -> bool:
        return vhost in (None, row.queue.vhost) and user in (None, row.channel_details.user)

    return Scope(("consumers", vhost, user), keep)


def check_owner(call: HttpCall, user: str, *, to_change: bool = False) -> None:
    """Raises Refusal (401) unless the requesting user may access that user's connection."""
    others = call.identity.administrates if to_change else call.identity.monitors
    if user != call.identity.name and not others:
        raise not_authorised("User not authorised to access object")

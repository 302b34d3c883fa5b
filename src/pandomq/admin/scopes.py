"""What of a listing somebody gets to see: what is in its vhosts; of connections its own, unless it may monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pandomq.admin.refusals import not_authorised
from pandomq.admin.tables import EVERYTHING, Scope

if TYPE_CHECKING:
    from pandomq.admin.call import Call


def in_vhosts(call: Call) -> Scope:
    """The rows of the vhost in the path, or of all that the user has access to."""
    vhost = call.path.get("vhost")
    if vhost is not None:
        return Scope(("vhost", vhost), lambda row: row.vhost == vhost)
    visible = call.visible_vhosts
    if visible is None:
        return EVERYTHING
    return Scope(("vhosts", visible), lambda row: row.vhost in visible)


def of_clients(call: Call) -> Scope:
    """Connections and channels."""
    vhost = call.path.get("vhost")
    user = None if call.identity.monitors else call.identity.name
    if vhost is None and user is None:
        return EVERYTHING
    return Scope(("clients", vhost, user), lambda row: vhost in (None, row.vhost) and user in (None, row.user))


def of_consumers(call: Call) -> Scope:
    vhost = call.path.get("vhost")
    user = None if call.identity.monitors else call.identity.name
    if vhost is None and user is None:
        return EVERYTHING

    def keep(row: Any) -> bool:
        return vhost in (None, row.queue.vhost) and user in (None, row.channel_details.user)

    return Scope(("consumers", vhost, user), keep)


def check_owner(call: Call, user: str, *, to_change: bool = False) -> None:
    """Raises Refusal (401) unless the connection of that user concerns who asks."""
    others = call.identity.administrates if to_change else call.identity.monitors
    if user != call.identity.name and not others:
        raise not_authorised("User not authorised to access object")

"""Limits of vhosts and of users: list, set, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.admin.refusals import Refusal, bad_request, not_found, vhost_not_found
from pandomq.admin.responses import Encoded, Nothing, deleted
from pandomq.broker.log.commands import PutLimits

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall


async def list_of_vhosts(call: HttpCall) -> Encoded:
    """A user with the tag for monitoring gets all of them."""
    wanted = call.path.get("vhost")
    if wanted is not None:
        if not call.views.has_vhost(wanted):
            raise not_found()
        if not call.identity.monitors and not call.may_access(wanted):
            raise Refusal(401, "not_authorised", "User not authorised to access virtual host")
    visible = None if call.identity.monitors else call.visible_vhosts
    views = [
        view
        for view in call.views.vhosts()
        if view.limits and wanted in (None, view.name) and (visible is None or view.name in visible)
    ]
    return await call.show_list(views, lambda view: {"vhost": view.name, "value": dict(view.limits)})


async def put_of_vhost(call: HttpCall) -> Nothing:
    vhost = call.path["vhost"]
    if not call.views.has_vhost(vhost):
        raise vhost_not_found()
    (value,) = call.required("value")
    await call.administer(PutLimits("vhost", vhost, {call.path["name"]: value}))
    return deleted()


async def delete_of_vhost(call: HttpCall) -> Nothing:
    await call.administer(PutLimits("vhost", call.path["vhost"], {call.path["name"]: None}))
    return deleted()


async def list_of_users(call: HttpCall) -> Encoded:
    wanted = call.path.get("user")
    if wanted is not None and call.views.user(wanted) is None:
        raise not_found()
    views = [view for view in call.views.users() if view.limits and wanted in (None, view.name)]
    return await call.show_list(views, lambda view: {"user": view.name, "value": dict(view.limits)})


async def put_of_user(call: HttpCall) -> Nothing:
    user = call.path["user"]
    if call.views.user(user) is None:
        raise bad_request(["no_such_user", user])
    (value,) = call.required("value")
    await call.administer(PutLimits("user", user, {call.path["name"]: value}))
    return deleted()


async def delete_of_user(call: HttpCall) -> Nothing:
    await call.administer(PutLimits("user", call.path["user"], {call.path["name"]: None}))
    return deleted()

"""Permissions of users in vhosts, and on routing keys of topic exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pandomq.admin.refusals import Refusal, bad_request, not_found
from pandomq.admin.responses import Encoded, Json, Nothing, created, deleted
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeletePermissions,
    DeleteTopicPermissions,
    PutPermissions,
    PutTopicPermissions,
)

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.broker.administration.administration_views import PermissionsView, TopicPermissionsView


async def list_all(call: HttpCall) -> Encoded:
    """All of them, or those of the user or the vhost in the path."""
    return await call.show_list(sorted(_concerned(call), key=_order), msgspec.structs.asdict)


async def show(call: HttpCall) -> Json:
    view = next(iter(_concerned(call)), None)
    if view is None:
        raise not_found()
    return call.show(msgspec.structs.asdict(view))


async def put(call: HttpCall) -> Nothing:
    configure, write, read = _patterns(call, "configure", "write", "read")
    new = not _concerned(call)
    await _grant(call, PutPermissions(call.path["vhost"], call.path["user"], configure, write, read))
    return created(new=new)


async def delete(call: HttpCall) -> Nothing:
    await call.administer(DeletePermissions(call.path["vhost"], call.path["user"]))
    return deleted()


async def list_topics(call: HttpCall) -> Encoded:
    return await call.show_list(sorted(_concerned_topics(call), key=_order), msgspec.structs.asdict)


async def show_topics(call: HttpCall) -> Encoded:
    """For one user in one vhost: one for each exchange."""
    views = _concerned_topics(call)
    if not views:
        raise not_found()
    return await call.show_list(views, msgspec.structs.asdict)


async def put_topic(call: HttpCall) -> Nothing:
    exchange, write, read = _patterns(call, "exchange", "write", "read")
    new = not any(view.exchange == exchange for view in _concerned_topics(call))
    await _grant(call, PutTopicPermissions(call.path["vhost"], call.path["user"], exchange, write, read))
    return created(new=new)


async def delete_topics(call: HttpCall) -> Nothing:
    command = DeleteTopicPermissions(call.path["vhost"], call.path["user"], call.path.get("exchange", ""))
    await call.administer(command)
    return deleted()


async def _grant(call: HttpCall, command: AdministrativeCommand) -> None:
    try:
        await call.administer(command)
    except Refusal as refusal:
        if refusal.status == not_found().status:
            raise bad_request("vhost_or_user_not_found") from None
        raise


def _patterns(call: HttpCall, *names: str) -> list[str]:
    call.required(*names)
    return [call.text(name) for name in names]


def _concerned(call: HttpCall) -> list[PermissionsView]:
    _check_path(call)
    return [view for view in call.views.permissions() if _is_concerned(call, view)]


def _concerned_topics(call: HttpCall) -> list[TopicPermissionsView]:
    _check_path(call)
    return [view for view in call.views.topic_permissions() if _is_concerned(call, view)]


def _check_path(call: HttpCall) -> None:
    user, vhost = call.path.get("user"), call.path.get("vhost")
    is_change = call.request.method in ("PUT", "DELETE")
    if not is_change and (
        (user is not None and call.views.user(user) is None) or (vhost is not None and not call.views.has_vhost(vhost))
    ):
        raise not_found()


def _is_concerned(call: HttpCall, view: Any) -> bool:
    return call.path.get("user") in (None, view.user) and call.path.get("vhost") in (None, view.vhost)


def _order(view: Any) -> tuple[str, ...]:
    return view.vhost, view.user, getattr(view, "exchange", "")

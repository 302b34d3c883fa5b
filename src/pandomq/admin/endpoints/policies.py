"""Policies and operators' policies: list, show, set, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pandomq.admin.refusals import bad_request, not_found
from pandomq.admin.responses import Encoded, Json, Nothing, created, deleted
from pandomq.broker.log.commands import DeletePolicy, PutPolicy

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall
    from pandomq.broker.administration.administration_views import PolicyView

DEFAULT_APPLY_TO = "all"


class PolicyEndpoints:
    """The four endpoints of policies, or the same four of operator policies."""

    def __init__(self, *, operator: bool) -> None:
        self._operator = operator

    async def list_all(self, call: HttpCall) -> Encoded:
        visible = call.visible_vhosts
        views = [view for view in self._views(call) if visible is None or view.vhost in visible]
        return await call.show_list(sorted(views, key=lambda view: (view.vhost, view.name)), policy_row)

    async def show(self, call: HttpCall) -> Json:
        view = self._find(call)
        if view is None:
            raise not_found()
        return call.show(policy_row(view))

    async def put(self, call: HttpCall) -> Nothing:
        _pattern, definition = call.required("pattern", "definition")
        priority = call.value("priority", 0)
        if not isinstance(priority, int) or isinstance(priority, bool):
            raise bad_request(f"Validation failed\n\npriority should be a number, actually was {priority!r}\n")
        command = PutPolicy(
            call.path["vhost"],
            call.path["policy"],
            call.text("pattern"),
            call.text("apply-to", DEFAULT_APPLY_TO),
            priority,
            msgspec.json.encode(definition),
            self._operator,
        )
        new = self._find(call) is None
        await call.administer(command)
        return created(new=new)

    async def delete(self, call: HttpCall) -> Nothing:
        await call.administer(DeletePolicy(call.path["vhost"], call.path["policy"], self._operator))
        return deleted()

    def _views(self, call: HttpCall) -> list[PolicyView]:
        vhost = call.path.get("vhost")
        return [view for view in call.views.policies(operator=self._operator) if vhost in (None, view.vhost)]

    def _find(self, call: HttpCall) -> PolicyView | None:
        return next((view for view in self._views(call) if view.name == call.path["policy"]), None)


def policy_row(view: PolicyView) -> dict[str, Any]:
    return {
        "vhost": view.vhost,
        "name": view.name,
        "pattern": view.pattern,
        "apply-to": view.apply_to,
        "definition": dict(view.definition),
        "priority": view.priority,
    }

"""All that was declared, out of the broker and into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.admin.definitions_export import export_definitions
from pandomq.admin.definitions_import import import_definitions
from pandomq.admin.refusals import not_found
from pandomq.admin.responses import Encoded, Nothing, deleted, listed
from pandomq.admin.table import Listing

if TYPE_CHECKING:
    from pandomq.admin.call import Call


async def export(call: Call) -> Encoded:
    return await listed(call.request, Listing(await export_definitions(call.views, _vhost(call))))


async def import_(call: Call) -> Nothing:
    await import_definitions(call, _vhost(call))
    return deleted()


def _vhost(call: Call) -> str | None:
    vhost = call.path.get("vhost")
    if vhost is not None and not call.views.has_vhost(vhost):
        raise not_found()
    return vhost

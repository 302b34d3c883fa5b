"""Export and import of all declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.admin.definitions_export import export_definitions
from pandomq.admin.definitions_import import import_definitions
from pandomq.admin.listings.table import Listing
from pandomq.admin.refusals import not_found
from pandomq.admin.responses import Encoded, Nothing, deleted, listed

if TYPE_CHECKING:
    from pandomq.admin.call import HttpCall


async def export(call: HttpCall) -> Encoded:
    return await listed(call.request, Listing(await export_definitions(call.views, _vhost(call))))


async def import_(call: HttpCall) -> Nothing:
    await import_definitions(call, _vhost(call))
    return deleted()


def _vhost(call: HttpCall) -> str | None:
    vhost = call.path.get("vhost")
    if vhost is not None and not call.views.has_vhost(vhost):
        raise not_found()
    return vhost

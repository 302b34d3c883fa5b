"""The API as one ASGI application: finds the endpoint, asks who wants it, and answers.

The order of the checks is RabbitMQ's: what is not there is 404 and a method that is not there 405 for everybody; then
comes the login, the tags, the vhost. What only the root can do goes there from any other broker, once the login is
known to be good, so that guessing passwords is slow here, too. A bug in an endpoint ends its own request with 500 and
is logged with its traceback; it harms nobody else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from pandomq.admin import key_login
from pandomq.admin.access import OF_CLUSTER, Access, check_tags, check_vhost
from pandomq.admin.call import Call, Services
from pandomq.admin.forwarding import forward_to_root
from pandomq.admin.identity import BY_KEY, Identity, authenticate, read_credentials
from pandomq.admin.meters import Meters
from pandomq.admin.refusals import Refusal, of_fault, unavailable, vhost_not_found
from pandomq.admin.responses import Nothing, refused
from pandomq.admin.router import CHANGES
from pandomq.admin.routes import make_router
from pandomq.admin.tables import Tables
from pandomq.errors import Fault
from pandomq.runtime.http import HUNG_UP

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pandomq.node.node import Node
    from pandomq.node.settings import NodeSettings
    from pandomq.runtime.clock import Clock

NOBODY = Identity("", ())


class Application:
    def __init__(self, node: Node, settings: NodeSettings, clock: Clock, wake: Callable[[], None]) -> None:
        self._services = Services(node, settings, clock, wake, Tables(node.views, settings.name), Meters())
        self._router = make_router()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except asyncio.CancelledError:
            # Only the end of the process cancels requests; those who still wait hear so.
            response = refused(unavailable("the broker is stopping"))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        try:
            return await self._answer(request)
        except Refusal as refusal:
            return refused(refusal)
        except Fault as fault:
            if self._services.node.office.refusal() is not None:
                return refused(unavailable(fault.reply_text))
            return refused(of_fault(fault))

    async def _answer(self, request: Request) -> Response:
        endpoint, path = self._router.find(request.scope["raw_path"])
        method = "GET" if request.method == "HEAD" else request.method
        action = endpoint.actions.get(method)
        if action is None:
            return Nothing(200 if method == "OPTIONS" else 405, {"allow": endpoint.allow})
        call = Call(self._services, request, path, NOBODY)
        if action.access in OF_CLUSTER and key_login.is_by_key(request.headers.get("authorization")):
            await self._check_key(call, method)
        elif action.access is not Access.OPEN:
            call.identity = await self._identify(request, action.access)
        if not action.here and self._services.node.office.refusal() is not None:
            if method in CHANGES:
                await call.read_body()
            return await forward_to_root(call)
        if action.access in (Access.VHOST, Access.POLICIES):
            self._check_vhost(call, method)
        if method in CHANGES:
            await call.read_body()
        response = await action.handler(call)
        if method in CHANGES:
            self._services.tables.changed()
        return response

    async def _identify(self, request: Request, access: Access) -> Identity:
        user, password = read_credentials(request.headers.get("authorization"))
        peer = ("", 0) if request.client is None else (request.client.host, request.client.port)
        identity = await authenticate(self._services, user, password, peer, request.scope["extensions"][HUNG_UP])
        check_tags(access, identity)
        return identity

    async def _check_key(self, call: Call, method: str) -> None:
        """Raises Refusal (401)."""
        if method in CHANGES:
            await call.read_body()
        request, key = call.request, self._services.settings.cluster.key
        header = request.headers["authorization"]
        reason = key_login.refusal(header, key, request.method, call.target, call.octets, int(time.time()))
        if reason is not None:
            raise Refusal(401, "not_authorized", reason)
        call.identity = BY_KEY

    def _check_vhost(self, call: Call, method: str) -> None:
        vhost = call.path["vhost"]
        exists = call.views.has_vhost(vhost)
        if not exists and method in CHANGES:
            raise vhost_not_found()
        check_vhost(exists=exists, accessible=call.may_access(vhost))

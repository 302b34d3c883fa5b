"""The API as one ASGI application: finds the endpoint, identifies the user, and answers.

The order of the checks is RabbitMQ's: an unknown path is 404 and an unknown method 405 for everyone; then come the
login, the tags, the vhost. Changes requested by a foreign web page are rejected before all that, and a body is read
after it. A request that only the root can carry out is forwarded to it after the login succeeded here, so that guessing
passwords is slow on every broker. A bug in an endpoint ends its own request with 500 and is logged once with its
traceback; other requests are not affected.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from pandomq.admin.access import key_login
from pandomq.admin.access.client_address import client_address
from pandomq.admin.access.cross_site import HostNames
from pandomq.admin.access.identity import BY_KEY, HttpUser, authenticate, read_credentials
from pandomq.admin.access.tags import BY_KEY_TOO, EndpointAccess, check_tags, check_vhost
from pandomq.admin.bodies import check_content_type
from pandomq.admin.call import HttpCall, HttpServices
from pandomq.admin.endpoints.health import alive
from pandomq.admin.forwarding import forward_to_root, passed_back
from pandomq.admin.listings.tables import Tables
from pandomq.admin.meters import Meters
from pandomq.admin.passed_on import PassedOn
from pandomq.admin.refusals import Refusal, not_authorised, of_fault, unavailable, vhost_not_found
from pandomq.admin.request_room import RequestRoom
from pandomq.admin.responses import Nothing, refused, send_response
from pandomq.admin.router import CHANGES
from pandomq.admin.routes import make_router
from pandomq.errors import Fault
from pandomq.node.clients.proxy_header import TrustedProxies
from pandomq.runtime.http import CONNECTION, HAS_DISCONNECTED

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from pandomq.admin.request_room import Share
    from pandomq.admin.router import Action
    from pandomq.cluster.passed_requests import PassedAnswer, PassedRequest
    from pandomq.node.node import Node
    from pandomq.node.settings import NodeSettings
    from pandomq.runtime.clock import Clock
    from pandomq.runtime.http_connections import OpenConnection

log = logging.getLogger("pandomq")

NOBODY = HttpUser("", ())


class Application:
    def __init__(
        self,
        node: Node,
        settings: NodeSettings,
        clock: Clock,
        wake: Callable[[], None],
        replaced: Application | None = None,
    ) -> None:
        """The requests in progress of the replaced application count until they are answered."""
        self.room: RequestRoom = RequestRoom(settings) if replaced is None else replaced.room
        self.room.change_settings(settings)
        tables = Tables(node.views, settings.name)
        self._services = HttpServices(node, settings, clock, wake, tables, Meters(), self.room)
        self._router = make_router()
        self._host_names = HostNames(settings)
        self._trusted_proxies = TrustedProxies(settings.trusted_proxies)
        self._passed_on: set[asyncio.Task[None]] = set()
        if node.peer_requests is not None:
            node.peer_requests.on_request = self._take_passed_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        request = Request(scope, receive)
        with self.room.request() as share:
            try:
                response = await self._respond(request, share)
            except asyncio.CancelledError:
                # Only the end of the process cancels requests; waiting clients get an answer.
                response = refused(unavailable("the broker is stopping"))
            await send_response(response, send)

    async def _respond(self, request: Request, share: Share, passed_on: PassedOn | None = None) -> Response:
        try:
            return await self._answer(request, share, passed_on)
        except Refusal as refusal:
            return refused(refusal)
        except Fault as fault:
            if not self._services.node.service_state.serves:
                return refused(unavailable(fault.reply_text))
            return refused(of_fault(fault))
        except Exception:
            log.exception(
                "HTTP request failed with an unexpected exception: %s %s", request.method, request.scope["path"]
            )
            return refused(_failed())

    async def _answer(self, request: Request, share: Share, passed_on: PassedOn | None) -> Response:
        endpoint, path = self._router.find(request.scope["raw_path"])
        method = "GET" if request.method == "HEAD" else request.method
        action = endpoint.actions.get(method)
        if action is None:
            return Nothing(200 if method == "OPTIONS" else 405, {"allow": endpoint.allow})
        if action.handler is not alive:
            self._services.check_not_restarting()
        call = HttpCall(self._services, request, path, NOBODY, share, large=action.large)
        if passed_on is None:
            await self._admit(call, action)
        else:
            self._admit_passed_on(call, action, passed_on)
        try:
            return await self._carry_out(call, action, method)
        finally:
            call.give_back()

    async def _admit(self, call: HttpCall, action: Action) -> None:
        """Identifies the user, and checks the rights. Raises Refusal."""
        request = call.request
        connection: OpenConnection = request.scope["extensions"][CONNECTION]
        if connection.refusal is not None and action.access is not EndpointAccess.OPEN:
            refusal = unavailable(connection.refusal)
            refusal.headers = {"connection": "close"}
            raise refusal
        if action.changes:
            self._host_names.check(request.headers)
        if action.access in BY_KEY_TOO and key_login.is_by_key(request.headers.get("authorization")):
            self._check_key(call)
        elif action.access is not EndpointAccess.OPEN:
            call.identity = await self._identify(request, action.access)
        if action.access is not EndpointAccess.OPEN:
            connection.is_logged_in = True
            call.share.enter(call.identity.name)
        if action.changes:
            check_content_type(request.headers)

    def _admit_passed_on(self, call: HttpCall, action: Action, passed_on: PassedOn) -> None:
        """The broker that got the request has identified the user. Raises Refusal."""
        call.passed_on_by = passed_on.by
        if passed_on.request.by_key:
            call.identity = BY_KEY
            if action.access not in BY_KEY_TOO:
                raise not_authorised(
                    "this request cannot be authenticated with a cluster key: use a user and a password"
                )
        elif action.access is not EndpointAccess.OPEN:
            call.identity = HttpUser(passed_on.request.user, self._services.node.logins.tags(passed_on.request.user))
            check_tags(action.access, call.identity)
        call.share.enter(call.identity.name)

    def _take_passed_on(self, sender: str, request: PassedRequest, reply: Callable[[PassedAnswer], None]) -> None:
        """Called within a step."""
        task = asyncio.get_running_loop().create_task(self._answer_passed_on(PassedOn(sender, request), reply))
        self._passed_on.add(task)
        task.add_done_callback(self._passed_on.discard)

    async def _answer_passed_on(self, passed_on: PassedOn, reply: Callable[[PassedAnswer], None]) -> None:
        try:
            with self.room.request() as share:
                answer = passed_back(await self._respond(passed_on.as_request(), share, passed_on))
            # Encoding the answer may fail, too; the broker that forwarded the request must get an answer.
            reply(answer)
        except Exception:
            log.exception("request passed on by %s failed with an unexpected exception", passed_on.by)
            reply(passed_back(refused(_failed())))
        self._services.wake()

    async def _carry_out(self, call: HttpCall, action: Action, method: str) -> Response:
        """For a user who may request it."""
        is_here = action.here or self._services.node.service_state.serves
        if is_here and action.access in (EndpointAccess.VHOST, EndpointAccess.POLICIES):
            self._check_vhost(call, method)
        if method in CHANGES:
            await call.read_body()
        if action.answer_bytes_max:
            # The body is complete: a client that sends slowly must not hold room that others wait for. Neither must
            # the bodies of those that wait.
            call.give_back()
            await call.share.wait_for(action.answer_bytes_max)
            call.check_client_waits()
        response = await (action.handler(call) if is_here else forward_to_root(call))
        if action.answer_bytes_max:
            call.share.give_back(max(0, action.answer_bytes_max - len(response.body)))
        if is_here and method in CHANGES:
            self._services.tables.changed()
        return response

    async def _identify(self, request: Request, access: EndpointAccess) -> HttpUser:
        user, password = read_credentials(request.headers.get("authorization"))
        client = client_address(request, self._trusted_proxies)
        identity = await authenticate(
            self._services, user, password, client, request.scope["extensions"][HAS_DISCONNECTED]
        )
        check_tags(access, identity)
        return identity

    def _check_key(self, call: HttpCall) -> None:
        """Raises Refusal (401). The body is compared with the proof when it is read."""
        request, settings = call.request, self._services.settings
        proof = key_login.read_proof(request.headers["authorization"])
        if isinstance(proof, str):
            raise Refusal(401, "not_authorized", proof, {"connection": "close"})
        keys = (settings.cluster.key, settings.own_key)
        reason = key_login.refusal(proof, keys, request.method, call.target, int(time.time()))
        if reason is not None:
            raise Refusal(401, "not_authorized", reason, {"connection": "close"})
        call.identity, call.digest = BY_KEY, proof.digest

    def _check_vhost(self, call: HttpCall, method: str) -> None:
        vhost = call.path["vhost"]
        exists = call.views.has_vhost(vhost)
        if not exists and method in CHANGES:
            raise vhost_not_found()
        check_vhost(exists=exists, accessible=call.may_access(vhost))


def _failed() -> Refusal:
    return Refusal(500, "internal_error", "the broker failed to process the request: its log has the traceback")

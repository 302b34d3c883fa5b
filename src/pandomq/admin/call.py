"""One request in the API: its user, its parameters, its body, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import Request

from pandomq.admin import limits
from pandomq.admin.access.key_login import fits_digest
from pandomq.admin.bodies import decode_object, read_octets
from pandomq.admin.broker_client import BrokerClient, broker_client
from pandomq.admin.listings.query import ListQuery, read_query, select
from pandomq.admin.listings.table import Listing
from pandomq.admin.refusals import Refusal, bad_request, missing_key, of_administration_fault, unavailable
from pandomq.admin.responses import Encoded, Json, listed
from pandomq.errors import Fault
from pandomq.runtime.http import HAS_DISCONNECTED

if TYPE_CHECKING:
    from pandomq.admin.access.identity import HttpUser
    from pandomq.admin.listings.tables import Tables
    from pandomq.admin.meters import Meters
    from pandomq.admin.request_room import RequestRoom, Share
    from pandomq.broker.log.commands import AdministrativeCommand
    from pandomq.node.log.replication import Replication
    from pandomq.node.node import Node
    from pandomq.node.settings import NodeSettings
    from pandomq.node.views.cluster_knowledge import OnEnded
    from pandomq.node.views.views import Views
    from pandomq.runtime.clock import Clock

V = TypeVar("V")


class HttpServices(msgspec.Struct, frozen=True):
    """The objects that the endpoints use."""

    node: Node
    settings: NodeSettings
    clock: Clock
    wake: Callable[[], None]
    """Requests a step of the node."""
    tables: Tables
    meters: Meters
    room: RequestRoom

    def check_not_restarting(self) -> None:
        """Raises Refusal (503): after an unexpected exception another node is being created from the log."""
        if self.node.guard.in_doubt:
            raise unavailable(
                "this broker is restarting its state after an unexpected exception: try again in a moment"
            )


class HttpCall:
    __slots__ = (
        "_body",
        "_body_bytes",
        "digest",
        "identity",
        "large",
        "octets",
        "passed_on_by",
        "path",
        "request",
        "services",
        "share",
    )

    def __init__(
        self,
        services: HttpServices,
        request: Request,
        path: Mapping[str, str],
        identity: HttpUser,
        share: Share,
        *,
        large: bool = False,
    ) -> None:
        self.services = services
        self.request = request
        self.path = path
        self.identity = identity
        self.share = share
        self.octets = b""
        """The body as it was received."""
        self._body: dict[str, Any] = {}
        self._body_bytes = 0
        """The room that the body takes."""
        self.large = large
        """Its body may be large, and the endpoint decodes it."""
        self.digest: str | None = None
        """The digest of the body in a proof of the cluster's key."""
        self.passed_on_by: str | None = None
        """The broker that got the request, if that is another one."""

    @property
    def target(self) -> bytes:
        """Path and query as they were sent."""
        path: bytes = self.request.scope["raw_path"]
        query: bytes = self.request.scope["query_string"]
        return path + b"?" + query if query else path

    @property
    def node(self) -> Node:
        return self.services.node

    @property
    def views(self) -> Views:
        return self.services.node.views

    @property
    def tables(self) -> Tables:
        return self.services.tables

    def may_access(self, vhost: str) -> bool:
        return self.identity.administrates or self.views.may_enter(self.identity.name, vhost)

    def check_client_waits(self) -> None:
        """Raises Refusal, which nobody reads, if the client has gone. That of a forwarded request counts as waiting."""
        has_disconnected: Callable[[], bool] = self.request.scope["extensions"][HAS_DISCONNECTED]
        if has_disconnected():
            raise unavailable("the client has gone")

    @property
    def visible_vhosts(self) -> frozenset[str] | None:
        """None means all of them."""
        if self.identity.administrates:
            return None
        return frozenset(name for name in self.views.vhost_names() if self.may_access(name))

    @property
    def query(self) -> ListQuery:
        return read_query(self.request.query_params)

    def flag(self, name: str) -> bool:
        """A flag in the query string."""
        return self.request.query_params.get(name) == "true"

    def client(self, vhost: str) -> AbstractAsyncContextManager[BrokerClient]:
        """A client of the broker with the user's own rights."""
        services = self.services
        return broker_client(services.node, services.clock, services.wake, user=self.identity.name, vhost=vhost)

    async def administer(self, command: AdministrativeCommand) -> None:
        """Returns once the change is committed. Raises the Fault of the broker."""
        done: asyncio.Future[Fault | None] = asyncio.get_running_loop().create_future()

        def on_done(fault: Fault | None) -> None:
            if not done.done():
                done.set_result(fault)

        self.node.administer(command, on_done)
        self.services.wake()
        try:
            async with asyncio.timeout(limits.ANSWER_S_MAX):
                fault = await done
        except TimeoutError:
            raise unavailable("the broker cannot commit changes at present: try again later") from None
        if fault is not None:
            raise of_administration_fault(fault)

    async def ask_cluster(self, ask: Callable[[Replication, OnEnded], None]) -> str:
        """Returns the result of a change of the cluster. Raises Refusal with the reason if it is impossible."""
        if not self.services.settings.cluster.key:
            raise bad_request("this broker is not part of a cluster: set cluster.key_file, and start it again")
        ended: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()

        def on_ended(done: bool, text: str) -> None:
            if not ended.done():
                ended.set_result((done, text))

        self.node.guard.tell(ask, self.node.peers, on_ended)
        self.services.wake()
        self.services.check_not_restarting()
        try:
            async with asyncio.timeout(limits.CLUSTER_CHANGE_S_MAX):
                done, text = await ended
        except TimeoutError:
            raise unavailable("the outcome is not known yet: check the cluster's status") from None
        if not done:
            raise bad_request(text)
        return text

    def show(self, row: object) -> Json:
        """One object, with the requested columns."""
        return Json(select(row, self.query.columns))

    async def show_list(self, views: Iterable[V], make_row: Callable[[V], object]) -> Encoded:
        """A few objects that are in no table, in their own order."""
        columns = self.query.columns
        rows: list[object] = []
        for view in views:
            rows.append(select(make_row(view), columns))
            if len(rows) % limits.SLICE_ROWS == 0:
                await asyncio.sleep(0)
        return await listed(self.request, Listing(msgspec.json.encode(rows)))

    # The body.

    async def read_body(self) -> None:
        """Reads a JSON object; an empty body is an empty object. A large one is not decoded here. Raises Refusal."""
        bytes_max = limits.BODY_BYTES_MAX if self.large else limits.SMALL_BODY_BYTES_MAX
        self.octets = await read_octets(self.request, bytes_max, self.share)
        self._body_bytes = len(self.octets)
        if self.digest is not None and not fits_digest(self.octets, self.digest):
            raise Refusal(
                401, "not_authorized", "the request body does not match the one that the key's proof was made for"
            )
        if not self.large:
            self._body = decode_object(self.octets)

    def give_back(self) -> None:
        """The request is over, or its body is small and takes no room any more."""
        self.share.give_back(self._body_bytes)
        self._body_bytes = 0

    def value(self, name: str, default: Any = None) -> Any:
        return self._body.get(name, default)

    def has(self, name: str) -> bool:
        return name in self._body

    def required(self, *names: str) -> list[Any]:
        """The values under these names. Raises Refusal (400) with RabbitMQ's text for the first that is missing."""
        for name in names:
            if name not in self._body:
                raise missing_key(name)
        return [self._body[name] for name in names]

    def text(self, name: str, default: str | None = None) -> str:
        value = self._body.get(name, default)
        if value is None:
            raise missing_key(name)
        if not isinstance(value, str):
            raise bad_request(f"{name} is not a string")
        return value

    def boolean(self, name: str) -> bool:
        """ "true" counts as true, as in RabbitMQ; absent is false."""
        value = self._body.get(name, False)
        if value is True or value == "true":
            return True
        if value is False or value == "false":
            return False
        raise bad_request(["not_boolean", value])

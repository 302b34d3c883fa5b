"""One request on its way through the API: who asks for what, with which body, and how it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from pandomq.admin import limits
from pandomq.admin.broker_client import BrokerClient, broker_client
from pandomq.admin.query import Query, read_query, select
from pandomq.admin.refusals import Refusal, bad_request, missing_key, of_administration_fault, too_large, unavailable
from pandomq.admin.responses import Encoded, Json, listed
from pandomq.admin.table import Listing
from pandomq.errors import Fault

if TYPE_CHECKING:
    from pandomq.admin.identity import Identity
    from pandomq.admin.meters import Meters
    from pandomq.admin.tables import Tables
    from pandomq.broker.commands import AdministrativeCommand
    from pandomq.node.cluster_notices import OnEnded
    from pandomq.node.node import Node
    from pandomq.node.replication import Replication
    from pandomq.node.settings import NodeSettings
    from pandomq.node.views import Views
    from pandomq.runtime.clock import Clock

V = TypeVar("V")


class Services(msgspec.Struct, frozen=True):
    """What the endpoints work with."""

    node: Node
    settings: NodeSettings
    clock: Clock
    wake: Callable[[], None]
    """Asks for a step of the node."""
    tables: Tables
    meters: Meters


class Call:
    __slots__ = ("_body", "_has_read", "identity", "octets", "path", "request", "services")

    def __init__(self, services: Services, request: Request, path: Mapping[str, str], identity: Identity) -> None:
        self.services = services
        self.request = request
        self.path = path
        self.identity = identity
        self.octets = b""
        """The body as it came."""
        self._body: dict[str, Any] = {}
        self._has_read = False

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

    @property
    def visible_vhosts(self) -> frozenset[str] | None:
        """None stands for all of them."""
        if self.identity.administrates:
            return None
        return frozenset(name for name in self.views.vhost_names() if self.may_access(name))

    @property
    def query(self) -> Query:
        return read_query(self.request.query_params)

    def flag(self, name: str) -> bool:
        """Of the query string."""
        return self.request.query_params.get(name) == "true"

    def client(self, vhost: str) -> AbstractAsyncContextManager[BrokerClient]:
        """A client of the broker under the user's own rights."""
        services = self.services
        return broker_client(services.node, services.clock, services.wake, user=self.identity.name, vhost=vhost)

    async def administer(self, command: AdministrativeCommand) -> None:
        """Returns once the change is committed. Raises the Fault that the broker finds with it."""
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
            raise unavailable("the broker cannot commit at present") from None
        if fault is not None:
            raise of_administration_fault(fault)

    async def ask_cluster(self, ask: Callable[[Replication, OnEnded], None]) -> str:
        """Returns what there is to say about a change of the cluster. Raises Refusal with why it is not to be."""
        if not self.services.settings.cluster.key:
            raise bad_request("this broker is alone: it has no cluster key")
        ended: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()

        def on_ended(done: bool, text: str) -> None:
            if not ended.done():
                ended.set_result((done, text))

        ask(self.node.peers, on_ended)
        self.services.wake()
        try:
            async with asyncio.timeout(limits.CLUSTER_CHANGE_S_MAX):
                done, text = await ended
        except TimeoutError:
            raise unavailable("it is not known yet how it ended: look at the status") from None
        if not done:
            raise bad_request(text)
        return text

    def show(self, row: object) -> Json:
        """One object, with the columns that were asked for."""
        return Json(select(row, self.query.columns))

    async def show_list(self, views: Iterable[V], make_row: Callable[[V], object]) -> Encoded:
        """A few objects that no table holds, in their own order."""
        columns = self.query.columns
        rows: list[object] = []
        for view in views:
            rows.append(select(make_row(view), columns))
            if len(rows) % limits.SLICE_ROWS == 0:
                await asyncio.sleep(0)
        return await listed(self.request, Listing(msgspec.json.encode(rows)))

    # The body.

    async def read_body(self) -> None:
        """A JSON object; nothing at all is an empty one. Raises Refusal."""
        if self._has_read:
            return
        self._has_read = True
        self.octets = await _read_octets(self.request)
        if not self.octets.strip():
            return
        try:
            body = msgspec.json.decode(self.octets)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise bad_request("not_json") from None
        if not isinstance(body, dict):
            raise bad_request("not_json")
        self._body = body

    def value(self, name: str, default: Any = None) -> Any:
        return self._body.get(name, default)

    def has(self, name: str) -> bool:
        return name in self._body

    def required(self, *names: str) -> list[Any]:
        """The values under these names. Raises Refusal (400) in RabbitMQ's words for the first that is missing."""
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
        """RabbitMQ takes "true" for true; absent is false."""
        value = self._body.get(name, False)
        if value is True or value == "true":
            return True
        if value is False or value == "false":
            return False
        raise bad_request(["not_boolean", value])


async def _read_octets(request: Request) -> bytes:
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > limits.BODY_BYTES_MAX:
        raise _oversized()
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.BODY_S_MAX):
            async for piece in request.stream():
                size += len(piece)
                if size > limits.BODY_BYTES_MAX:
                    raise _oversized()
                pieces.append(piece)
    except TimeoutError:
        raise Refusal(408, "bad_request", "the body did not arrive in time", {"connection": "close"}) from None
    except ClientDisconnect:
        raise Refusal(400, "bad_request", "the body did not arrive") from None
    return b"".join(pieces)


def _oversized() -> Refusal:
    # What is left of the body is not read: the connection ends with the answer.
    refusal = too_large(f"Exceeded HTTP request body size limit of {limits.BODY_BYTES_MAX} bytes")
    refusal.headers = {"connection": "close"}
    return refusal

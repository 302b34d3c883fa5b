"""All connections to the data port of one broker.

The runtime reports (`accept`, `receive`, `progressed`, `sent`, `lost`), `step` begins requests, within the node's step,
and `take_effects` returns the resulting effects. The broker closes clients that are slow or silent or send invalid
data, with a refusal where a client may read it; no connection takes more than its share of memory.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from pandomq.broker.containment import internal_failure
from pandomq.data_form import BadDataMessage
from pandomq.errors import Fault
from pandomq.kernel import NEVER_MS
from pandomq.node.clients.deadlines import Deadlines
from pandomq.node.clients.proxy_header import NotAProxyHeader
from pandomq.node.containment import contained
from pandomq.node.data import limits
from pandomq.node.data.deadlines import deadline_of
from pandomq.node.data.effects import (
    AbortSession,
    CloseSession,
    FileRange,
    PauseSession,
    ResumeSession,
    SendParts,
    SessionEffect,
)
from pandomq.node.data.handlers import HANDLERS
from pandomq.node.data.handlers.streams import settle_watch
from pandomq.node.data.hello import HELLO, say_hello
from pandomq.node.data.memory_budget import MemoryBudget
from pandomq.node.data.newcomers import Newcomers
from pandomq.node.data.outgoing import Outgoing
from pandomq.node.data.refusals import RequestRefused, bad_request, not_now, of_fault
from pandomq.node.data.session import DataSession, DataSessionState, Responder, Traffic, encode_refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pandomq.node.containment import Guard
    from pandomq.node.data.effects import PayloadPart
    from pandomq.node.data.handlers import Handler
    from pandomq.node.data.services import DataServices

log = logging.getLogger("pandomq")


class DataSessions:
    __slots__ = (
        "_deadlines",
        "_effects",
        "_handlers",
        "_newcomers",
        "_outgoing",
        "_ready",
        "_refused",
        "_room",
        "clients",
        "guard",
        "services",
        "traffic",
    )

    guard: Guard
    """The node's guard: the runtime calls the data port outside of the node's steps."""

    def __init__(self, services: DataServices, now_ms: int, handlers: Mapping[str, Handler] = HANDLERS) -> None:
        self.services = services
        self._handlers = handlers
        self.clients: dict[DataSession, None] = {}
        self._newcomers = Newcomers()
        self._refused: set[DataSession] = set()
        """Clients for which there was no room, and that receive an error."""
        self._ready: deque[DataSession] = deque()
        """Clients that may have a request to begin."""
        self._effects: list[SessionEffect] = []
        self._room: MemoryBudget[DataSession] = MemoryBudget(limits.INCOMING_BYTES_MAX)
        self._outgoing = Outgoing(limits.OUTGOING_BYTES_MAX)
        self._deadlines: Deadlines[DataSession] = Deadlines(now_ms)
        self.traffic = Traffic()

    # Reports of the runtime.

    def accept(
        self,
        socket: Any,
        peer: tuple[str, int],
        now_ms: int,
        *,
        tls: bool = False,
        certificate_name: str | None = None,
        through_proxy: bool = False,
    ) -> DataSession:
        client = DataSession(socket, peer, self.services, now_ms, tls=tls)
        client.certificate_name = certificate_name
        if through_proxy:
            client.expect_proxy(self.services.trusted_proxies())
        if not self._has_room(now_ms):
            self._reject(client)
            return client
        self.clients[client] = None
        self._newcomers.add(client)
        # The address of a trusted proxy says nothing about the client.
        if not (through_proxy and peer[0] in self.services.trusted_proxies()):
            self._locate(client)
        self._deadlines.put(client, now_ms + limits.HELLO_MS_MAX)
        return client

    def _has_room(self, now_ms: int) -> bool:
        """Whether one more client may connect; closes another one for it if need be."""
        if len(self.clients) < limits.CONNECTIONS_MAX:
            return True
        idler = self._newcomers.idler(now_ms)
        if idler is None:
            return False
        self._abort(idler, "it did not log in while others waited for room", logging.WARNING)
        self.clients.pop(idler)
        self._newcomers.forget(idler)
        return True

    def _reject(self, client: DataSession) -> None:
        if len(self._refused) >= limits.REFUSED_MAX:
            self._abort(client, f"{limits.CONNECTIONS_MAX} clients are connected, which is the limit", logging.WARNING)
            return
        log.warning(
            "data port client %s rejected: %d clients are connected, which is the limit",
            client.peer_name,
            len(self.clients),
        )
        self._refused.add(client)
        self._close(client, not_now("too many clients are connected to this broker's data port: try another broker"))

    def _came_through(self, client: DataSession) -> bool:
        """False if the proxy has named the client's address, and the client was closed for that."""
        return client.before is not None or self._locate(client)

    def _locate(self, client: DataSession) -> bool:
        """The address of the client is known. False if it was closed, because there are too many from its network."""
        if self._newcomers.locate(client):
            return True
        most = limits.NEWCOMERS_PER_NETWORK_MAX
        self._abort(client, f"{most} clients from its network have not logged in, which is the limit", logging.WARNING)
        self.clients.pop(client)
        self._newcomers.forget(client)
        return False

    @contained
    def receive(self, client: DataSession, data: bytes | memoryview, now_ms: int) -> None:
        if client.gone or client.state is DataSessionState.ENDED:
            return
        client.moved_ms = now_ms
        for traffic in (client.traffic, self.traffic):
            traffic.received_bytes += len(data)
        changes = self.services.broker.changes
        try:
            if client.before is not None:
                data = client.behind_proxy(data)
                if not self._came_through(client):
                    return
            client.scanner.feed(data)
        except NotAProxyHeader as wrong:
            self._abort(client, str(wrong), logging.WARNING)
        except Exception as error:
            self._reading_failed(client, error, changes)
        else:
            self._scan(client)

    def progressed(self, client: DataSession, now_ms: int) -> None:
        client.moved_ms = now_ms

    @contained
    def sent(self, client: DataSession, now_ms: int) -> None:
        """Everything that the client was sent is with the system."""
        client.moved_ms = now_ms
        self._settle(client)
        if client.state is not DataSessionState.ENDED:
            self._scan(client)

    @contained
    def disconnected(self, client: DataSession) -> None:
        """The socket is closed, whichever side closed it."""
        if client.gone:
            return
        client.gone = True
        client.state = DataSessionState.ENDED
        self._settle(client)
        self._room.leave(client)
        client.waits_for_room = False
        self._room.give_back(client.user, client.reserved_bytes + client.scanner.reserved_bytes)
        client.reserved_bytes = 0
        client.requests.clear()
        self.clients.pop(client, None)
        self._newcomers.forget(client)
        self._refused.discard(client)
        self._admit()

    def tick(self, now_ms: int) -> None:
        for client in self._deadlines.take_due(now_ms):
            if client.gone:
                continue
            due_ms, why = deadline_of(client, now_ms, self.services.broker.limits.data_request_ms_max)
            if now_ms < due_ms:
                # The client may begin a request long before the time between two of them is over.
                self._deadlines.put(client, min(due_ms, now_ms + limits.LOOK_MS))
                continue
            self._abort(client, why)

    @property
    def next_deadline_ms(self) -> int:
        return min(self._deadlines.next_ms, self.services.watches.next_ms) if self.clients else NEVER_MS

    @property
    def held_bytes(self) -> int:
        """The memory that large requests and answers take."""
        return self._room.taken_bytes + self._outgoing.size_bytes

    # Reading.

    def _scan(self, client: DataSession) -> None:
        """An exception closes this client, even if another client's bytes or answers made room for it. Raises
        StateInDoubt."""
        changes = self.services.broker.changes
        try:
            self._take_requests(client)
        except Exception as error:
            self._reading_failed(client, error, changes)

    def _reading_failed(self, client: DataSession, error: Exception, changes: int) -> None:
        """`changes` were counted before. Raises StateInDoubt."""
        if client.state is not DataSessionState.ENDED:
            self._close(client, of_fault(internal_failure()))
        self.services.broker.containment.note(error, changes)

    def _take_requests(self, client: DataSession) -> None:
        scanner, count = client.scanner, len(client.requests)
        self._room.of_user_max = self.services.broker.limits.data_per_user_bytes_max or limits.INCOMING_BYTES_MAX
        try:
            while not client.waits_for_room and len(client.requests) < limits.REQUESTS_AHEAD_MAX:
                request = scanner.take()
                if request is not None:
                    client.reserved_bytes += request.reserved_bytes
                    client.requests.append(request)
                elif not scanner.wants:
                    break
                elif self._room.take(client, client.user, scanner.wants):
                    scanner.admit()
                else:
                    client.waits_for_room = True
        except BadDataMessage as bad:
            self._log_malformed(client, bad)
            self._close(client, bad_request(str(bad)))
            return
        if not scanner.amid:
            client.arriving_ms = None
        elif client.arriving_ms is None or len(client.requests) > count:
            client.arriving_ms = max(client.moved_ms, self.services.now_ms)
        if client.requests and client.under_way is None:
            self._ready.append(client)
        self._pace(client)

    @staticmethod
    def _log_malformed(client: DataSession, bad: BadDataMessage) -> None:
        log.info("data port client %s disconnected, because it sent a malformed request: %s", client.peer_name, bad)

    def _pace(self, client: DataSession) -> None:
        """Nothing is read from a client that has sent much ahead, or has to wait for room."""
        paused = client.waits_for_room or len(client.requests) >= limits.REQUESTS_AHEAD_MAX
        if paused != client.reading_paused:
            client.reading_paused = paused
            self._effects.append(PauseSession(client) if paused else ResumeSession(client))

    def _admit(self) -> None:
        for client in self._room.admitted():
            client.waits_for_room = False
            # The client could not send while it waited.
            client.arriving_ms = None
            client.scanner.admit()
            self._scan(client)

    # Requests.

    def step(self, now_ms: int) -> bool:
        """Begins some of the requests; True if there are more."""
        self.services.now_ms = now_ms
        decoded_bytes = 0
        for _ in range(min(len(self._ready), limits.REQUESTS_PER_STEP_MAX)):
            if self._outgoing.is_full:
                return False
            client = self._ready.popleft()
            may_begin = client.under_way is None and client.requests and client.state is not DataSessionState.ENDED
            if may_begin and self._outgoing.has_room(client):
                json_bytes = len(client.requests[0].json)
                if decoded_bytes and decoded_bytes + json_bytes > limits.DECODED_PER_STEP_BYTES_MAX:
                    self._ready.appendleft(client)
                    return True
                decoded_bytes += json_bytes
                self._begin(client)
        return bool(self._ready) and not self._outgoing.is_full

    def _begin(self, client: DataSession) -> None:
        request = client.requests.popleft()
        answer = client.under_way = Responder(client, request.reserved_bytes, self._give)
        client.traffic.requests += 1
        self.traffic.requests += 1
        changes = self.services.broker.changes
        try:
            fields = request.decode()
            if client.state is DataSessionState.NEW:
                say_hello(client, fields, answer, self._known)
                return
            # The rights may have been revoked since the last request.
            _ = client.access
            ask = fields.get("ask")
            handler = self._handlers.get(ask) if isinstance(ask, str) else None
            if handler is None:
                raise bad_request(self._unknown(ask))
            handler(client, fields, request.payload, answer)
        except (RequestRefused, Fault) as refused:
            answer.refuse(refused, ends=client.state is DataSessionState.NEW)
        except BadDataMessage as bad:
            self._log_malformed(client, bad)
            answer.refuse(bad_request(str(bad)), ends=True)
        except Exception as error:
            if not answer.given:
                answer.refuse(internal_failure(), ends=True)
            self.services.broker.containment.note(error, changes)

    def _unknown(self, ask: object) -> str:
        if ask == HELLO:
            return "the client has already logged in: send hello only once"
        shown = ask[: limits.REQUEST_NAME_SHOWN_CHARS] if isinstance(ask, str) else ask.__class__.__name__
        return f"unknown request '{shown}'; known requests: {', '.join(sorted(self._handlers))}"

    def _known(self, client: DataSession) -> None:
        """Raises Refused (503) if its user has enough connections."""
        most = self.services.broker.limits.data_connections_per_user_max
        count = sum(other.state is DataSessionState.READY and other.user == client.user for other in self.clients)
        if count >= most > 0:
            raise not_now(
                f"user '{client.user}' has {count} connections to this broker's data port: "
                f"data_connections_per_user_max ({most}) is reached"
            )
        client.state = DataSessionState.READY
        self._newcomers.forget(client)
        client.scanner.known = True

    def _give(self, answer: Responder, parts: Sequence[PayloadPart], ends: bool) -> None:
        client = answer.client
        self._room.give_back(client.user, answer.reserved_bytes)
        client.reserved_bytes -= answer.reserved_bytes
        if client.state is not DataSessionState.ENDED:
            client.sending_bytes = sum(len(part) for part in parts if not isinstance(part, FileRange))
            for traffic in (client.traffic, self.traffic):
                traffic.sent_bytes += client.sending_bytes + _file_bytes(parts)
            self._outgoing.add(client.user, client.sending_bytes)
            self._effects.append(SendParts(client, parts))
            if ends:
                client.state = DataSessionState.ENDED
                self._effects.append(CloseSession(client))
        self._admit()

    def _settle(self, client: DataSession) -> None:
        """Nothing is being sent to the client any more."""
        self._ready += self._outgoing.remove(client.user, client.sending_bytes or 0)
        client.sending_bytes = client.under_way = None

    def _close(self, client: DataSession, refused: RequestRefused) -> None:
        """Closes the client with a refusal; it gets no pending answers."""
        client.requests.clear()
        client.state = DataSessionState.ENDED
        self._effects += (SendParts(client, [encode_refusal(refused)]), CloseSession(client))

    def _abort(self, client: DataSession, why: str, level: int = logging.INFO) -> None:
        """Closes the client without a refusal."""
        log.log(level, "data port client %s disconnected: %s", client.peer_name, why)
        client.state = DataSessionState.ENDED
        self._effects.append(AbortSession(client))

    # The end.

    def close_all(self, reason: str) -> None:
        """This node ends: all clients are closed."""
        for client in list(self.clients):
            if client.state is not DataSessionState.ENDED:
                self._close(client, not_now(reason))

    def take_effects(self) -> list[SessionEffect]:
        self.services.watches.look(self.services.now_ms, settle_watch)
        effects, self._effects = self._effects, []
        return effects


def _file_bytes(parts: Sequence[PayloadPart]) -> int:
    return sum(part.length for part in parts if isinstance(part, FileRange))

"""All connections to the data port of one broker.

The runtime reports (`accept`, `receive`, `progressed`, `sent`, `lost`), `step` begins what was asked, within the node's
step, and `take_effects` says what is to be done about it. Who is slow, silent or says what nobody understands is hung
up on, with a word where there is somebody to hear it; no connection takes more than its share of memory.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from pandomq.data_form import BadMessage
from pandomq.errors import Fault
from pandomq.kernel import NEVER_MS
from pandomq.node.data import limits
from pandomq.node.data.client import Answer, DataClient, State, encode_refusal
from pandomq.node.data.effects import Abort, Close, Effect, FileRange, PauseReading, ResumeReading, Send
from pandomq.node.data.handlers import HANDLERS
from pandomq.node.data.handlers.streams import settle_watch
from pandomq.node.data.hello import HELLO, say_hello
from pandomq.node.data.refusals import Refused, bad_request, not_now
from pandomq.node.data.room import Room
from pandomq.node.data.traffic import Traffic
from pandomq.node.deadlines import Deadlines
from pandomq.node.proxy_header import NotAProxyHeader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pandomq.node.data.effects import Part
    from pandomq.node.data.handlers import Handler
    from pandomq.node.data.services import Services

log = logging.getLogger("pandomq")


class DataDesk:
    __slots__ = (
        "_deadlines",
        "_effects",
        "_handlers",
        "_outgoing_bytes",
        "_ready",
        "_room",
        "clients",
        "services",
        "traffic",
    )

    def __init__(self, services: Services, now_ms: int, handlers: Mapping[str, Handler] = HANDLERS) -> None:
        self.services = services
        self._handlers = handlers
        self.clients: dict[DataClient, None] = {}
        self._ready: deque[DataClient] = deque()
        """Those that may have a request to begin."""
        self._effects: list[Effect] = []
        self._room: Room[DataClient] = Room(limits.INCOMING_BYTES_MAX)
        self._outgoing_bytes = 0
        self._deadlines: Deadlines[DataClient] = Deadlines(now_ms)
        self.traffic = Traffic()

    # What the runtime reports.

    def accept(
        self,
        socket: Any,
        peer: tuple[str, int],
        now_ms: int,
        *,
        tls: bool = False,
        certificate_name: str | None = None,
        through_proxy: bool = False,
    ) -> DataClient:
        client = DataClient(socket, peer, self.services, now_ms, tls=tls)
        client.certificate_name = certificate_name
        if through_proxy:
            client.before = b""
        if len(self.clients) >= limits.CONNECTIONS_MAX:
            log.warning("data client %s refused: %d are connected", client.peer_name, len(self.clients))
            self.clients[client] = None
            self._end(client, not_now("too many clients are connected to this broker's data port"))
            return client
        self.clients[client] = None
        self._deadlines.put(client, now_ms + limits.HELLO_MS_MAX)
        return client

    def receive(self, client: DataClient, data: bytes | memoryview, now_ms: int) -> None:
        if client.gone or client.state is State.ENDED:
            return
        client.moved_ms = now_ms
        for traffic in (client.traffic, self.traffic):
            traffic.received_bytes += len(data)
        if client.before is not None:
            try:
                data = client.behind_proxy(data)
            except NotAProxyHeader:
                self._drop(client, "it does not begin with a PROXY header", logging.WARNING)
                return
        client.scanner.feed(data)
        self._scan(client)

    def progressed(self, client: DataClient, now_ms: int) -> None:
        client.moved_ms = now_ms

    def sent(self, client: DataClient, now_ms: int) -> None:
        """All that it was sent is with the system."""
        client.moved_ms = now_ms
        self._settle(client)
        if client.state is not State.ENDED:
            self._scan(client)

    def lost(self, client: DataClient) -> None:
        """The socket is closed, whoever closed it."""
        if client.gone:
            return
        client.gone = True
        client.state = State.ENDED
        self._settle(client)
        self._room.leave(client)
        client.waits_for_room = False
        self._room.give_back(client.reserved_bytes + client.scanner.reserved_bytes)
        client.reserved_bytes = 0
        client.requests.clear()
        self.clients.pop(client, None)
        self._admit()

    def tick(self, now_ms: int) -> None:
        for client in self._deadlines.take_due(now_ms):
            if client.gone:
                continue
            due_ms, why = _due(client, now_ms)
            if now_ms < due_ms:
                self._deadlines.put(client, due_ms)
                continue
            self._drop(client, why)

    @property
    def next_deadline_ms(self) -> int:
        return min(self._deadlines.next_ms, self.services.watches.next_ms) if self.clients else NEVER_MS

    # Reading.

    def _scan(self, client: DataClient) -> None:
        scanner = client.scanner
        try:
            while not client.waits_for_room and len(client.requests) < limits.REQUESTS_AHEAD_MAX:
                request = scanner.take()
                if request is not None:
                    client.reserved_bytes += request.reserved_bytes
                    client.requests.append(request)
                elif not scanner.wants:
                    break
                elif self._room.take(client, scanner.wants):
                    scanner.admit()
                else:
                    client.waits_for_room = True
        except BadMessage as bad:
            log.info("data client %s said what cannot be read: %s", client.peer_name, bad)
            self._end(client, bad_request(str(bad)))
            return
        if client.requests and client.under_way is None:
            self._ready.append(client)
        self._pace(client)

    def _pace(self, client: DataClient) -> None:
        """Nothing is read from who has sent much ahead, or has to wait for room."""
        paused = client.waits_for_room or len(client.requests) >= limits.REQUESTS_AHEAD_MAX
        if paused != client.reading_paused:
            client.reading_paused = paused
            self._effects.append(PauseReading(client) if paused else ResumeReading(client))

    def _admit(self) -> None:
        for client in self._room.admitted():
            client.waits_for_room = False
            client.scanner.admit()
            self._scan(client)

    # Requests.

    def step(self, now_ms: int) -> bool:
        """Begins some of what was asked; True if there is more."""
        self.services.now_ms = now_ms
        for _ in range(min(len(self._ready), limits.REQUESTS_PER_STEP_MAX)):
            if self._outgoing_bytes >= limits.OUTGOING_BYTES_MAX:
                return False
            client = self._ready.popleft()
            if client.under_way is None and client.requests and client.state is not State.ENDED:
                self._begin(client)
        return bool(self._ready) and self._outgoing_bytes < limits.OUTGOING_BYTES_MAX

    def _begin(self, client: DataClient) -> None:
        fields, payload, reserved_bytes = client.requests.popleft()
        answer = client.under_way = Answer(client, reserved_bytes, self._give)
        client.traffic.requests += 1
        self.traffic.requests += 1
        try:
            if client.state is State.NEW:
                say_hello(client, fields, answer, self._known)
                return
            # The rights may have gone since the last request.
            _ = client.access
            ask = fields.get("ask")
            handler = self._handlers.get(ask) if isinstance(ask, str) else None
            if handler is None:
                raise bad_request("hello was said already" if ask == HELLO else "there is no such thing to ask for")
            handler(client, fields, payload, answer)
        except (Refused, Fault) as refused:
            answer.refuse(refused, ends=client.state is State.NEW)

    def _known(self, client: DataClient) -> None:
        client.state = State.READY
        client.scanner.known = True

    def _give(self, answer: Answer, parts: Sequence[Part], ends: bool) -> None:
        client = answer.client
        self._room.give_back(answer.reserved_bytes)
        client.reserved_bytes -= answer.reserved_bytes
        if client.state is not State.ENDED:
            client.sending_bytes = sum(len(part) for part in parts if not isinstance(part, FileRange))
            for traffic in (client.traffic, self.traffic):
                traffic.sent_bytes += client.sending_bytes + _file_bytes(parts)
            self._outgoing_bytes += client.sending_bytes
            self._effects.append(Send(client, parts))
            if ends:
                client.state = State.ENDED
                self._effects.append(Close(client))
        self._admit()

    def _settle(self, client: DataClient) -> None:
        """Nothing is being sent to it any more."""
        self._outgoing_bytes -= client.sending_bytes or 0
        client.sending_bytes = client.under_way = None

    def _end(self, client: DataClient, refused: Refused) -> None:
        """With a last word; whatever it waits for it does not get."""
        client.requests.clear()
        client.state = State.ENDED
        self._effects += (Send(client, [encode_refusal(refused)]), Close(client))

    def _drop(self, client: DataClient, why: str, level: int = logging.INFO) -> None:
        """Without a word."""
        log.log(level, "data client %s was hung up on: %s", client.peer_name, why)
        client.state = State.ENDED
        self._effects.append(Abort(client))

    # The end.

    def part(self, reason: str) -> None:
        """This life of the broker ends: all have to go."""
        for client in list(self.clients):
            if client.state is not State.ENDED:
                self._end(client, not_now(reason))

    def take_effects(self) -> list[Effect]:
        self.services.watches.look(self.services.now_ms, settle_watch)
        effects, self._effects = self._effects, []
        return effects


def _file_bytes(parts: Sequence[Part]) -> int:
    return sum(part.length for part in parts if isinstance(part, FileRange))


def _due(client: DataClient, now_ms: int) -> tuple[int, str]:
    """When it is to be hung up on if nothing happens, and why."""
    if client.state in (State.NEW, State.LOGGING_IN):
        return client.since_ms + limits.HELLO_MS_MAX, "it has not logged in"
    if client.sending_bytes is not None:
        return client.moved_ms + limits.STALL_MS_MAX, "it does not take its answer"
    if client.under_way is not None or client.reading_paused or client.requests:
        return now_ms + limits.STALL_MS_MAX, "it waits for this broker"
    if client.scanner.amid:
        return client.moved_ms + limits.STALL_MS_MAX, "it stopped in the middle of a request"
    return client.moved_ms + limits.IDLE_MS_MAX, "it has asked for nothing"

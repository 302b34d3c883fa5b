"""HTTP in the broker's own loop: uvicorn's protocol around an application, and limits on slow clients.

The caller passes the application (it is in a room above this one); this module has the sockets. A client has a limited
time to send its request and to read the answer, and the number of connections is limited (`http_connections`): a slow
client harms only itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from pandomq.runtime.http_connections import ConnectionLimits, HttpConnections, OpenConnection
from pandomq.runtime.listen import ListenAddress, Listener, Renewal, listening_sockets
from pandomq.runtime.socket_acceptor import SocketOwner
from pandomq.runtime.tls import TlsFiles

log = logging.getLogger("pandomq")

HEAD_BYTES_MAX: Final = 64 * 1024
"""Maximum size of a request's first line and headers."""
HEAD_S_MAX: Final = 10.0
"""From connecting, or from the first byte of a further request, until the head of the request is complete."""
IDLE_S_MAX: Final = 60.0
"""Between two requests."""
WRITE_S_MAX: Final = 30.0
"""How long a client may leave written data unread."""
DRAIN_S_MAX: Final = 2.0
"""How long a shutdown waits for unfinished answers."""
CANCEL_S_MAX: Final = 0.5
"""How long it waits after cancelling them."""
HAS_DISCONNECTED: Final = "pandomq.disconnected"
"""The extension of a request's scope that returns, when called, whether its client has disconnected."""
CONNECTION: Final = "pandomq.connection"
"""The extension of a request's scope with its `OpenConnection`."""


class HttpServer:
    def __init__(self, application: Any, limits: ConnectionLimits) -> None:
        # The loop runs already, and the application writes the log.
        self._config = Config(
            _extended(application),
            http=_Protocol,
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            interface="asgi3",
            timeout_keep_alive=int(IDLE_S_MAX),
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
        self._config.load()
        self._state = ServerState()
        self._connections = HttpConnections(limits)
        self._listeners: list[Listener] = []

    def use(self, application: Any) -> None:
        """Another application answers requests from now on."""
        self._config.loaded_app = _extended(application)
        for connection in list(self._state.connections):
            # They belong to the earlier one: a client between two requests has to reconnect.
            connection.shutdown()

    def limit(self, limits: ConnectionLimits) -> None:
        """Other limits apply to connections from now on."""
        self._connections.limits = limits

    async def listen(self, address: ListenAddress, tls: TlsFiles | None = None) -> list[ListenAddress]:
        """Returns the actual addresses (port 0 means any)."""
        owner = SocketOwner(self._connected, lambda: HEAD_S_MAX, lambda _coming: True, "http_connections_max")
        opened = [Listener(sock, owner, tls) for sock in listening_sockets(address)]
        for listener in opened:
            listener.start()
        self._listeners += opened
        return [listener.address for listener in opened]

    def read_certificates(self) -> Renewal:
        """Reads the TLS files again, for connections from then on. Raises OSError if they are unusable."""
        return Renewal(self._listeners)

    async def shut_down(self) -> None:
        """Stops accepting, waits a limited time for unfinished answers, and closes the connections."""
        for listener in self._listeners:
            await listener.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=DRAIN_S_MAX)
        if self._state.tasks:
            for task in list(self._state.tasks):
                task.cancel()
            await asyncio.wait(self._state.tasks, timeout=CANCEL_S_MAX)
        for connection in list(self._state.connections):
            cast(_Protocol, connection).transport.abort()

    def _connected(self) -> asyncio.Protocol:
        return _Protocol(self._connections, self._config, self._state)


def _extended(application: Any) -> Any:
    """The application, which can check whether the client is still connected, and has the connection."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        cycle = cast(RequestResponseCycle, send.__self__)

        def has_disconnected() -> bool:
            return cycle.disconnected or cycle.transport.is_closing()

        protocol = cast(_Protocol, cast(Any, cycle.on_response).__self__)
        scope["extensions"] = {HAS_DISCONNECTED: has_disconnected, CONNECTION: protocol.entry}
        await application(scope, receive, send)

    return answer


class _Protocol(H11Protocol):
    """uvicorn's protocol, with timeouts, and among a limited number of connections."""

    entry: OpenConnection
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _written: RequestResponseCycle | None = None
    """The request whose answer the write timer belongs to."""

    def __init__(self, connections: HttpConnections, config: Config, state: ServerState) -> None:
        super().__init__(config, state, app_state={})
        self._open = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        host = "" if self.client is None else self.client[0]
        self.entry = OpenConnection(host, transport.abort)
        self._open.enter(self.entry)
        # Writing is paused while anything is unsent, and resumes when all is sent. Zero would pause it always over TLS.
        transport.set_write_buffer_limits(high=1, low=0)
        self._head_timer = self.loop.call_later(HEAD_S_MAX, self._too_slow)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            # It was read before the connection was closed: an answer would be written to a closed connection.
            return
        super().data_received(data)
        # uvicorn's annotation hides that there is no cycle before the first request.
        cycle = cast(RequestResponseCycle | None, self.cycle)
        if cycle is not None and not cycle.response_complete:
            self._stop_head_timer()
            self._open.is_busy(self.entry)
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(HEAD_S_MAX, self._too_slow)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_S_MAX, self._too_slow)
            self._written = self.cycle

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._written is None or self._written.response_complete:
            # An answer in several pieces has the same time as one in a single piece.
            self._stop_write_timer()
        self._idle_if_answered()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.flow.write_paused:
            self._stop_write_timer()
        self._idle_if_answered()

    def _idle_if_answered(self) -> None:
        """To be called when an answer is complete, and when all that was written is sent."""
        # uvicorn's annotation hides that there is no cycle before the first request.
        cycle = cast(RequestResponseCycle | None, self.cycle)
        # If its answer is incomplete, the client has sent the next request already.
        is_answered = cycle is not None and cycle.response_complete
        if is_answered and not self.flow.write_paused and not self.transport.get_write_buffer_size():
            self._open.is_idle(self.entry)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._open.leave(self.entry)
        self._stop_head_timer()
        self._stop_write_timer()

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            log.info("HTTP client %s disconnected, because it was too slow", self.client)
        self.transport.abort()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

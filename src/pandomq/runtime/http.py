"""HTTP in the broker's own loop: uvicorn's protocol around an application, and limits on who is slow.

The application is given by whoever starts the process (it lives in a room above this one); here are the sockets. A
client has a limited time to say what it wants and to take the answer, and there is a limit on how many there are: a
slow one harms itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from pandomq.runtime.door import House
from pandomq.runtime.listen import Address, Listener, Renewal, listening_sockets
from pandomq.runtime.tls import TlsFiles

log = logging.getLogger("pandomq")

CONNECTIONS_MAX: Final = 1000
"""Beyond it requests are answered with 503."""
HEAD_BYTES_MAX: Final = 64 * 1024
"""Of a request's first line and headers."""
HEAD_S_MAX: Final = 10.0
"""From connecting, or from the first byte of a further request, until the head of the request is complete."""
IDLE_S_MAX: Final = 60.0
"""Between two requests."""
WRITE_S_MAX: Final = 30.0
"""How long a client may leave what was written to it untaken."""
DRAIN_S_MAX: Final = 2.0
"""How long a shutdown waits for answers under way."""
CANCEL_S_MAX: Final = 0.5
"""And for what it then breaks off."""
HUNG_UP: Final = "pandomq.hung_up"
"""The extension of a request's scope that says, when called, whether its client has gone."""


class HttpServer:
    def __init__(self, application: Any) -> None:
        # The loop runs already, and what there is to log the application logs.
        self._config = Config(
            _with_hung_up(application),
            http=_Protocol,
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            interface="asgi3",
            limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=int(IDLE_S_MAX),
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )
        self._config.load()
        self._state = ServerState()
        self._listeners: list[Listener] = []

    def use(self, application: Any) -> None:
        """Another application answers those who ask from now on."""
        self._config.loaded_app = _with_hung_up(application)
        for connection in list(self._state.connections):
            # They belong to the one before: who waits between two requests has to connect again.
            connection.shutdown()

    async def listen(self, address: Address, tls: TlsFiles | None = None) -> list[Address]:
        """Says where it really listens (port 0 means any)."""
        house = House(self._connected, lambda: HEAD_S_MAX, self._has_room)
        opened = [Listener(sock, house, tls) for sock in listening_sockets(address)]
        for listener in opened:
            listener.start()
        self._listeners += opened
        return [listener.address for listener in opened]

    def read_certificates(self) -> Renewal:
        """The TLS files as they are now, for connections from then on. Raises OSError if they are no good."""
        return Renewal(self._listeners)

    async def shut_down(self) -> None:
        """Stops accepting, lets answers under way be finished for a while, and hangs up."""
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

    def _has_room(self, coming: int) -> bool:
        return len(self._state.connections) + coming < CONNECTIONS_MAX

    def _connected(self) -> asyncio.Protocol:
        return _Protocol(config=self._config, server_state=self._state, app_state={})


def _with_hung_up(application: Any) -> Any:
    """The application, which can ask whether somebody is left to hear it."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        cycle = cast(RequestResponseCycle, send.__self__)

        def hung_up() -> bool:
            return cycle.disconnected or cycle.transport.is_closing()

        scope["extensions"] = {HUNG_UP: hung_up}
        await application(scope, receive, send)

    return answer


class _Protocol(H11Protocol):
    """uvicorn's, with patience that ends."""

    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_S_MAX, self._too_slow)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            # It was read before the connection was given up: whoever answered would write to what is closed.
            return
        super().data_received(data)
        # uvicorn's annotation hides that there is no cycle before the first request.
        cycle = cast(RequestResponseCycle | None, self.cycle)
        if cycle is not None and not cycle.response_complete:
            self._stop_head_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(HEAD_S_MAX, self._too_slow)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_S_MAX, self._too_slow)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_head_timer()
        self._stop_write_timer()

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            log.info("HTTP client %s was too slow: hung up", self.client)
        self.transport.abort()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

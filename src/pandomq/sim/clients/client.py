"""A client: connects, logs in, opens a channel, and reconnects when it has lost its connection.

Some clients wait for each answer, some send everything ahead. If a broker that is not the root redirects the client, it
connects to the root. Workloads are legal: a broker that closes a channel or refuses a method breaks a promise.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    ChannelClose,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    ConnectionUnblocked,
    Method,
    QueueDeclare,
)
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.network.cable import Cable
from pandomq.sim.network.frames import FRAME_MAX as FRAME_MAX
from pandomq.sim.network.frames import Heard
from pandomq.sim.queues import QueueKind
from pandomq.wire.codec import encode_frame
from pandomq.wire.handshake import PROTOCOL_HEADER

if TYPE_CHECKING:
    from pandomq.broker.administration.administration import OnDone
    from pandomq.broker.log.commands import AdministrativeCommand
    from pandomq.errors import Fault
    from pandomq.sim.scene import Scene

CHANNEL: Final = 1
CONNECTION_FORCED: Final = 320
INTERNAL_ERROR: Final = 541
REFUSED: Final = " - this broker "
"""The beginning of the reply text of a broker that does not serve."""
PATIENCE_MS: Final = 60
"""A client that lost its connection reconnects within this time."""
ROOT: Final = re.compile(r"the root is (\S+) at ")
CAPABILITIES: Final = {
    "publisher_confirms": True,
    "basic.nack": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


@functools.cache
def _start_ok(user: str, password: str, *, at_root: bool) -> bytes:
    """With `at_root` the client requires the root itself, and no front."""
    properties: dict[str, object] = {"product": "simulated", "capabilities": CAPABILITIES}
    if at_root:
        properties["connect_to_root"] = True
    return encode_frame(0, ConnectionStartOk(properties, "PLAIN", f"\0{user}\0{password}".encode(), "en_US"))


@functools.cache
def _open(vhost: str) -> bytes:
    return encode_frame(0, ConnectionOpen(vhost))


_TUNE_OK: Final = encode_frame(0, ConnectionTuneOk(100, FRAME_MAX, 0))
CHANNEL_OPEN: Final = encode_frame(CHANNEL, ChannelOpen())


class SimulatedClient:
    rest_ms = 0
    """The pause before it reconnects; 0 for any that is shorter than PATIENCE_MS."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = scene.random_of(name)
        self.line_random = scene.random_of(f"{name}'s connection")
        """The random stream of its connections; the client's own draws do not depend on how much was sent."""
        self.cable: Cable | None = None
        self.root: str | None = None
        """The broker that is known as the root."""
        self.refused = False
        """Whether the last broker refused it because it is not the root."""
        self.ready = False
        """Whether its channel is open."""
        self.leaving = False
        """Whether it does not reconnect."""
        self.blocked = False
        self.no_ack = False
        """Whether it consumes without acks: its deliveries need not come again. Consumer tags are the names of
        queues."""
        self.subscribes = False
        """Whether it consumes broadcasts from a queue of its own; it checks its deliveries when they arrive."""
        self.wants_root = False
        """Whether it uses the root even if any broker would serve it."""
        self.place: str | None = None
        """The broker that it connects to, where any broker serves; None for any."""
        self.user = self.password = "guest"
        self.vhost = "/"
        self.header = b""
        """The header of the content that it receives."""
        self._ahead = self.random.random() < 0.5

    # Methods that a kind of client implements.

    def opened(self) -> None:
        """The channel is open."""
        raise NotImplementedError

    def method(self, method: Method, body: bytes) -> None:
        """A method arrived on the channel."""
        raise self.unexpected(method, " without a request")

    def disconnected(self) -> None:
        """The connection is lost; requests without an answer will not be answered."""

    def channel_closed(self, method: ChannelClose) -> None:
        raise BrokenPromise("legal requests are served", f"{self.name}'s channel was closed: {method}")

    def connection_refused(self, method: ConnectionClose) -> None:
        """The broker closes the connection because of an action or a missing right of the client."""
        raise BrokenPromise("legal requests are served", f"{self.name}'s connection was closed: {method}")

    def unexpected(self, method: Method, why: str = "") -> BrokenPromise:
        return BrokenPromise("legal requests are served", f"{self.name} received {method}{why}")

    def hear_failure(self) -> None:
        """The broker failed at this client's request. Each injected exception may harm one client."""
        self.scene.ledger.failed += 1
        if self.scene.ledger.failed > self.scene.ledger.injected:
            raise BrokenPromise(
                "an exception affects only the client that raised it",
                f"{self.name} received an internal error",
            )

    def ask_again(self, fault: Fault | None, cable: Cable) -> None:
        """A request that this client made beside its connection was answered with this fault."""
        if fault is not None and fault.reply_code == INTERNAL_ERROR:
            self.hear_failure()
            if cable is self.cable:
                self.cut()

    @property
    def content(self) -> bool:
        """Whether it has received everything it waited for."""
        return True

    def end_wish(self) -> None:
        """The faults are over: it makes a few more requests, to show that it is served, and then none."""

    def get_queue(self) -> str:
        """Returns the queue of the next get-ok."""
        raise NotImplementedError

    # Connecting and leaving.

    def connect(self) -> None:
        if self.cable is not None or self.leaving:
            return
        self.cable = self.scene.dial(self)
        if self.cable is None:
            self.scene.agenda.after(self.random.randint(5, 100), self.connect)
            return
        self.blocked = self.refused = False
        self.cable.send(PROTOCOL_HEADER)
        if self._ahead:
            self.cable.send(self._start_ok + _TUNE_OK + _open(self.vhost) + CHANNEL_OPEN)

    def closed(self, cable: Cable) -> None:
        if cable is not self.cable:
            return
        self.cable = None
        self.ready = False
        self.scene.trace.detail(self.name, "lost its connection")
        self.disconnected()
        self._come_back()

    def _come_back(self) -> None:
        if self.refused and self.root is None:
            self.scene.await_root(self, self.rest_ms)
        else:
            delay_ms = self.rest_ms or self.random.randint(1, PATIENCE_MS)
            self.scene.agenda.after(delay_ms, self.connect)

    def cut(self) -> None:
        """The client's end of the connection is gone, and the broker must detect it."""
        cable = self.cable
        if cable is not None:
            cable.hang_up()
            self.closed(cable)

    def leave(self) -> None:
        """Closes the connection in order, and does not reconnect."""
        self.leaving = True
        if self.cable is not None:
            self.ready = False
            self.cable.send(encode_frame(0, ConnectionClose(200, "bye", 0, 0)))

    @property
    def gone(self) -> bool:
        return self.leaving and self.cable is None

    # Sending and receiving.

    def send(self, *methods: Method) -> None:
        assert self.cable is not None
        self.send_bytes(b"".join(encode_frame(CHANNEL, method) for method in methods))
        if self.scene.trace.detailed:
            for method in methods:
                self.scene.trace.detail(self.name, f"> {method}")

    def send_bytes(self, data: bytes) -> None:
        assert self.cable is not None
        self.cable.send(data)

    def act_later(self, delay_ms: int, act: Callable[[], object]) -> None:
        """Acts after the delay, if its channel is open then, on the connection that it has now."""
        cable = self.cable

        def go_on() -> None:
            if self.cable is cable and self.ready:
                act()

        self.scene.agenda.after(delay_ms, go_on)

    @property
    def reaches_broker(self) -> bool:
        """Whether the broker of its connection still runs; the client may not have noticed the end."""
        cable = self.cable
        return cable is not None and cable.machine.node is not None and cable.life == cable.machine.life

    def administer(self, command: AdministrativeCommand, on_done: OnDone) -> None:
        """Requests the change from the broker of its connection, beside the connection."""
        assert self.cable is not None and self.cable.machine.node is not None
        self.scene.trace.detail(self.name, f"> {command}")
        self.cable.machine.node.administer(command, on_done)
        self.cable.machine.wake()

    def declare(self, kind: QueueKind) -> None:
        self.send(QueueDeclare(kind.name, durable=kind.durable, arguments=kind.arguments))

    def heard(self, methods: list[Heard]) -> None:
        detailed = self.scene.trace.detailed
        for channel, method, body, header in methods:
            if detailed:
                self.scene.trace.detail(self.name, f"< {method} {body[:24].decode('latin-1')}".rstrip())
            if self.cable is None:
                return
            if channel == 0:
                self._connection_method(method)
            elif isinstance(method, ChannelOpenOk):
                self.ready = not self.leaving
                if self.ready:
                    self.opened()
            elif isinstance(method, ChannelClose):
                self.channel_closed(method)
            elif self.ready:
                self.header = header
                self.method(method, body)

    @property
    def _start_ok(self) -> bytes:
        return _start_ok(self.user, self.password, at_root=self.wants_root and self.scene.proxied)

    def _connection_method(self, method: Method) -> None:
        assert self.cable is not None
        match method:
            case ConnectionStart() if not self._ahead:
                self.cable.send(self._start_ok)
            case ConnectionTune() if not self._ahead:
                self.cable.send(_TUNE_OK + _open(self.vhost))
            case ConnectionOpenOk() if not self._ahead:
                self.cable.send(CHANNEL_OPEN)
            case ConnectionStart() | ConnectionTune() | ConnectionOpenOk():
                pass
            case ConnectionBlocked():
                self.blocked = True
            case ConnectionUnblocked():
                self.blocked = False
            case ConnectionClose(code, text):
                if code == INTERNAL_ERROR:
                    self.hear_failure()
                elif code != CONNECTION_FORCED:
                    self.connection_refused(method)
                found = ROOT.search(text)
                self.root = None if found is None else found[1]
                self.refused = REFUSED in text
                self.cable.send(encode_frame(0, ConnectionCloseOk()))
                cable = self.cable
                cable.hang_up()
                self.closed(cable)
            case ConnectionCloseOk():
                cable = self.cable
                cable.hang_up()
                self.closed(cable)
            case _:
                raise self.unexpected(method, " on channel 0")

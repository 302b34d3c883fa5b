"""A client: connects, logs in, opens a channel, and comes back when it lost its connection.

Some wait for each answer, some say everything ahead. Who came to a broker that is not the root is told where that is,
and goes there. Workloads are legal: a broker that closes a channel or refuses a method breaks a promise.
"""

from __future__ import annotations

import re
from random import Random
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
from pandomq.sim.cable import Cable
from pandomq.sim.frames import Heard
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.queues import QueueKind
from pandomq.wire.codec import encode_frame
from pandomq.wire.handshake import PROTOCOL_HEADER

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

CHANNEL: Final = 1
FRAME_MAX: Final = 8192
CONNECTION_FORCED: Final = 320
NOT_ALLOWED: Final = 530
ROOT: Final = re.compile(r"the root is (\S+) at ")
CAPABILITIES: Final = {"publisher_confirms": True, "basic.nack": True, "connection.blocked": True}


def _start_ok(**wishes: bool) -> bytes:
    properties = {"product": "simulated", "capabilities": CAPABILITIES, **wishes}
    return encode_frame(0, ConnectionStartOk(properties, "PLAIN", b"\0guest\0guest", "en_US"))


_START_OK: Final = _start_ok()
_START_OK_AT_ROOT: Final = _start_ok(connect_to_root=True)
"""Of who wants to be at the root itself, whoever could stand in for it."""
_TUNE_OK: Final = encode_frame(0, ConnectionTuneOk(100, FRAME_MAX, 0))
_OPEN: Final = encode_frame(0, ConnectionOpen("/"))
_CHANNEL_OPEN: Final = encode_frame(CHANNEL, ChannelOpen())


class Client:
    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = Random(scene.random.getrandbits(64))
        self.cable: Cable | None = None
        self.root: str | None = None
        """The broker that is said to be the root."""
        self.refused = False
        """By a broker that is not."""
        self.ready = False
        """Its channel is open."""
        self.leaving = False
        """It does not come back."""
        self.blocked = False
        self.no_ack = False
        """What it is sent need not come again. Consumer tags are the names of queues."""
        self.subscribes = False
        """To what is said to all, from a queue of its own: what it hears is looked at where it is heard."""
        self.wants_root = False
        """Even where any broker would do."""
        self.header = b""
        """Of the content that it hears."""
        self._ahead = self.random.random() < 0.5

    # What a kind of client does.

    def opened(self) -> None:
        """The channel is open."""
        raise NotImplementedError

    def method(self, method: Method, body: bytes) -> None:
        """On the channel."""
        raise NotImplementedError

    def disconnected(self) -> None:
        """Nothing that was not answered will be."""

    def channel_closed(self, method: ChannelClose) -> None:
        raise BrokenPromise("legal requests are served", f"{self.name}'s channel was closed: {method}")

    @property
    def content(self) -> bool:
        """It has all it waited for."""
        return True

    def end_wish(self) -> None:
        """The faults are over: it wants a little more, to see that it is served, and then no more."""

    def get_queue(self) -> str:
        """From which queue the next get-ok is."""
        raise NotImplementedError

    # Coming and going.

    def connect(self) -> None:
        if self.cable is not None or self.leaving:
            return
        self.cable = self.scene.dial(self)
        if self.cable is None:
            self.scene.agenda.after(self.random.randint(5, 100), self.connect)
            return
        self.blocked = False
        self.cable.send(PROTOCOL_HEADER)
        if self._ahead:
            self.cable.send(self._start_ok + _TUNE_OK + _OPEN + _CHANNEL_OPEN)

    def closed(self, cable: Cable) -> None:
        if cable is not self.cable:
            return
        self.cable = None
        self.ready = False
        self.scene.trace.detail(self.name, "lost its connection")
        self.disconnected()
        # Where there is no root now there will not be one in a moment.
        patience_ms = 60 if self.root is not None or not self.refused else 200
        self.scene.agenda.after(self.random.randint(1, patience_ms), self.connect)

    def cut(self) -> None:
        """Its connection is gone, and the broker has to find out."""
        cable = self.cable
        if cable is not None:
            cable.hang_up()
            self.closed(cable)

    def leave(self) -> None:
        """For good, in order."""
        self.leaving = True
        if self.cable is not None:
            self.ready = False
            self.cable.send(encode_frame(0, ConnectionClose(200, "bye", 0, 0)))

    @property
    def gone(self) -> bool:
        return self.leaving and self.cable is None

    # Talking.

    def send(self, *methods: Method) -> None:
        assert self.cable is not None
        self.send_bytes(b"".join(encode_frame(CHANNEL, method) for method in methods))
        if self.scene.trace.detailed:
            for method in methods:
                self.scene.trace.detail(self.name, f"> {method}")

    def send_bytes(self, data: bytes) -> None:
        assert self.cable is not None
        self.cable.send(data)

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
        return _START_OK_AT_ROOT if self.wants_root and self.scene.proxied else _START_OK

    def _connection_method(self, method: Method) -> None:
        assert self.cable is not None
        match method:
            case ConnectionStart() if not self._ahead:
                self.cable.send(self._start_ok)
            case ConnectionTune() if not self._ahead:
                self.cable.send(_TUNE_OK + _OPEN)
            case ConnectionOpenOk() if not self._ahead:
                self.cable.send(_CHANNEL_OPEN)
            case ConnectionStart() | ConnectionTune() | ConnectionOpenOk():
                pass
            case ConnectionBlocked():
                self.blocked = True
            case ConnectionUnblocked():
                self.blocked = False
            case ConnectionClose(code, text):
                elsewhere = code == NOT_ALLOWED and text.startswith("NOT_ALLOWED - this broker is ")
                if code != CONNECTION_FORCED and not elsewhere:
                    raise BrokenPromise("legal requests are served", f"{self.name}'s connection was closed: {method}")
                found = ROOT.search(text)
                self.root = None if found is None else found[1]
                self.refused = elsewhere
                self.cable.send(encode_frame(0, ConnectionCloseOk()))
                cable = self.cable
                cable.hang_up()
                self.closed(cable)
            case ConnectionCloseOk():
                cable = self.cable
                cable.hang_up()
                self.closed(cable)
            case _:
                raise BrokenPromise("legal requests are served", f"{self.name} heard {method} on channel 0")

"""A client's side of a conversation with `wire.Connection`, and a scanner that is too simple to be wrong."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from pandomq.errors import ConnectionFault
from pandomq.ids import VhostName
from pandomq.kernel import Frame, PublishRun, ScanFault, SettleRun
from pandomq.methods import (
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    Method,
)
from pandomq.wire.codec import decode_method, encode_frame
from pandomq.wire.connection import Connection, FrameScanner
from pandomq.wire.inputs import Faulted, Input, Login, OpenVhost, PeerClosed
from pandomq.wire.offer import Offer
from pandomq.wire.states import ConnectionState

HEADER = b"AMQP\x00\x00\x09\x01"
GUEST = b"\0guest\0guest"
KNOWS_EVERYTHING = {"capabilities": {"authentication_failure_close": True, "connection.blocked": True}}
OFFER = Offer(version="1.2.3", cluster_name="test")
BODY_FRAME = 3


class Run(NamedTuple):
    """Stands for a run of publishes: a body frame that arrived."""

    payload: bytes


class TinyScanner:
    """Every body frame is a run, every other frame comes as it is, and a wrong end octet is a fault."""

    def __init__(self, frame_max: int, body_size_max: int) -> None:
        self.frame_max = frame_max
        self.body_size_max = body_size_max
        self._held = b""
        self._broken = False

    @property
    def buffered_bytes(self) -> int:
        return len(self._held)

    def feed(self, data: bytes | memoryview) -> list[Any]:
        items: list[Any] = []
        self._held += data
        while not self._broken and len(self._held) >= 7:
            kind, channel, size = struct.unpack_from(">BHI", self._held)
            if size > self.frame_max - 8:
                self._broken = True
                items.append(ScanFault(501, "FRAME_ERROR - too large", 0, 0))
            elif len(self._held) < size + 8:
                break
            elif self._held[size + 7] != 0xCE:
                self._broken = True
                items.append(ScanFault(501, "FRAME_ERROR - no end", 0, 0))
            else:
                payload = self._held[7 : size + 7]
                items.append(Run(payload) if kind == BODY_FRAME else Frame(kind, channel, payload))
                self._held = self._held[size + 8 :]
        return items


def body_frame(payload: bytes) -> bytes:
    return struct.pack(">BHI", BODY_FRAME, 1, len(payload)) + payload + b"\xce"


def new_connection(
    offer: Offer = OFFER, now_ms: int = 0, make_scanner: Callable[[int, int], FrameScanner] = TinyScanner
) -> Connection:
    return Connection(offer, make_scanner, now_ms)


def frames_of(data: bytes) -> list[tuple[int, int, bytes]]:
    """All frames in these octets."""
    frames = []
    while data:
        kind, channel, size = struct.unpack_from(">BHI", data)
        assert data[7 + size] == 0xCE
        frames.append((kind, channel, data[7 : 7 + size]))
        data = data[8 + size :]
    return frames


def sent(connection: Connection) -> list[Method]:
    """The methods that the connection wants to send on channel 0."""
    frames = frames_of(connection.data_to_send())
    assert all((kind, channel) == (1, 0) for kind, channel, _ in frames)
    return [decode_method(payload) for _, _, payload in frames]


def start_ok(
    mechanism: str = "PLAIN", response: bytes = GUEST, client_properties: dict[str, Any] | None = None
) -> bytes:
    properties = KNOWS_EVERYTHING if client_properties is None else client_properties
    return encode_frame(0, ConnectionStartOk(properties, mechanism, response, "en_US"))


def tune_ok(channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 60) -> bytes:
    return encode_frame(0, ConnectionTuneOk(channel_max, frame_max, heartbeat))


def open_vhost(vhost: str = "/") -> bytes:
    return encode_frame(0, ConnectionOpen(vhost))


def started(offer: Offer = OFFER) -> Connection:
    """Has said hello and waits for start-ok."""
    connection = new_connection(offer)
    assert connection.receive(HEADER) == []
    assert [type(method) for method in sent(connection)] == [ConnectionStart]
    return connection


def logged_in(client_properties: dict[str, Any] | None = None, offer: Offer = OFFER) -> Connection:
    """Waits for tune-ok."""
    connection = started(offer)
    (login,) = connection.receive(start_ok(client_properties=client_properties))
    assert isinstance(login, Login)
    assert connection.accept_login() == []
    assert [type(method) for method in sent(connection)] == [ConnectionTune]
    return connection


def running(
    client_properties: dict[str, Any] | None = None, *, heartbeat: int = 60, frame_max: int = 131072, now_ms: int = 0
) -> Connection:
    """Has opened its vhost."""
    connection = logged_in(client_properties)
    assert connection.receive(tune_ok(heartbeat=heartbeat, frame_max=frame_max) + open_vhost()) == [
        OpenVhost(VhostName("/"))
    ]
    assert connection.accept_vhost(now_ms) == []
    assert sent(connection) == [ConnectionOpenOk()]
    return connection


def in_state(connection: Connection, state: ConnectionState) -> bool:
    """Asked by a function, lest the type checker believe that a state stays as it was."""
    return connection.state is state


def fault_in(inputs: list[Input]) -> ConnectionFault:
    """The one fault that these inputs consist of."""
    (faulted,) = inputs
    assert isinstance(faulted, Faulted)
    return faulted.fault


def entries(run: Any) -> list[Any]:
    """Returns the elements of a run; the ends of runs depend on the ends of reads."""
    return [run[position] for position in range(len(run))]


class Conversation(NamedTuple):
    """The result of a stream of octets, comparable: the events of both sides, in order."""

    inputs: list[Any]
    octets: bytes


def converse(
    pieces: list[bytes],
    let_in: Callable[[Login], bool] = lambda _: True,
    make_scanner: Callable[[int, int], FrameScanner] = TinyScanner,
) -> Conversation:
    """Feeds the pieces to a new connection and answers as a broker does that lets everybody in."""
    connection = new_connection(make_scanner=make_scanner)
    seen: list[Any] = []
    octets = b""

    def handle(inputs: list[Input]) -> None:
        nonlocal octets
        for item in inputs:
            match item:
                case Login():
                    seen.append(item)
                    octets += connection.data_to_send()
                    if let_in(item):
                        handle(connection.accept_login())
                    else:
                        connection.refuse_login(item, 0)
                case OpenVhost():
                    seen.append(item)
                    octets += connection.data_to_send()
                    handle(connection.accept_vhost(0))
                case Faulted(fault):
                    seen.append((fault.reply_code, fault.reply_text, fault.class_id, fault.method_id))
                    connection.close(fault, 0)
                case PeerClosed():
                    seen.append(item)
                    connection.confirm_close()
                case PublishRun():
                    seen.extend((at, sent.routing, sent.header, sent.body, flags) for at, sent, flags in entries(item))
                case SettleRun():
                    seen.extend(entries(item))
                case _:
                    seen.append(item)
            octets += connection.data_to_send()

    for piece in pieces:
        handle(connection.receive(memoryview(piece)))
        octets += connection.data_to_send()
    return Conversation(seen, octets)

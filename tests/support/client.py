"""Connections that show what the broker sends, method by method.

The connection interprets and answers nothing by itself, except that it assembles contents and separates methods by
channel. An unexpected method fails the test with a message that shows the method.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.channel import Channel
from tests.support.closing import ClosedByBrokerError, check_close
from tests.support.fields import parse_content_header
from tests.support.frames import (
    BODY,
    HEADER,
    HEARTBEAT,
    METHOD,
    PATIENCE_S,
    PROTOCOL_HEADER,
    EndOfStreamError,
    FrameSocket,
    Stream,
    dial,
)
from tests.support.methods import CONTENT_METHODS, Method, decode, encode

CAPABILITIES = {
    "publisher_confirms": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
    "exchange_exchange_bindings": True,
}


@dataclass(frozen=True)
class Address:
    """The address of a broker, and the login."""

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    vhost: str = "/"

    @classmethod
    def of_url(cls, url: str) -> Address:
        parts = urlsplit(url)
        vhost = unquote(parts.path[1:]) or "/"
        login = (parts.username or "guest", parts.password or "guest")
        return cls(parts.hostname or "127.0.0.1", parts.port or 5672, *login, vhost)


class Connection(FrameSocket):
    """A connection with the inboxes of its channels."""

    def __init__(self, address: Address, stream: Stream | None = None) -> None:
        super().__init__(dial(address.host, address.port) if stream is None else stream)
        self.address = address
        self.frame_max = 4096
        self.heartbeats_seen = 0
        self.frames_seen: list[tuple[int, int, int]] = []
        self.methods_seen: list[Method] = []
        """All methods in the order of their arrival, on any channel."""
        self.declared: set[tuple[str, str]] = set()
        self._inboxes: dict[int, deque[Method]] = defaultdict(deque)
        self._incomplete: dict[int, tuple[Method, int]] = {}
        self._numbers = itertools.count(1)

    # Opening and closing

    def log_in(
        self,
        *,
        mechanism: str = "PLAIN",
        response: bytes | None = None,
        client_properties: dict[str, Any] | None = None,
    ) -> Method:
        """Performs the handshake from the protocol header to tune; returns the tune."""
        self.send_bytes(PROTOCOL_HEADER)
        self.server_properties = self.expect("connection.start").server_properties
        if response is None:
            response = f"\0{self.address.user}\0{self.address.password}".encode()
        if client_properties is None:
            client_properties = {"product": "spec tests", "capabilities": CAPABILITIES}
        answer: dict[str, Any] = {"mechanism": mechanism, "response": response, "locale": "en_US"}
        self.send("connection.start-ok", 0, client_properties=client_properties, **answer)
        return self.expect("connection.tune")

    def tune_and_open(
        self, *, channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 0, vhost: str | None = None
    ) -> None:
        self.send("connection.tune-ok", channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
        self.frame_max = frame_max or 131072
        self.send("connection.open", virtual_host=self.address.vhost if vhost is None else vhost)
        self.expect("connection.open-ok")

    @classmethod
    def opened(
        cls,
        address: Address,
        stream: Stream | None = None,
        *,
        client_properties: dict[str, Any] | None = None,
        **tune: Any,
    ) -> Connection:
        connection = cls(address, stream)
        connection.log_in(client_properties=client_properties)
        connection.tune_and_open(**tune)
        return connection

    def close(self) -> None:
        """Closes in order; the socket is closed afterwards in any case."""
        try:
            self.send("connection.close", reply_code=200, reply_text="bye")
            while self.receive().name != "connection.close-ok":
                pass
        finally:
            self.drop()

    # Sending

    def send(self, name: str, channel: int = 0, **arguments: Any) -> None:
        self._remember(name, arguments)
        self.send_frame(METHOD, channel, encode(name, **arguments))

    def _remember(self, name: str, arguments: dict[str, Any]) -> None:
        """Notes what has to be deleted after the test."""
        if name in ("queue.declare", "exchange.declare"):
            kind = name.split(".")[0]
            if isinstance(arguments.get(kind), str) and arguments[kind] and not arguments.get("passive"):
                self.declared.add((kind, arguments[kind]))

    # Receiving

    def receive(self, channel: int = 0, timeout_s: float = PATIENCE_S) -> Method:
        """Returns the next method on a channel, with its content."""
        while not self._inboxes[channel]:
            if channel and self._inboxes[0] and self._inboxes[0][0].name == "connection.close":
                raise ClosedByBrokerError(self._inboxes[0][0], f"a method on channel {channel}")
            self.take_in(timeout_s)
        return self._inboxes[channel].popleft()

    def take_in(self, timeout_s: float = PATIENCE_S) -> None:
        """Reads one frame. A method that it completes is then in `methods_seen`, and can be received."""
        kind, channel, payload = self.read_frame(timeout_s)
        self.frames_seen.append((kind, channel, len(payload)))
        if kind == HEARTBEAT:
            assert (channel, payload) == (0, b"")
            self.heartbeats_seen += 1
            return
        if kind == METHOD:
            assert channel not in self._incomplete, "a method in the middle of a content"
            method = decode(payload)
            method.channel = channel
            if method.name in CONTENT_METHODS:
                self._incomplete[channel] = (method, -1)
            else:
                self._arrived(method)
            return
        self._take_content(kind, channel, payload)

    def _take_content(self, kind: int, channel: int, payload: bytes) -> None:
        method, missing = self._incomplete[channel]
        if missing < 0:
            assert kind == HEADER, f"frame type {kind} in place of a content header"
            method.header = payload
            missing, method.properties = parse_content_header(payload)
        else:
            assert kind == BODY, f"frame type {kind} in place of a body"
            assert 0 < len(payload) <= missing
            method.body += payload
            missing -= len(payload)
        if missing:
            self._incomplete[channel] = (method, missing)
        else:
            del self._incomplete[channel]
            self._arrived(method)

    def _arrived(self, method: Method) -> None:
        self.methods_seen.append(method)
        self._inboxes[method.channel].append(method)

    def expect(self, name: str, channel: int = 0, timeout_s: float = PATIENCE_S) -> Method:
        """Returns the next method, which has to be this one."""
        method = self.receive(channel, timeout_s)
        if method.name in ("channel.close", "connection.close") and method.name != name:
            raise ClosedByBrokerError(method, name)
        assert method.name == name, f"wanted {name}, got {method}"
        return method

    def expect_close(self, code: int, text: str, cause: str | None = None) -> None:
        """The broker closes the connection for this reason; then, once that is answered, the socket."""
        check_close(self.expect("connection.close"), code, text, cause)
        self.send("connection.close-ok")
        self.expect_eof()

    def expect_end(self) -> None:
        """The broker ends a conversation that it cannot parse, with or without a connection.close."""
        try:
            assert self.receive().name == "connection.close"
        except EndOfStreamError:
            return
        self.send("connection.close-ok")
        self.expect_eof()

    def expect_eof(self, timeout_s: float = PATIENCE_S) -> None:
        try:
            found = self.receive(0, timeout_s)
        except EndOfStreamError:
            return
        raise AssertionError(f"wanted the end of the stream, got {found}")

    # Channels

    def channel(self, number: int | None = None) -> Channel:
        """Opens a channel."""
        channel = Channel(self, next(self._numbers) if number is None else number)
        channel.rpc("channel.open")
        return channel


Connect = Callable[..., Connection]
__all__ = ["Address", "Channel", "ClosedByBrokerError", "Connect", "Connection"]

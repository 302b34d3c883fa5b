"""A node, and connections to its data port without sockets."""

from __future__ import annotations

from random import Random
from typing import Any

from pandomq import data_form
from pandomq.node.data.effects import AbortSession, CloseSession, FileRange, PauseSession, ResumeSession, SendParts
from pandomq.node.data.session import DataSession
from pandomq.node.node import Node
from pandomq.node.output import VerifyPassword
from pandomq.node.settings import NodeSettings

Fields = dict[str, Any]
PEER = ("127.0.0.1", 4000)
HELLO: Fields = {"ask": "hello", "version": 1, "user": "guest", "password": "guest", "vhost": "/"}


def encode(fields: Fields, payload: bytes = b"") -> bytes:
    return data_form.encode_json(fields, len(payload)) + payload


class Connection:
    """A connection of the data port, from the client's side."""

    def __init__(self, port: DataPort, peer: tuple[str, int] = PEER, **arrival: Any) -> None:
        self._port = port
        self.octets = b""
        self.closed = self.aborted = self.reading_paused = False
        self.takes = True
        """It reads what it is sent."""
        self.untaken = False
        self.client: DataSession = port.node.data.accept(self, peer, port.now_ms, **arrival)
        port.connections.append(self)
        port.step()

    def say(self, *requests: Fields, payload: bytes = b"") -> None:
        self.say_octets(b"".join(encode(fields, payload) for fields in requests))

    def say_octets(self, octets: bytes) -> None:
        self._port.node.data.receive(self.client, memoryview(octets), self._port.now_ms)
        self._port.step()

    def greet(self, **other: object) -> Fields:
        self.say({**HELLO, **other})
        return self.answer()

    def ask(self, fields: Fields, payload: bytes = b"") -> Fields:
        self.say(fields, payload=payload)
        return self.answer()

    def answer(self) -> Fields:
        """The next one; its payload is in `payload`."""
        head = data_form.HEAD.size
        sizes = data_form.decode_head(self.octets[:head], data_form.DATA_ANSWER_BYTES_MAX)
        fields = data_form.decode_json(self.octets[head : head + sizes.json_bytes])
        self.payload = self.octets[head + sizes.json_bytes : head + sizes.total]
        self.octets = self.octets[head + sizes.total :]
        return fields

    def take(self) -> None:
        """Takes the sent bytes; the client reads again."""
        self.takes = True
        if self.untaken:
            self.untaken = False
            self._port.node.data.sent(self.client, self._port.now_ms)
            self._port.step()

    def lose(self) -> None:
        self._port.node.data.disconnected(self.client)
        self._port.step()


class DataPort:
    def __init__(self, node: Node | None = None) -> None:
        self.now_ms = 1_000_000
        self.node = node or Node(NodeSettings(password_log_cost=2), Random(1), self.now_ms)
        self.connections: list[Connection] = []
        self.step()

    def connect(self, peer: tuple[str, int] = PEER, **arrival: Any) -> Connection:
        return Connection(self, peer, **arrival)

    def known(self) -> Connection:
        connection = self.connect()
        assert connection.greet()["node"] == "n1"
        return connection

    def pass_ms(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        self.node.tick(self.now_ms)
        self.step()

    def step(self) -> None:
        while True:
            output = self.node.step(self.now_ms)
            for control in output.controls:
                if isinstance(control, VerifyPassword):
                    fits = control.question.fits()
                    self.node.verified(control.attempt, control.question, fits=fits, now_ms=self.now_ms)
            for effect in output.data:
                self._carry_out(effect)
            if not (output.more or output.controls or output.data):
                return

    def _carry_out(self, effect: object) -> None:
        assert isinstance(effect, SendParts | CloseSession | AbortSession | PauseSession | ResumeSession)
        connection: Connection = effect.client.socket
        match effect:
            case SendParts(client, parts):
                for part in parts:
                    assert not isinstance(part, FileRange)
                    connection.octets += part
                if connection.takes:
                    self.node.data.sent(client, self.now_ms)
                else:
                    connection.untaken = True
            case CloseSession():
                connection.closed = True
            case AbortSession():
                connection.aborted = True
                self.node.data.disconnected(effect.client)
            case PauseSession():
                connection.reading_paused = True
            case ResumeSession():
                connection.reading_paused = False

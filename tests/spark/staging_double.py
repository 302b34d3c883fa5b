"""A data port in this process that implements staged batches alone, as simply as possible.

It keeps everything in dictionaries, publishes into a list, and fails on request. Other tests use real brokers; this one
is the second definition of the behaviour on which the sink may rely.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from pandomq import data_form
from pandomq.fieldtable import encode_table
from pandomq.properties import Properties, decode_header
from tests.support.frames import BODY, HEADER, METHOD, PROTOCOL_HEADER, frame

START = struct.pack(">HHBB", 10, 10, 0, 9)


class Published(NamedTuple):
    exchange: str
    routing_key: str
    properties: Properties
    body: bytes


class Refusal(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code, self.text = code, text


class HangUp(Exception):
    """The connection breaks before an answer."""


class StagingDouble:
    """A root whose AMQP port only returns the address of the data port."""

    def __init__(self) -> None:
        self.staged: dict[tuple[str, int, int, str], list[bytes]] = defaultdict(list)
        self.decided: dict[str, int] = {}
        self.published: list[Published] = []
        self.asks: list[dict[str, Any]] = []
        self.before: Callable[[dict[str, Any]], None] = lambda asked: None
        """Called with each request; may raise Refusal or HangUp."""
        self.after: Callable[[dict[str, Any]], None] = lambda asked: None
        """The same once it is done, and not answered yet."""
        self.taken: Callable[[Published], bool] = lambda message: True
        """Whether there is a queue for it."""
        self._lock = threading.Lock()
        self._data = serve(self._converse)
        self._amqp = serve(self._greet)

    @property
    def url(self) -> str:
        return f"amqp://guest:secret-of-the-double@127.0.0.1:{self._amqp.server_address[1]}"

    def end(self) -> None:
        for server in (self._data, self._amqp):
            server.shutdown()
            server.server_close()

    def _greet(self, connection: socket.socket) -> None:
        assert connection.recv(8) == PROTOCOL_HEADER
        properties = {"product": "double", "data": f"127.0.0.1:{self._data.server_address[1]}"}
        words = START + encode_table(properties) + struct.pack(">I5sI5s", 5, b"PLAIN", 5, b"en_US")
        connection.sendall(frame(METHOD, 0, words))
        connection.recv(1)

    def _converse(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while head := stream.read(data_form.HEAD.size):
            sizes = data_form.decode_head(head)
            asked = data_form.decode_json(stream.read(sizes.json_bytes))
            payload = stream.read(sizes.payload_bytes)
            with self._lock:
                try:
                    answer = self._answer(asked, payload)
                except Refusal as refusal:
                    answer = {"error": refusal.code, "text": refusal.text}
                except HangUp:
                    return
            connection.sendall(data_form.encode_json(answer))

    def _answer(self, asked: dict[str, Any], payload: bytes) -> dict[str, Any]:
        if asked["ask"] == "hello":
            return {"node": "double", "role": "root", "root": "", "brokers": []}
        self.asks.append(asked)
        self.before(asked)
        answer: dict[str, Any] = getattr(self, f"_{asked['ask']}")(asked, payload)
        self.after(asked)
        return answer

    def _stage(self, asked: dict[str, Any], payload: bytes) -> dict[str, Any]:
        if asked["batch"] <= self.decided.get(asked["query"], -1):
            return {"decided": True}
        if not 0 < len(payload) <= 8 << 20:
            raise Refusal(406, f"a part of {len(payload)} bytes")
        lost = [message for message in read_publishes(payload) if not self.taken(message)]
        if lost and asked.get("unroutable") == "fail":
            raise Refusal(312, f"NO_ROUTE - no queue is bound for a message with routing key '{lost[0].routing_key}'")
        parts = self.staged[asked["query"], asked["batch"], asked["partition"], asked["attempt"]]
        if asked["part"] > len(parts):
            raise Refusal(406, "a part is missing")
        if asked["part"] == len(parts):
            parts.append(payload)
        return {}

    def _commit(self, asked: dict[str, Any], _payload: bytes) -> dict[str, Any]:
        query, batch, lost = asked["query"], asked["batch"], 0
        if batch > self.decided.get(query, -1):
            chosen = []
            for partition, attempt, count in asked["attempts"]:
                parts = self.staged.get((query, batch, partition, attempt), [])
                if len(parts) != count:
                    raise Refusal(404, "an attempt is not staged, or not whole")
                chosen += parts
            self.decided[query] = batch
            messages = [message for part in chosen for message in read_publishes(part)]
            self.published += filter(self.taken, messages)
            lost = sum(not self.taken(message) for message in messages)
        for key in [key for key in self.staged if key[:2] == (query, batch)]:
            del self.staged[key]
        return {"unroutable": lost} if lost else {}

    def _last_batch(self, asked: dict[str, Any], _payload: bytes) -> dict[str, Any]:
        return {"batch": self.decided.get(asked["query"], -1)}

    def _drop(self, asked: dict[str, Any], _payload: bytes) -> dict[str, Any]:
        for partition, attempt in asked["attempts"]:
            self.staged.pop((asked["query"], asked["batch"], partition, attempt), None)
        return {}


def read_publishes(part: bytes) -> list[Published]:
    """Parses the frames of a part; anything unexpected is an assertion."""
    found: list[Published] = []
    offset = 0
    while offset < len(part):
        kind, payload, offset = read_frame(part, offset)
        assert kind == METHOD and payload[:6] == struct.pack(">HHH", 60, 40, 0) and payload[-1:] == b"\0"
        exchange, end = read_short_string(payload, 6)
        routing_key, end = read_short_string(payload, end)
        assert end == len(payload) - 1
        kind, payload, offset = read_frame(part, offset)
        assert kind == HEADER
        size, properties = decode_header(payload)
        body = b""
        while len(body) < size:
            kind, payload, offset = read_frame(part, offset)
            assert kind == BODY and 0 < len(payload) <= 131072 - 8
            body += payload
        assert len(body) == size
        found.append(Published(exchange, routing_key, properties, body))
    return found


def read_frame(part: bytes, offset: int) -> tuple[int, bytes, int]:
    kind, channel, size = struct.unpack_from(">BHI", part, offset)
    end = offset + 7 + size
    assert channel == 1 and part[end] == 0xCE
    return kind, part[offset + 7 : end], end + 1


def read_short_string(payload: bytes, offset: int) -> tuple[str, int]:
    end = offset + 1 + payload[offset]
    return payload[offset + 1 : end].decode(), end


def serve(converse: Callable[[socket.socket], None]) -> socketserver.ThreadingTCPServer:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                converse(self.request)
            except OSError:
                # The client has disconnected.
                return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server

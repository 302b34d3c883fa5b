"""Stands in for a broker: its AMQP port says where its data port is, and that answers as a function says."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from pandomq import data_form
from pandomq.fieldtable import encode_table

Fields = dict[str, Any]
Reply = tuple[Fields, bytes] | None
"""None: it hangs up instead."""
Behaviour = Callable[[Fields, bytes], Reply]


class BrokerDouble:
    def __init__(
        self, behaviour: Behaviour, *, role: str = "root", root: str = "", properties: Fields | None = None
    ) -> None:
        self.behaviour = behaviour
        self.role, self.root = role, root
        self.asked: list[Fields] = []
        self._amqp, self._data = _listening(), _listening()
        self.data_address = f"127.0.0.1:{self._data.getsockname()[1]}"
        self.properties = {"data": f":{self._data.getsockname()[1]}"} if properties is None else properties
        self._open: list[socket.socket] = []
        for sock, serve in ((self._amqp, self._serve_amqp), (self._data, self._serve_data)):
            threading.Thread(target=self._accept, args=(sock, serve), daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._amqp.getsockname()[1]}"

    @property
    def url(self) -> str:
        return f"amqp://user:secret@{self.host}"

    def end(self) -> None:
        for sock in (self._amqp, self._data, *self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self, listening: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self._open.append(connection)
                threading.Thread(target=_quietly, args=(serve, connection), daemon=True).start()

    def _serve_amqp(self, connection: socket.socket) -> None:
        assert connection.recv(8) == b"AMQP\x00\x00\x09\x01"
        arguments = struct.pack(">HHBB", 10, 10, 0, 9) + encode_table(self.properties) + b"\0\0\0\5PLAIN\0\0\0\5en_US"
        connection.sendall(struct.pack(">BHI", 1, 0, len(arguments)) + arguments + b"\xce")
        connection.close()

    def _serve_data(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(data_form.HEAD.size):
                sizes = data_form.decode_head(head)
                fields = data_form.decode_json(stream.read(sizes.json_bytes))
                payload = stream.read(sizes.payload_bytes)
                self.asked.append(fields)
                reply = self._greet(fields) if fields["ask"] == "hello" else self.behaviour(fields, payload)
                if reply is None:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                connection.sendall(data_form.encode_json(reply[0], len(reply[1])) + reply[1])

    def _greet(self, fields: Fields) -> Reply:
        if (fields["user"], fields["password"]) != ("user", "secret"):
            return {"error": 403, "text": "login refused"}, b""
        root = self.data_address if self.role == "root" else self.root
        return {"node": "double", "role": self.role, "root": root, "brokers": []}, b""


def _listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def _quietly(serve: Callable[[socket.socket], None], connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        serve(connection)


@contextlib.contextmanager
def broker_double(behaviour: Behaviour, **more: Any) -> Iterator[BrokerDouble]:
    double = BrokerDouble(behaviour, **more)
    try:
        yield double
    finally:
        double.end()

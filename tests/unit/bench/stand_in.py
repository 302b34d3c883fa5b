"""A stand-in for a broker, as a publisher with confirms sees one: lets it in or refuses, confirms or says nothing."""

from __future__ import annotations

import contextlib
import socket
import threading

from pika import frame, spec

from pandomq.bench.client.url import BrokerUrl

CONFIRM, SILENT, REFUSE, NACK = "confirm", "silent", "refuse", "nack"


class StandIn:
    """Each connection is served by a thread; `mood` may be changed at any time."""

    def __init__(self, mood: str = CONFIRM) -> None:
        self.mood = mood
        self.numbers: list[int] = []
        """Of all messages that came, in order."""
        self.refused = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> BrokerUrl:
        return BrokerUrl("127.0.0.1", self._listener.getsockname()[1], "guest", "guest", "/")

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        data, tag = b"", 0
        with contextlib.suppress(OSError):
            connection.recv(8)
            self._say(connection, 0, spec.Connection.Start(0, 9, {"product": "stand-in"}, "PLAIN", "en_US"))
            while received := connection.recv(65536):
                data += received
                while True:
                    length, found = frame.decode_frame(data)
                    if found is None:
                        break
                    data = data[length:]
                    tag = self._take(connection, found, tag)
        connection.close()

    def _take(self, connection: socket.socket, found: frame.Frame, tag: int) -> int:
        if isinstance(found, frame.Body):
            tag += 1
            self.numbers.append(int.from_bytes(found.fragment[:8]))
            if self.mood == CONFIRM:
                self._say(connection, 1, spec.Basic.Ack(tag))
            elif self.mood == NACK:
                self._say(connection, 1, spec.Basic.Nack(tag))
        elif isinstance(found, frame.Method):
            self._answer(connection, found.method)
        return tag

    def _answer(self, connection: socket.socket, method: object) -> None:
        match method:
            case spec.Connection.StartOk():
                self._say(connection, 0, spec.Connection.Tune(100, 131072, 0))
            case spec.Connection.Open() if self.mood == REFUSE:
                self.refused += 1
                self._say(connection, 0, spec.Connection.Close(530, "another one is the root", 10, 40))
            case spec.Connection.Open():
                self._say(connection, 0, spec.Connection.OpenOk())
            case spec.Connection.Close():
                self._say(connection, 0, spec.Connection.CloseOk())
            case spec.Channel.Open():
                self._say(connection, 1, spec.Channel.OpenOk())
            case spec.Confirm.Select():
                self._say(connection, 1, spec.Confirm.SelectOk())
            case _:
                """The rest wants no answer."""

    def _say(self, connection: socket.socket, channel: int, method: object) -> None:
        connection.sendall(frame.Method(channel, method).marshal())

    def close(self) -> None:
        """Hangs up on everybody."""
        for listening in (self._listener, *self._connections):
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for thread in self._threads:
            thread.join()

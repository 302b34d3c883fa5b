"""A broker as readers see it: the data port's requests about streams and leases, on a socket of this process.

One port serves both protocols: a client that begins with AMQP receives the address of the data port, which is the same.
Streams are chunks in memory, and so are leased messages. Faults are planted from outside: connections are cut, the port
is closed and opened again, retention drops chunks. It requires a password, and knows one user.
"""

from __future__ import annotations

import re
import socketserver
import struct
import threading
from collections.abc import Callable
from typing import Any, Final

from pandomq import chunk_form, data_form
from pandomq.chunk_form import MessageRow
from pandomq.fieldtable import encode_table

USER: Final = "ann"
PASSWORD: Final = "correct horse"
ROLE: Final = "root"


class Refusal(Exception):
    pass


class StreamDouble:
    def __init__(self) -> None:
        self.chunks: list[tuple[chunk_form.ChunkHead, bytes]] = []
        self.end = 0

    @property
    def first(self) -> int:
        return self.chunks[0][0].first_offset if self.chunks else self.end

    def append(self, rows: list[MessageRow]) -> None:
        data = chunk_form.encode(rows)
        self.chunks.append((chunk_form.decode_head(data), data))
        self.end = rows[-1].offset + 1

    def drop_chunks(self, count: int) -> None:
        del self.chunks[:count]

    def range(self) -> dict[str, Any]:
        return {
            "first_offset": self.first,
            "end_offset": self.end,
            "first_time_us": self.chunks[0][0].first_time_us if self.chunks else 0,
            "last_time_us": self.chunks[-1][0].last_time_us if self.chunks else 0,
            "bytes": sum(len(data) for _, data in self.chunks),
        }

    def offset_at(self, time_us: int) -> int:
        for _, data in self.chunks:
            for row in chunk_form.decode_rows(data):
                if row.time_us >= time_us:
                    return row.offset
        return self.end

    def within(self, first: int, end: int) -> list[tuple[chunk_form.ChunkHead, bytes]]:
        return [(head, data) for head, data in self.chunks if head.last_offset >= first and head.first_offset < end]


class StreamPortDouble:
    """Use as a context; `url` is the address for clients."""

    def __init__(self) -> None:
        self.streams: dict[str, StreamDouble] = {}
        self.forbidden: set[str] = set()
        self.leases: dict[tuple[str, str], Lease] = {}
        self.queues: dict[str, list[MessageRow]] = {}
        self.asks: list[str] = []
        self.connections: set[Any] = set()
        self._lock = threading.RLock()
        self._server: Any = None
        self.port = 0

    def __enter__(self) -> StreamPortDouble:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        double = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                double.connections.add(self.request)
                try:
                    double._serve(self.request)
                except (OSError, EOFError, data_form.BadDataMessage):
                    pass
                finally:
                    double.connections.discard(self.request)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.cut_connections()

    def cut_connections(self) -> None:
        for connection in list(self.connections):
            try:
                connection.shutdown(2)
            except OSError:
                continue

    @property
    def url(self) -> str:
        return f"amqp://{USER}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/"

    def stream(self, name: str) -> StreamDouble:
        return self.streams.setdefault(name, StreamDouble())

    # The protocol.

    def _serve(self, connection: Any) -> None:
        begin = _take(connection, 4)
        if begin == b"AMQP":
            properties = encode_table({"data": f":{self.port}"})
            payload = struct.pack(">HHBB", 10, 10, 0, 9) + properties
            connection.sendall(struct.pack(">BHI", 1, 0, len(payload)) + payload + b"\xce")
            return
        known = False
        while True:
            json_bytes, payload_bytes = data_form.decode_head(
                begin + _take(connection, data_form.HEAD.size - len(begin))
            )
            fields = data_form.decode_json(_take(connection, json_bytes))
            payload = _take(connection, payload_bytes)
            begin = b""
            name = fields["ask"]
            try:
                with self._lock:
                    self.asks.append(name)
                    if not known and (fields.get("user"), fields.get("password")) != (USER, PASSWORD):
                        raise Refusal(403, f"user {fields.get('user')} may not log in")
                    known = True
                    answer, octets = self._answer(name, fields, payload)
            except Refusal as refusal:
                code, text, *more = refusal.args
                answer, octets = {"error": code, "text": text, **(more[0] if more else {})}, b""
            connection.sendall(data_form.encode_json(answer, len(octets)) + octets)

    def _answer(self, name: str, fields: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
        method: Callable[..., Any] = getattr(self, f"_ask_{name}")
        found = method(**{key: value for key, value in fields.items() if key != "ask"})
        return found if isinstance(found, tuple) else (found, b"")

    def _ask_hello(self, **_: object) -> dict[str, Any]:
        place = f"127.0.0.1:{self.port}"
        return {"node": "n1", "role": ROLE, "root": place, "brokers": [place]}

    def _ask_streams(self, pattern: str) -> dict[str, Any]:
        names = [name for name in self.streams if re.fullmatch(pattern, name) and name not in self.forbidden]
        return {"streams": names}

    def _found(self, name: str) -> StreamDouble:
        if name in self.forbidden:
            raise Refusal(403, f"user {USER} may not read stream {name}")
        if name not in self.streams:
            raise Refusal(404, f"there is no stream {name} in vhost /")
        return self.streams[name]

    def _ask_range(self, stream: str) -> dict[str, Any]:
        return self._found(stream).range()

    def _ask_offset_at(self, stream: str, time_us: int) -> dict[str, Any]:
        return {"offset": self._found(stream).offset_at(time_us)}

    def _ask_index(self, stream: str, first_offset: int, end_offset: int) -> dict[str, Any]:
        chunks = self._found(stream).within(first_offset, end_offset)
        rows = [
            [head.first_offset, head.last_offset, head.rows, len(data), head.first_time_us, head.last_time_us]
            for head, data in chunks[:3]
        ]
        return {"chunks": rows, "more": len(chunks) > 3}

    def _ask_read(
        self, stream: str, first_offset: int, end_offset: int, bytes_max: int
    ) -> tuple[dict[str, Any], bytes]:
        found = self._found(stream)
        if first_offset < found.first:
            raise Refusal(410, f"stream {stream} begins at {found.first}", {"first_offset": found.first})
        chosen: list[bytes] = []
        ends: list[int] = []
        next_offset = first_offset
        for head, data in found.within(first_offset, end_offset):
            if chosen and sum(map(len, chosen)) + len(data) > bytes_max:
                break
            chosen.append(data)
            ends.append(head.last_offset + 1)
            next_offset = head.last_offset + 1
        sizes = [len(data) for data in chosen]
        return {"sizes": sizes, "ends": ends, "next_offset": next_offset}, b"".join(chosen)

    # Leases.

    def _ask_lease(self, queue: str, name: str, messages_max: int, bytes_max: int, timeout_ms: int) -> dict[str, Any]:
        if queue not in self.queues:
            raise Refusal(404, f"there is no queue {queue} in vhost /")
        lease = self.leases.get((queue, name))
        if lease is None:
            lease = self.leases[queue, name] = Lease(f"pandomq.lease.{name}.{queue}", 1000 * (len(self.asks) + 1))
            self.streams[lease.stream] = StreamDouble()
            self.streams[lease.stream].end = lease.released
        stream = self.streams[lease.stream]
        ready = self.queues[queue]
        count = min(len(ready), max(0, messages_max - (stream.end - lease.released)))
        if count:
            rows = [row._replace(offset=stream.end + at) for at, row in enumerate(ready[:count])]
            lease.taken += ready[:count]
            del ready[:count]
            stream.append(rows)
        return {
            "stream": lease.stream,
            "first_offset": lease.released,
            "end_offset": stream.end,
            "more": bool(ready),
        }

    def _ask_release(self, queue: str, name: str, offset: int) -> dict[str, Any]:
        lease = self.leases.get((queue, name))
        if lease is None:
            raise Refusal(404, f"there is no lease {name} on queue {queue}")
        done = max(0, offset - lease.released)
        del lease.taken[:done]
        lease.released += done
        return {"first_offset": lease.released}

    def expire_lease(self, queue: str, name: str) -> None:
        with self._lock:
            lease = self.leases.pop((queue, name))
            self.queues[queue][:0] = lease.taken
            del self.streams[lease.stream]


class Lease:
    def __init__(self, stream: str, first: int) -> None:
        self.stream = stream
        self.released = first
        self.taken: list[MessageRow] = []


def _take(connection: Any, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts

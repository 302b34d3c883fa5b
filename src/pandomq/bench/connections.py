"""Many connections, each with a channel, a private queue and a consumer: how fast they open, what one weighs.

They are opened a limited number at a time, by one state machine each; then they stay idle until they are closed.
"""

import errno
import socket
import struct
import time
from types import TracebackType
from typing import Self

import msgspec

from pandomq.bench import limits, process, wire
from pandomq.bench.farewell import say_farewell
from pandomq.bench.load import Load, Measurement
from pandomq.bench.loop import Loop
from pandomq.bench.run import Show, local_pid, measure, show_nothing
from pandomq.bench.session import CHANNEL, server_version
from pandomq.bench.url import BrokerUrl, parse_url


class ConnectionsResult(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    connections: int
    seconds: float
    opened_rate: float
    resident_before_bytes: int | None
    resident_after_bytes: int | None
    kib_each: float | None
    """Resident memory of the broker for one connection with channel, private queue and consumer."""
    alone: Measurement | None = None
    """A load with no idle connection open, and below the same load with all of them open."""
    among_idle: Measurement | None = None

    @property
    def idle_cost_ratio(self) -> float | None:
        if self.alone is None or self.among_idle is None:
            return None
        return self.alone.processed_rate / max(self.among_idle.processed_rate, 1.0)


class _Connection:
    """From connect to consume-ok; afterwards only its socket matters."""

    def __init__(self, url: BrokerUrl, address: tuple[str, int], family: socket.AddressFamily) -> None:
        self.connection = socket.socket(family, socket.SOCK_STREAM)
        self.connection.setblocking(False)
        self._url = url
        self._read = b""
        self._connecting = True
        self.ready = False
        self.server = ""
        outcome = self.connection.connect_ex(address)
        if outcome not in (0, errno.EINPROGRESS):
            self.connection.close()
            raise OSError(outcome, "cannot connect")

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def wants_write(self) -> bool:
        return self._connecting

    def writable(self) -> None:
        if not self._connecting:
            return
        outcome = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if outcome:
            raise OSError(outcome, "cannot connect")
        self._connecting = False
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.send(wire.PROTOCOL_HEADER)

    def readable(self) -> None:
        if self._connecting:
            self.writable()
        try:
            data = self.connection.recv(4096)
        except BlockingIOError:
            return
        if not data:
            raise wire.BrokerRefused("the broker closed a connection that was being opened")
        self._read += data
        while len(self._read) >= wire.FRAME_OVERHEAD_BYTES:
            kind, _, size = wire.FRAME_HEAD.unpack_from(self._read)
            end = size + wire.FRAME_OVERHEAD_BYTES
            if len(self._read) < end:
                return
            payload, self._read = self._read[wire.FRAME_HEAD.size : end - 1], self._read[end:]
            if kind == wire.FRAME_METHOD:
                self._answer(payload)

    def _answer(self, payload: bytes) -> None:
        got = struct.unpack_from(">HH", payload)
        if got == wire.CONNECTION_START:
            self.server = server_version(payload)
            self.connection.send(wire.start_ok(self._url.user, self._url.password))
        elif got == wire.CONNECTION_TUNE:
            channel_max, frame_max, _ = struct.unpack_from(">HIH", payload, 4)
            self.connection.send(wire.tune_ok(channel_max, frame_max) + wire.connection_open(self._url.vhost))
        elif got == wire.CONNECTION_OPEN_OK:
            # An empty queue name in a consume stands for the queue that this channel declared last.
            self.connection.send(
                wire.channel_open(CHANNEL)
                + wire.queue_declare(CHANNEL, "", {}, exclusive=True)
                + wire.basic_consume(CHANNEL, "", "", {}, auto_ack=True)
            )
        elif got == wire.BASIC_CONSUME_OK:
            self.ready = True
        elif got in (wire.CONNECTION_CLOSE, wire.CHANNEL_CLOSE):
            raise wire.BrokerRefused(wire.refusal(payload))


class IdleConnections:
    """Opens the connections when entered, holds them, and closes them when left."""

    def __init__(self, url: BrokerUrl, count: int, show: Show = show_nothing) -> None:
        self._url = url
        if count < 1:
            raise ValueError("at least one connection is needed")
        self._count = count
        self._show = show
        self._open: list[_Connection] = []
        self.seconds = 0.0
        self.server = ""

    def __enter__(self) -> Self:
        process.allow_open_files(self._count)
        try:
            self._open_all()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_all(self) -> None:
        family, _, _, _, address = socket.getaddrinfo(self._url.host, self._url.port, type=socket.SOCK_STREAM)[0]
        where = (str(address[0]), int(address[1]))
        loop = Loop()
        begun = shown = progressed = time.monotonic()
        opening: list[_Connection] = []
        while len(self._open) < self._count or opening:
            while len(self._open) < self._count and len(opening) < limits.OPENING_AT_ONCE_MAX:
                connection = _Connection(self._url, where, family)
                self._open.append(connection)
                opening.append(connection)
                loop.add(connection)
            loop.turn(1.0)
            now = time.monotonic()
            for connection in [connection for connection in opening if connection.ready]:
                loop.remove(connection)
                opening.remove(connection)
                progressed = now
            if now - progressed > limits.SETUP_TIMEOUT_S:
                raise wire.BrokerRefused(f"no connection became ready within {limits.SETUP_TIMEOUT_S:.0f} s")
            if now - shown > 0.5:
                shown, ready = now, len(self._open) - len(opening)
                self._show(f"open {self._count:,}", ready / self._count, ready / (now - begun))
        self.seconds = time.monotonic() - begun
        self.server = self._open[0].server
        loop.close()

    def close(self) -> None:
        say_farewell([item.connection for item in self._open])
        self._open.clear()


def measure_connections(
    url_text: str, count: int, load: Load | None = None, show: Show = show_nothing, pid: int | None = None
) -> ConnectionsResult:
    """Opens the connections and weighs them; with a load, also measures it without and among the idle ones."""
    url = parse_url(url_text)
    pid = pid or local_pid(url)
    # The broker is weighed before any load has run: memory that a load left behind would hide what connections take.
    before_bytes = process.resident_bytes(pid) if pid else None
    among_idle = None
    with IdleConnections(url, count, show) as held:
        after_bytes = process.resident_bytes(pid) if pid else None
        if load is not None:
            among_idle = measure(load, show, pid)
    alone = None
    if load is not None:
        if pid:
            process.wait_until_idle(pid)
        alone = measure(load, show, pid)
    weighed = before_bytes is not None and after_bytes is not None
    return ConnectionsResult(
        server=held.server,
        connections=count,
        seconds=held.seconds,
        opened_rate=count / held.seconds,
        resident_before_bytes=before_bytes,
        resident_after_bytes=after_bytes,
        kib_each=((after_bytes or 0) - (before_bytes or 0)) / 1024 / count if weighed else None,
        alone=alone,
        among_idle=among_idle,
    )

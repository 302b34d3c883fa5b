"""Many connections, each with a channel, a private queue and a consumer: how fast they open, and the memory of one.

They are opened a limited number at a time, by one state machine each; then they stay idle until they are closed.
"""

import socket
import time
from types import TracebackType
from typing import Self

import msgspec

from pandomq.bench import limits, process
from pandomq.bench.client import wire
from pandomq.bench.client.closing import close_connections
from pandomq.bench.client.handshake import Handshake
from pandomq.bench.client.session import CHANNEL
from pandomq.bench.client.url import BrokerUrl, parse_url
from pandomq.bench.load import Load, Measurement
from pandomq.bench.loop import Loop
from pandomq.bench.run import Show, local_pid, measure, show_nothing


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
    """A load without idle connections, and below the same load with all of them open."""
    among_idle: Measurement | None = None

    @property
    def idle_cost_ratio(self) -> float | None:
        if self.alone is None or self.among_idle is None:
            return None
        return self.alone.processed_rate / max(self.among_idle.processed_rate, 1.0)


# An empty queue name in a consume stands for the queue that this channel declared last.
_OPENING = (
    wire.channel_open(CHANNEL)
    + wire.queue_declare(CHANNEL, "", {}, exclusive=True)
    + wire.basic_consume(CHANNEL, "", "", {}, auto_ack=True)
)


class IdleConnections:
    """Opens the connections when entered, holds them, and closes them when left."""

    def __init__(self, url: BrokerUrl, count: int, show: Show = show_nothing) -> None:
        self._url = url
        if count < 1:
            raise ValueError(f"--count must be at least 1, not {count}")
        self._count = count
        self._show = show
        self._open: list[Handshake] = []
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
        opening: list[Handshake] = []
        while len(self._open) < self._count or opening:
            while len(self._open) < self._count and len(opening) < limits.OPENING_AT_ONCE_MAX:
                connection = Handshake(self._url, where, family, _OPENING, wire.BASIC_CONSUME_OK)
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
        close_connections([item.connection for item in self._open])
        self._open.clear()


def measure_connections(
    url_text: str, count: int, load: Load | None = None, show: Show = show_nothing, pid: int | None = None
) -> ConnectionsResult:
    """Opens the connections and measures their memory; with a load, also runs it without and among the idle ones."""
    url = parse_url(url_text)
    pid = pid or local_pid(url)
    # The memory is measured before any load has run: freed memory of a load would hide the memory of connections.
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

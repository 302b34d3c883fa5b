"""Hostile inputs over TCP, against a broker that runs in a process of its own.

All the while a well-behaved client has to be served in time. At the end, once the hostile connections are closed and
their objects deleted, the process must have as many sockets as at the start, and hardly more memory than in the middle
of the run.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import psutil

from tests.fuzz.cases import OPENING, Case, Source
from tests.fuzz.conversations import record
from tests.fuzz.methods import EXCHANGES, QUEUES, furniture
from tests.fuzz.tally import FuzzFailure, Tally
from tests.fuzz.written import Written
from tests.support.client import Address, Channel, Connection
from tests.support.frames import dial

PROBE_EVERY = 50
PROBE_S_MAX = 5.0
ANSWER_S_MAX = 15.0
IDLE_SOCKETS_MAX = 30
RSS_GROWTH_BYTES_MAX = 32 * 1024 * 1024
"""The growth from the middle of a run to its end. Caches still fill then; `test_leaks` detects leaks of single
objects."""
SOCKETS_GONE_S_MAX = 40.0
QUIET_S = 0.05


@dataclass
class Residents:
    """The resources of the broker's process."""

    rss_bytes: int
    files: int


class SocketFuzz:
    def __init__(self, seed: int, address: Address, pid: int) -> None:
        self._random = Random(f"{seed}/sockets")
        self._address = address
        self._process = psutil.Process(pid)
        self._source = Source(self._random, record(lambda: Connection(address)))
        self._idle: list[socket.socket] = []
        self._probe_channel: Channel = Connection.opened(address).channel()
        self.tally = Tally()
        self.slowest_probe_s = 0.0
        self.start = self.half = self.end = self._residents()

    def run(self, inputs: int, on_progress: Callable[[int], None] = lambda _: None) -> Tally:
        case: Case | None = None
        number = 0
        try:
            for number in range(inputs):
                case = self._next()
                self._apply(case)
                if number % PROBE_EVERY == 0:
                    self._probe()
                    on_progress(number)
                if number == inputs // 2:
                    self.half = self._residents()
            case = None
            self._end()
        except FuzzFailure:
            raise
        except Exception as error:
            raise FuzzFailure(f"{type(error).__name__}: {error}", case, number) from error
        on_progress(inputs)
        return self.tally

    def _next(self) -> Case:
        chance = self._random.random()
        if chance < 0.2:
            return self._source.early()
        return self._source.spoiled() if chance < 0.6 else self._source.methods({})

    def _apply(self, case: Case) -> None:
        written = Written(self.tally)
        self.tally.inputs += 1
        self.tally.kinds[case.kind] += 1
        connected = dial(self._address.host, self._address.port)
        connected.settimeout(ANSWER_S_MAX)
        way = self._random.random()
        try:
            if case.opened:
                connected.sendall(OPENING + furniture())
            for segment in case.segments():
                connected.sendall(segment)
                self.tally.bytes_in += len(segment)
            if way < 0.1:
                self._keep_idle(connected)
                return
            if way < 0.25:
                # A reset in place of an orderly close.
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                self._read_to_the_end(connected, written)
        except ConnectionError:
            # The broker may close the connection at any byte.
            pass
        connected.close()

    def _read_to_the_end(self, connected: socket.socket, written: Written) -> None:
        connected.shutdown(socket.SHUT_WR)
        while piece := connected.recv(1 << 16):
            self.tally.bytes_out += len(piece)
            written.take(piece)

    def _keep_idle(self, connected: socket.socket) -> None:
        self._idle.append(connected)
        if len(self._idle) > IDLE_SOCKETS_MAX:
            self._idle.pop(self._random.randrange(len(self._idle))).close()

    def _hang_up_idle(self) -> None:
        for connected in self._idle:
            connected.close()
        self._idle.clear()

    def _probe(self) -> None:
        """Checks two legal clients: one that has been connected all the time, and a new one."""
        begin = time.monotonic()
        newcomer = Connection.opened(self._address)
        for channel in (self._probe_channel, newcomer.channel()):
            queue = channel.declare_queue("")
            channel.publish("probe", queue)
            found = channel.get(queue)
            assert found is not None, "the probe's message is missing"
            assert found.body == b"probe"
            channel.rpc("queue.delete", queue=queue)
        newcomer.close()
        spent_s = time.monotonic() - begin
        self.slowest_probe_s = max(self.slowest_probe_s, spent_s)
        assert spent_s < PROBE_S_MAX, f"the probe took {spent_s:.1f} s"

    def _end(self) -> None:
        self._hang_up_idle()
        self._probe()
        self._delete_all()
        deadline = time.monotonic() + SOCKETS_GONE_S_MAX
        while (found := self._residents()).files > self.start.files and time.monotonic() < deadline:
            time.sleep(QUIET_S)
        self.end = found
        assert found.files <= self.start.files, f"sockets stay open: {found.files}, {self.start.files} at the start"
        growth = found.rss_bytes - self.half.rss_bytes
        assert growth <= RSS_GROWTH_BYTES_MAX, f"the process grew by {growth >> 20} MiB in the second half"
        self._probe_channel.connection.close()

    def _delete_all(self) -> None:
        names = {("queue", name) for name in [*QUEUES, "c0", "c1", "c2", "c3"] if name[:1] in ("q", "c")}
        names |= {("exchange", name) for name in [*EXCHANGES, "y0", "y1"] if name[:1] in ("x", "y")}
        for kind, name in sorted(names):
            self._probe_channel.rpc(f"{kind}.delete", **{kind: name})

    def _residents(self) -> Residents:
        return Residents(self._process.memory_info().rss, self._process.num_fds())

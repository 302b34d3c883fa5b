"""One connection between a simulated client and a simulated machine: bytes in both directions, with latency.

Bytes arrive in order, in other pieces than those in which they were sent. The broker's output is parsed where it leaves
the broker, so the world knows what the broker sent even if the client never receives it. When a machine dies, bytes
that were under way may still arrive, or be lost.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from pandomq import limits
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.sim.agenda import Agenda
from pandomq.sim.network.frames import FrameReader, Heard

if TYPE_CHECKING:
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.sim.machine import Machine

SPLIT_CHANCE: Final = 0.05
"""The chance that a piece arrives in two parts."""


class CableEnd(Protocol):
    """A client, as its connection sees it."""

    name: str

    def heard(self, methods: list[Heard]) -> None: ...

    def closed(self, cable: Cable) -> None:
        """The connection is closed; the client receives nothing more on it."""


class Cable:
    def __init__(
        self, agenda: Agenda, random: Random, machine: Machine, client: CableEnd, latency_ms: int, window_bytes: int
    ) -> None:
        self._agenda = agenda
        self._random = random
        self.machine = machine
        self.client = client
        self.latency_ms = latency_ms
        self._window_bytes = window_bytes
        """Number of bytes that the client's operating system buffers before the client reads them."""
        self._reader = FrameReader()
        self._up: deque[bytes] = deque()
        self._unread: list[bytes] = []
        self._down: deque[tuple[list[Heard], int] | None] = deque()
        """Methods under way to the client, with their size; None is the end of the connection."""
        self._up_due_ms = self._down_due_ms = 0
        self._down_bytes = 0
        self._reading_paused = self._writing_paused = False
        self.link: ClientLink | None = None
        self.life = machine.life
        self.at_machine = True
        """The machine's end is open."""
        self.at_client = True

    @property
    def proxied(self) -> bool:
        """Whether a front serves the client."""
        return self.link is not None and isinstance(self.link.client, FrontClient)

    @property
    def is_served(self) -> bool:
        """False while the broker closes the connection, of which the client does not know yet."""
        served = None if self.link is None else self.link.client
        return served is not None and not served.failed

    # The client's end.

    def send(self, data: bytes) -> None:
        self._up.append(data)
        self._up_due_ms = max(self._up_due_ms, self._agenda.now_ms + self.latency_ms)
        self._agenda.at(self._up_due_ms, self._arrive)

    def hang_up(self) -> None:
        """The client closes the connection, either without notice or after its last method."""
        self.at_client = False
        self._up_due_ms = max(self._up_due_ms, self._agenda.now_ms + self.latency_ms)
        self._agenda.at(self._up_due_ms, lambda: self.machine.when_running(self._lost))

    def _arrive(self) -> None:
        self.machine.when_running(self._arrived)

    def _arrived(self) -> None:
        if not self._alive or not self._up:
            return
        data = self._up.popleft()
        if len(data) > 1 and self._random.random() < SPLIT_CHANCE:
            cut = self._random.randrange(1, len(data))
            self._up.appendleft(data[cut:])
            self._up_due_ms = max(self._up_due_ms, self._agenda.now_ms + 1)
            self._agenda.after(1, self._arrive)
            data = data[:cut]
        if self._reading_paused:
            self._unread.append(data)
        else:
            self.machine.received(self, data)

    @property
    def _alive(self) -> bool:
        return self.at_machine and self.machine.life == self.life

    def _lost(self) -> None:
        if self._alive:
            self.at_machine = False
            self.machine.disconnected(self)

    # The machine's end.

    def write(self, data: bytes) -> None:
        if not self.at_machine:
            return
        methods = self._reader.feed(data)
        self.machine.watch.emitted(self, methods)
        self._put_down((methods, len(data)))
        self._down_bytes += len(data)
        if self._down_bytes > self._window_bytes and not self._writing_paused:
            self._writing_paused = True
            self.machine.paused(self)

    def close(self) -> None:
        """Closes after the written bytes; the machine's end stays open until the client has closed, too."""
        self._put_down(None)
        self._agenda.after(limits.LINGER_MS, lambda: self.machine.when_running(self._lost))

    def abort(self) -> None:
        self._put_down(None)
        self._agenda.after(0, lambda: self.machine.when_running(self._lost))

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        unread, self._unread = self._unread, []
        for data in unread:
            self.machine.received(self, data)

    def crashed(self, *, heard: bool) -> None:
        """The machine's end is gone; bytes that are under way arrive if `heard`, and are lost otherwise."""
        self.at_machine = False
        if not heard:
            self._down = deque(None for _ in self._down)
        self._put_down(None)

    def _put_down(self, item: tuple[list[Heard], int] | None) -> None:
        self._down.append(item)
        self._down_due_ms = max(self._down_due_ms, self._agenda.now_ms + self.latency_ms)
        self._agenda.at(self._down_due_ms, self._reach_client)

    def _reach_client(self) -> None:
        item = self._down.popleft()
        if not self.at_client:
            return
        if item is None:
            self.at_client = False
            self.client.closed(self)
            if self.at_machine:
                self.hang_up()
            return
        methods, size_bytes = item
        self._down_bytes -= size_bytes
        if self._writing_paused and self._down_bytes <= self._window_bytes // 4 and self._alive:
            self._writing_paused = False
            self.machine.resumed(self)
        self.client.heard(methods)

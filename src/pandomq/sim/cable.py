"""One connection between a simulated client and a simulated machine: bytes in both directions, each after a while.

Bytes arrive in order, cut into other pieces than they were sent in. What the broker writes is read where it leaves the
broker, so that what it said is known even if the client never hears it. When a machine dies, what was under way may
still arrive, or not.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from pandomq import limits
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.sim.agenda import Agenda
from pandomq.sim.frames import FrameReader, Heard

if TYPE_CHECKING:
    from pandomq.node.link import Link
    from pandomq.sim.machine import Machine

SPLIT_CHANCE: Final = 0.05
"""Of a piece to arrive in two parts."""


class CableEnd(Protocol):
    """A client, as its cable sees it."""

    name: str

    def heard(self, methods: list[Heard]) -> None: ...

    def closed(self, cable: Cable) -> None:
        """Nothing more will come."""


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
        """What the client's system takes before the client reads it."""
        self._reader = FrameReader()
        self._up: deque[bytes] = deque()
        self._unread: list[bytes] = []
        self._down: deque[tuple[list[Heard], int] | None] = deque()
        """Methods and their size; None is the end."""
        self._up_due_ms = self._down_due_ms = 0
        self._down_bytes = 0
        self._reading_paused = self._writing_paused = False
        self.link: Link | None = None
        self.life = machine.life
        self.at_machine = True
        """The machine's end is open."""
        self.at_client = True

    @property
    def proxied(self) -> bool:
        """The client is served in the root's name."""
        return self.link is not None and isinstance(self.link.client, FrontClient)

    # The client's end.

    def send(self, data: bytes) -> None:
        self._up.append(data)
        self._up_due_ms = max(self._up_due_ms, self._agenda.now_ms + self.latency_ms)
        self._agenda.at(self._up_due_ms, self._arrive)

    def hang_up(self) -> None:
        """The client is gone, without a word or after the last one."""
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
            self.machine.lost(self)

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
        """After what is written; the machine's end lingers until the client has hung up, too."""
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
        """The machine's end is gone; what is under way is heard, or lost."""
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

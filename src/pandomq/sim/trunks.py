"""The network between brokers as bytes: connections that they dial themselves, over the links of production code.

Bytes arrive in order, joined and cut as they come. Where a path is cut they wait, and arrive when it is whole again if
the connection still lives by then. Loss is delay. A process that dies hangs up; a machine that does says nothing, and
whoever goes on talking to it finds out when it is back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, Final, cast

from pandomq.cluster.limits import DIAL_MS_MAX
from pandomq.sim.agenda import Agenda
from pandomq.sim.network import CLOG_MS, Network, Weather

if TYPE_CHECKING:
    from pandomq.node.dialed import Dialed
    from pandomq.node.link import Link
    from pandomq.sim.cable import Cable
    from pandomq.sim.machine import Machine

SPLIT_CHANCE: Final = 0.05
RETRY_MS: Final = 100
"""A connection that gets no answer is asked for again, until there is no time left."""
RESENT_MS: Final = (20, 200)
WINDOW_BYTES: Final = 64 * 1024
PORT: Final = 20_000


class End:
    """One end of a connection."""

    def __init__(self, trunks: Trunks, machine: Machine) -> None:
        self._trunks = trunks
        self.machine = machine
        self._life = machine.life
        self.other: End
        self.link: Link | None = None
        """Of the accepting end."""
        self.dialed: Dialed | None = None
        """Of the dialing one."""
        self.open = True
        self.closing = False
        self.queue: deque[bytes | None] = deque()
        """On its way to the other end; None is the last."""
        self.queued_bytes = 0
        self.due_ms = 0
        self.moving = False

    # What the machine does with it.

    def write(self, data: bytes | memoryview) -> None:
        if self.open and not self.closing:
            self.queue.append(bytes(data))
            self.queued_bytes += len(data)
            if self.queued_bytes > WINDOW_BYTES and self.dialed is not None:
                self.dialed.writing_paused = True
            self._trunks.move(self)

    def close(self) -> None:
        if self.open and not self.closing:
            self.closing = True
            self.queue.append(None)
            self._trunks.move(self)

    def abort(self) -> None:
        self.queue.clear()
        self.close()

    def pause_reading(self) -> None:
        """Brokers are always read from."""

    def resume_reading(self) -> None: ...

    def crashed(self, *, heard: bool) -> None:
        """Told by `Trunks.went`."""

    # What the network does with it.

    def take(self) -> bytes | None:
        """All that is under way, or some of it; None at the end."""
        first = self.queue.popleft()
        if first is None:
            return None
        parts = [first]
        while self.queue and self.queue[0] is not None:
            parts.append(cast(bytes, self.queue.popleft()))
        data = b"".join(parts)
        cut = self._trunks.split(len(data))
        if cut < len(data):
            self.queue.appendleft(data[cut:])
        self.queued_bytes -= cut
        if self.dialed is not None and self.dialed.writing_paused and self.queued_bytes <= WINDOW_BYTES // 4:
            self.machine.dialed_resumed(self.dialed)
        return data[:cut]

    @property
    def _alive(self) -> bool:
        return self.open and self.machine.life == self._life

    def hear(self, data: bytes) -> None:
        if not self._alive:
            self._trunks.refuse(self)
        elif self.dialed is not None:
            self.machine.dialed_received(self.dialed, data)
        else:
            self.machine.received(cast("Cable", self), data)

    def hear_end(self) -> None:
        alive = self._alive
        self.vanish()
        if not alive:
            return
        if self.dialed is not None:
            self.machine.dialed_lost(self.dialed)
        else:
            self.machine.lost(cast("Cable", self))

    def vanish(self) -> None:
        self.open = False
        self.queue.clear()
        self.queued_bytes = 0


class Trunks(Network):
    def __init__(self, agenda: Agenda, random: Random, weather: Weather) -> None:
        super().__init__(agenda, random, weather, patience_ms=1)
        self._open: list[End] = []
        self._port = PORT

    def begin(self) -> None:
        """Brokers dial each other."""

    def went(self, name: str, *, told: bool) -> None:
        for end in self._open:
            if end.machine.name == name:
                if told:
                    end.close()
                else:
                    end.vanish()
        self._open = [end for end in self._open if end.open or end.other.open]

    def block(self, paths: Iterable[tuple[str, str]]) -> None:
        self.cut.update(paths)

    def heal(self) -> None:
        super().heal()
        for end in self._open:
            self.move(end)

    # Connections.

    def dial(self, machine: Machine, dialed: Dialed) -> None:
        deadline_ms = self._agenda.now_ms + DIAL_MS_MAX
        life = machine.life

        def attempt() -> None:
            if dialed.gone or machine.life != life or not machine.reachable:
                return
            target = cast("Machine", self.stations[dialed.address.partition(":")[0]])
            reached = not self.cut & {(machine.name, target.name), (target.name, machine.name)}
            if reached and target.accepting:
                self._connect(machine, target, dialed)
            elif reached and target.up:
                machine.not_dialed(dialed, "connection refused")
            elif self._agenda.now_ms >= deadline_ms:
                machine.not_dialed(dialed, "no answer")
            else:
                self._agenda.after(RETRY_MS, attempt)

        self._agenda.after(self._latency_ms(), attempt)

    def _connect(self, machine: Machine, target: Machine, dialed: Dialed) -> None:
        near, far = End(self, machine), End(self, target)
        near.other, far.other = far, near
        near.dialed, dialed.socket = dialed, near
        self._open += (near, far)
        self._port += 1
        port = self._port

        def accept() -> None:
            if far.open and target.accepting:
                target.connect(cast("Cable", far), port)
            else:
                far.close()

        target.when_running(accept)
        machine.dialed(dialed)

    # Bytes.

    def _latency_ms(self) -> int:
        return self._random.randint(*self.weather.latency_ms)

    def split(self, length: int) -> int:
        if length > 1 and self._random.random() < SPLIT_CHANCE:
            return self._random.randrange(1, length)
        return length

    def move(self, end: End) -> None:
        path = (end.machine.name, end.other.machine.name)
        if end.moving or not end.queue or path in self.cut:
            return
        due_ms = self._agenda.now_ms + self._latency_ms()
        if path in self.clogged:
            due_ms += self._random.randint(0, CLOG_MS)
        if self._random.random() < self.weather.loss:
            due_ms += self._random.randint(*RESENT_MS)
        end.due_ms = max(end.due_ms, due_ms)
        end.moving = True
        self._agenda.at(end.due_ms, lambda: self._arrive(end))

    def _arrive(self, end: End) -> None:
        end.moving = False
        path = (end.machine.name, end.other.machine.name)
        if not end.queue or path in self.cut:
            return
        data, other = end.take(), end.other
        if data is None:
            end.vanish()
            other.machine.when_running(other.hear_end)
        else:
            other.machine.when_running(lambda: other.hear(data))
            self.move(end)

    def refuse(self, end: End) -> None:
        """Something came for a connection that is no more: who sent it is told so, if there is somebody to say it."""
        other = end.other
        if end.machine.up and (end.machine.name, other.machine.name) not in self.cut:
            self._agenda.after(self._latency_ms(), lambda: other.machine.when_running(other.hear_end))

"""The network between brokers, over which the links of the production code dial their connections.

Bytes arrive in order, in other pieces than those in which they were sent. The faults of the network:

    cut         nothing gets through in that direction: bytes wait, and arrive when the path works again if the
                connection still exists by then; a connection attempt gets no answer
    refused     connection attempts in that direction are refused, as by a firewall; existing connections continue
    unanswered  connection attempts get no answer
    rates       only so many bytes pass in a millisecond
    clogged     bytes are delayed
    reset       connections end at both ends, and bytes under way are lost
    break_off   a connection carries nothing any more in one direction, for ever; only silence shows it

A lost packet appears as a delay. If a process dies, its connections are closed, or its operating system resets them. If
a machine dies, its peers receive nothing, and detect it only when they send to the machine after it is back.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq import limits
from pandomq.cluster.limits import DIAL_MS_MAX
from pandomq.sim.agenda import Agenda
from pandomq.sim.disks.files import Loss
from pandomq.sim.network.connection_end import ConnectionEnd

if TYPE_CHECKING:
    from pandomq.cluster.dialed_connection import Dialed
    from pandomq.sim.machine import Machine

Path = tuple[str, str]
"""A path from one broker to another."""

SPLIT_CHANCE: Final = 0.05
"""The chance that bytes arrive in two parts."""
RETRY_MS: Final = 100
"""A connection attempt without an answer is repeated after this time, until its timeout."""
RESENT_MS: Final = (20, 200)
CLOG_MS: Final = 800
SLICE_MS: Final = 5
"""The interval at which bytes pass where the rate is bounded."""
RESET_CHANCE: Final = 0.3
"""The chance that a killed process has its connections reset, because of unread bytes."""
PORT: Final = 20_000


class Weather(msgspec.Struct):
    """The conditions of the network that hold for all paths."""

    latency_ms: tuple[int, int] = (0, 3)
    loss: float = 0.0


class NetworkFault(msgspec.Struct, frozen=True, eq=False):
    """A fault of some paths, until it is lifted."""

    cut: frozenset[Path] = frozenset()
    refused: frozenset[Path] = frozenset()
    unanswered: frozenset[Path] = frozenset()
    clogged: frozenset[Path] = frozenset()
    rates: dict[Path, int] = {}
    """Bytes per millisecond."""


class ByteNetwork:
    def __init__(self, agenda: Agenda, random: Random, weather: Weather | None = None) -> None:
        self._agenda = agenda
        self._random = random
        self.weather = weather or Weather()
        self.machines: dict[str, Machine] = {}
        self.troubles: list[NetworkFault] = []
        self.cut: frozenset[Path] = frozenset()
        self._refused: frozenset[Path] = frozenset()
        self._unanswered: frozenset[Path] = frozenset()
        self._clogged: frozenset[Path] = frozenset()
        self._rates: dict[Path, int] = {}
        self._ends: list[ConnectionEnd] = []
        self._port = PORT

    # Faults.

    def impose(self, trouble: NetworkFault) -> None:
        self.troubles.append(trouble)
        self._note_troubles()

    def lift(self, trouble: NetworkFault) -> None:
        """Ends the fault, if it has not been lifted before."""
        if trouble in self.troubles:
            self.troubles.remove(trouble)
            self._note_troubles()
            self._move_all()

    def heal(self) -> None:
        """Repairs all paths; connections that were broken off stay so."""
        self.troubles.clear()
        self._note_troubles()
        self._move_all()

    def _note_troubles(self) -> None:
        troubles = self.troubles
        self.cut = frozenset(path for trouble in troubles for path in trouble.cut)
        self._refused = frozenset(path for trouble in troubles for path in trouble.refused)
        self._unanswered = frozenset(path for trouble in troubles for path in trouble.unanswered)
        self._clogged = frozenset(path for trouble in troubles for path in trouble.clogged)
        self._rates = {path: rate for trouble in troubles for path, rate in trouble.rates.items()}

    def reset(self, paths: Iterable[Path]) -> None:
        """Ends the connections between these brokers, and notifies both ends."""
        pairs = {frozenset(path) for path in paths}
        for end in self._ends:
            if frozenset(end.path) in pairs:
                end.lose_all()
                self._tell_end(end)
        self._forget_ended()

    def break_off(self, path: Path) -> bool:
        """One or all of the connections on this path carry nothing any more in this direction; returns False if there
        is none."""
        ends = [end for end in self._ends if end.path == path and end.open and not end.broken]
        if len(ends) > 1 and self._random.random() < 0.5:
            ends = [self._random.choice(ends)]
        for end in ends:
            end.broken = True
        return bool(ends)

    # The end of processes and machines.

    def left(self, name: str) -> None:
        """A process has closed its connections; what it wrote before is still sent."""
        for end in self._ends:
            if end.machine.name == name:
                end.close()
        self._forget_ended()

    def died(self, name: str, *, with_machine: bool) -> None:
        resets = not with_machine and self._random.random() < RESET_CHANCE
        for end in self._ends:
            if end.machine.name != name:
                continue
            if resets:
                end.abort()
            elif with_machine:
                end.vanish()
            else:
                end.close()
        self._forget_ended()

    def _forget_ended(self) -> None:
        self._ends = [end for end in self._ends if end.open or end.other.open]

    # Connections.

    def dial(self, machine: Machine, dialed: Dialed) -> None:
        deadline_ms = self._agenda.now_ms + DIAL_MS_MAX
        life = machine.life
        target = self.machines[dialed.address.partition(":")[0]]
        path, back = (machine.name, target.name), (target.name, machine.name)

        def attempt() -> None:
            if dialed.gone or machine.life != life or not machine.reachable:
                return
            is_heard = path not in self.cut and back not in self.cut and path not in self._unanswered
            is_there = target.up or target.last_loss is Loss.NONE
            if is_heard and is_there and path not in self._refused and target.accepting:
                self._connect(machine, target, dialed)
            elif is_heard and is_there:
                machine.not_dialed(dialed, "connection refused")
            elif self._agenda.now_ms >= deadline_ms:
                machine.not_dialed(dialed, "no answer")
            else:
                self._agenda.after(RETRY_MS, attempt)

        self._agenda.after(self._latency_ms(), attempt)

    def _connect(self, machine: Machine, target: Machine, dialed: Dialed) -> None:
        near, far = ConnectionEnd(self, machine, target), ConnectionEnd(self, target, machine)
        near.other, far.other = far, near
        near.link, dialed.socket = dialed, near
        self._forget_ended()
        self._ends += (near, far)
        self._port += 1
        port = self._port

        def accept() -> None:
            if far.alive and target.accepting:
                target.connect(far, port)
            else:
                far.close()

        target.when_running(accept)
        machine.dialed(dialed)

    # Bytes.

    def _latency_ms(self) -> int:
        low, high = self.weather.latency_ms
        return low + int(self._random.random() * (high - low + 1))

    def split(self, length: int) -> int:
        if length > 1 and self._random.random() < SPLIT_CHANCE:
            return self._random.randrange(1, length)
        return length

    def _move_all(self) -> None:
        for end in self._ends:
            self.move(end)

    def move(self, end: ConnectionEnd) -> None:
        """Sends what an end has written, unless a fault holds it up."""
        path = end.path
        if end.moving or not end.queue or path in self.cut or end.broken or end.other.reading_paused:
            return
        due_ms = self._agenda.now_ms + self._latency_ms()
        if path in self._rates:
            due_ms += SLICE_MS
        if path in self._clogged:
            due_ms += self._random.randint(0, CLOG_MS)
        if self.weather.loss and self._random.random() < self.weather.loss:
            due_ms += self._random.randint(*RESENT_MS)
        end.due_ms = max(end.due_ms, due_ms)
        end.moving = True
        self._agenda.at(end.due_ms, end.arrive)

    def arrive(self, end: ConnectionEnd) -> None:
        """Delivers everything that an end has written so far, or as much as the path carries."""
        end.moving = False
        other = end.other
        if not end.queue or end.path in self.cut or end.broken or other.reading_paused:
            return
        rate = self._rates.get(end.path)
        data = end.take(None if rate is None else rate * SLICE_MS)
        if data is None:
            other.machine.when_running(other.hear_end)
            self._tell_end(end)
        else:
            other.machine.when_running(lambda: other.receive(data))
            self.move(end)

    def reject(self, end: ConnectionEnd) -> None:
        """Bytes arrived for a connection that no longer exists: their sender is reset, if it still exists."""
        if end.machine.up and end.path not in self.cut:
            self._tell_end(end.other)

    def _tell_end(self, end: ConnectionEnd) -> None:
        """Tells the end that its connection has ended."""
        self._agenda.after(self._latency_ms(), lambda: end.machine.when_running(end.hear_end))

    def linger(self, end: ConnectionEnd) -> None:
        """A closed end waits for the other end to close, up to a limit."""
        self._agenda.after(limits.LINGER_MS, lambda: end.machine.when_running(end.hear_end))

    def tell_reset(self, end: ConnectionEnd) -> None:
        """An end was reset; the other end is told, if the path works."""
        self._agenda.after(0, lambda: end.machine.when_running(end.hear_end))
        if end.path not in self.cut and not end.broken:
            self._tell_end(end.other)

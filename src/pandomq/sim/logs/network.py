"""The network between machines of a world of logs: links that come and go, and messages that are delayed, lost or
duplicated. Brokers use connections instead (`sim.network.byte_network`).

A link is between two processes. It ends when one of them ends, or when nothing has arrived for a while. The other
process is told at once if only the process died, but not if the machine failed. Messages of an older link may arrive
after those of a newer one. Paths are cut by direction: a broker's messages may arrive while no answer ever does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Final, Protocol

from pandomq.sim.agenda import Agenda
from pandomq.sim.draws import draw_between
from pandomq.sim.network.byte_network import Weather

RETRY_MS: Final = (20, 120)
"""The range of the time after which a machine tries to reach another one again."""
CLOG_MS: Final = 800


class MessageWeather(Weather):
    """The conditions for messages, which may also arrive twice or out of order."""

    doubling: float = 0.0
    disorder: float = 0.0
    """The chance that a message is overtaken."""


class Station(Protocol):
    """A machine, as the network sees it."""

    name: str

    @property
    def reachable(self) -> bool:
        """Whether a process runs that accepts links."""

    def linked(self, peer: str) -> None: ...

    def unlinked(self, peer: str, *, by_peer: bool) -> None: ...

    def delivered(self, peer: str, data: bytes) -> None: ...


class Network:
    def __init__(self, agenda: Agenda, random: Random, weather: MessageWeather, patience_ms: int) -> None:
        self._agenda = agenda
        self._random = random
        self.weather = weather
        self._patience_ms = patience_ms
        """A link that receives nothing for this time is given up."""
        self.stations: dict[str, Station] = {}
        self.cut: set[tuple[str, str]] = set()
        """The cut paths, by sender and receiver."""
        self.clogged: set[tuple[str, str]] = set()
        self._ends: dict[tuple[str, str], int] = {}
        """By broker and peer: the number of the link that the broker considers open."""
        self._numbers = 0
        self._due_ms: dict[tuple[str, str], int] = {}

    # Links.

    def begin(self) -> None:
        names = sorted(self.stations)
        for place, one in enumerate(names):
            for other in names[place + 1 :]:
                self._dial(one, other)

    def _dial(self, one: str, other: str) -> None:
        """Tries to link the two at intervals, for ever."""
        paths = ((one, other), (other, one))
        both = self.stations[one].reachable and self.stations[other].reachable
        linked = all(path in self._ends for path in paths)
        if both and not linked and not any(path in self.cut for path in paths):
            self._numbers += 1
            for path in paths:
                self._ends[path] = self._numbers
            self.stations[one].linked(other)
            self.stations[other].linked(one)
        self._agenda.after(draw_between(self._random, *RETRY_MS), lambda: self._dial(one, other))

    def is_linked(self, one: str, other: str) -> bool:
        """Whether both ends consider the link open."""
        return (one, other) in self._ends and (other, one) in self._ends

    def went(self, name: str, *, told: bool) -> None:
        """A process is gone. With `told` its operating system notifies the others; otherwise that is gone, too."""
        for at, peer in list(self._ends):
            if at == name:
                number = self._ends.pop((at, peer))
                self._tell_closed(name, peer, number, heard=told and (name, peer) not in self.cut)

    def _tell_closed(self, name: str, peer: str, number: int, *, heard: bool) -> None:
        """One end is closed; the other end is notified, or detects it later."""
        delay_ms = self._random.randint(0, 5) if heard else self._random.randint(1, self._patience_ms)
        self._agenda.after(delay_ms, lambda: self._close(peer, name, number, by_peer=heard))

    def _close(self, at: str, peer: str, number: int, *, by_peer: bool) -> None:
        if self._ends.get((at, peer)) != number:
            return
        del self._ends[at, peer]
        if self.stations[at].reachable:
            self.stations[at].unlinked(peer, by_peer=by_peer)
        if not by_peer:
            self._tell_closed(at, peer, number, heard=(at, peer) not in self.cut)

    # Paths.

    def block(self, paths: Iterable[tuple[str, str]]) -> None:
        """Nothing passes these paths from now on; both ends detect it after a while."""
        for path in paths:
            self.cut.add(path)
            for at, peer in (path, path[::-1]):
                number = self._ends.get((at, peer))
                if number is not None:
                    delay_ms = self._random.randint(1, self._patience_ms)
                    self._agenda.after(delay_ms, self._giver_up(at, peer, number))

    def _giver_up(self, at: str, peer: str, number: int) -> Callable[[], None]:
        def give_up() -> None:
            if (at, peer) in self.cut or (peer, at) in self.cut:
                self._close(at, peer, number, by_peer=False)

        return give_up

    def heal(self) -> None:
        self.cut.clear()
        self.clogged.clear()

    # Messages.

    def send(self, sender: str, receiver: str, data: bytes) -> None:
        weather, random = self.weather, self._random
        path = (sender, receiver)
        if path not in self._ends or path in self.cut or random.random() < weather.loss:
            return
        for _ in range(2 if random.random() < weather.doubling else 1):
            self._carry(sender, receiver, data)

    def _carry(self, sender: str, receiver: str, data: bytes) -> None:
        random = self._random
        due_ms = self._agenda.now_ms + draw_between(random, *self.weather.latency_ms)
        path = (sender, receiver)
        if path in self.clogged:
            due_ms += random.randint(0, CLOG_MS)
        if random.random() < self.weather.disorder:
            due_ms += random.randint(0, 60)
        else:
            due_ms = self._due_ms[path] = max(due_ms, self._due_ms.get(path, 0))

        def arrive() -> None:
            station = self.stations[receiver]
            if path not in self.cut and station.reachable:
                station.delivered(sender, data)

        self._agenda.at(due_ms, arrive)

"""What goes wrong on the network between machines: partitions with and without a rule, clogged paths, bad weather."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from pandomq.sim.agenda import Agenda
from pandomq.sim.network import Network, Weather
from pandomq.sim.trace import Trace

CUT_MS: Final = (200, 1_500, 4_000)
CLOGGED_MS: Final = (300, 2_000)


class NetworkFaults:
    def __init__(
        self, agenda: Agenda, trace: Trace, random: Random, network: Network, cut_ms: Sequence[int] = CUT_MS
    ) -> None:
        self._agenda = agenda
        self._trace = trace
        self._random = random
        self._network = network
        self._cut_ms = cut_ms

    @property
    def _names(self) -> list[str]:
        return sorted(self._network.stations)

    def split(self) -> None:
        """In two."""
        names = self._names
        side = self._random.sample(names, self._random.randint(1, max(1, len(names) - 1)))
        self._trace.say("network", f"{' '.join(sorted(side))} are cut off from the others")
        others = [name for name in names if name not in side]
        self._block([path for one in side for other in others for path in ((one, other), (other, one))])

    def deafen(self) -> None:
        """In one direction."""
        one, other = self._random.choice(self._names), self._random.choice(self._names)
        if one != other:
            self._trace.say("network", f"nothing comes from {one} to {other}")
            self._block([(one, other)])

    def tangle(self) -> None:
        """Who can talk to whom follows no rule."""
        names = self._names
        paths = [(one, other) for one in names for other in names if one != other and self._random.random() < 0.3]
        self._trace.say("network", f"cut: {', '.join(f'{one} to {other}' for one, other in paths)}")
        self._block(paths)

    def clog(self) -> None:
        one, other = self._random.choice(self._names), self._random.choice(self._names)
        self._trace.say("network", f"what {one} sends to {other} takes long")
        self._network.clogged.add((one, other))
        self._agenda.after(self._random.choice(CLOGGED_MS), self._network.clogged.clear)

    def storm(self) -> None:
        weather = Weather(
            latency_ms=self._random.choice(((0, 3), (1, 30), (20, 120))),
            loss=self._random.choice((0.0, 0.05, 0.3)),
            doubling=self._random.choice((0.0, 0.2)),
            disorder=self._random.choice((0.0, 0.3)),
        )
        self._trace.say("network", f"weather: {weather}")
        self._network.weather = weather

    def end(self) -> None:
        self._network.heal()
        self._network.weather = Weather()

    def _block(self, paths: list[tuple[str, str]]) -> None:
        self._network.block(paths)
        self._agenda.after(self._random.choice(self._cut_ms), self._heal)

    def _heal(self) -> None:
        if self._network.cut:
            self._trace.say("network", "is whole again")
        self._network.heal()

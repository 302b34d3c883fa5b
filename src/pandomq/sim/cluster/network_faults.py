"""Faults of the network between brokers: of paths, for a while, and of connections, for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.sim.network.byte_network import ByteNetwork, NetworkFault, Path, Weather

if TYPE_CHECKING:
    from pandomq.sim.agenda import Agenda
    from pandomq.sim.trace import WorldTrace

CUT_MS: Final = (100, 600, 1_500)
LONG_CUT_MS: Final = (600, 1_500, 5_000)
"""The last value is longer than a link may be silent."""
CLOGGED_MS: Final = (300, 2_000)
NARROW_MS: Final = (300, 2_000)
RATES: Final = (1, 5, 30)
"""Bytes per millisecond."""
BARRED_MS: Final = (600, 1_500, 3_000)
"""Long enough for brokers to use relays."""
RESET_CHANCE: Final = 0.4
"""The chance that connections are reset when their path is cut, so that brokers detect the cut."""


class NetworkFaults:
    def __init__(self, agenda: Agenda, trace: WorldTrace, random: Random, network: ByteNetwork) -> None:
        self._agenda = agenda
        self._trace = trace
        self._random = random
        self._network = network
        self.cut_ms = CUT_MS
        self.kinds: dict[str, Callable[[], None]] = {
            "split": self._split,
            "one way": self._cut_one_way,
            "tangle": self._tangle,
            "deaf": self._deafen,
            "mute": self._silence,
            "reset": self._reset,
            "bar": self._bar,
            "swallow": self._swallow,
            "narrow": self._narrow,
            "clog": self._clog,
            "storm": self._storm,
        }

    def end(self) -> None:
        self._network.heal()
        self._network.weather = Weather()

    # Selection of paths.

    @property
    def _names(self) -> list[str]:
        return sorted(self._network.machines)

    def _draw_pair(self) -> Path:
        one, other = self._random.sample(self._names, 2)
        return one, other

    def _draw_paths(self, chance: float) -> list[Path]:
        """Draws at least one path."""
        names = self._names
        paths = [(one, other) for one in names for other in names if one != other and self._random.random() < chance]
        return paths or [self._draw_pair()]

    def _say(self, what: str) -> None:
        self._trace.say("network", what)

    # Paths that are cut.

    def _split(self) -> None:
        """Divides the network in two."""
        names = self._names
        side = self._random.sample(names, self._random.randint(1, len(names) - 1))
        self._say(f"{' '.join(sorted(side))} are cut off from the others")
        others = [name for name in names if name not in side]
        self._cut([path for one in side for other in others for path in both_ways((one, other))])

    def _cut_one_way(self) -> None:
        one, other = self._draw_pair()
        self._say(f"nothing comes from {one} to {other}")
        self._cut([(one, other)])

    def _tangle(self) -> None:
        """Cuts paths at random."""
        paths = self._draw_paths(0.3)
        self._say(f"cut: {_words(paths)}")
        self._cut(paths)

    def _deafen(self) -> None:
        deaf, *others = self._random.sample(self._names, len(self._names))
        self._say(f"nothing comes to {deaf}")
        self._cut([(other, deaf) for other in others])

    def _silence(self) -> None:
        mute, *others = self._random.sample(self._names, len(self._names))
        self._say(f"nothing comes from {mute}")
        self._cut([(mute, other) for other in others])

    def _cut(self, paths: list[Path]) -> None:
        self._impose(NetworkFault(cut=frozenset(paths)), self._random.choice(self.cut_ms))
        if self._random.random() < RESET_CHANCE:
            self._say("connections on these paths are reset")
            self._network.reset(paths)

    def _impose(self, trouble: NetworkFault, for_ms: int) -> None:
        self._network.impose(trouble)

        def lift() -> None:
            if trouble in self._network.troubles:
                self._say(f"is whole again{', but for other troubles' if len(self._network.troubles) > 1 else ''}")
                self._network.lift(trouble)

        self._agenda.after(for_ms, lift)

    # Connections.

    def _reset(self) -> None:
        """Resets the connections of two brokers, or all connections of one."""
        one, *others = self._random.sample(self._names, len(self._names))
        met = others if self._random.random() < 0.3 else others[:1]
        self._say(f"connections between {one} and {' '.join(sorted(met))} are reset")
        self._network.reset([(one, other) for other in met])

    def _bar(self) -> None:
        """Ends connections and prevents new ones, in one direction or both, so that brokers that cannot dial each other
        use a third one as a relay."""
        path = self._draw_pair()
        paths = frozenset(both_ways(path) if self._random.random() < 0.5 else (path,))
        if self._random.random() < 0.7:
            self._say(f"new connections are refused: {_words(paths)}")
            trouble = NetworkFault(refused=paths)
        else:
            self._say(f"new connections get no answer: {_words(paths)}")
            trouble = NetworkFault(unanswered=paths)
        self._impose(trouble, self._random.choice(BARRED_MS))
        self._network.reset(paths)

    def _swallow(self) -> None:
        """Loses all bytes of a connection until a broker notices."""
        one, other = self._draw_pair()
        if self._network.break_off((one, other)):
            self._say(f"connections that carry bytes from {one} to {other} lose them for ever")

    # Paths with little capacity.

    def _narrow(self) -> None:
        rate = self._random.choice(RATES)
        paths = self._draw_paths(0.2)
        self._say(f"{rate} bytes pass in a millisecond: {_words(paths)}")
        self._impose(NetworkFault(rates=dict.fromkeys(paths, rate)), self._random.choice(NARROW_MS))

    def _clog(self) -> None:
        one, other = self._draw_pair()
        self._say(f"what {one} sends to {other} takes long")
        self._impose(NetworkFault(clogged=frozenset(((one, other),))), self._random.choice(CLOGGED_MS))

    def _storm(self) -> None:
        weather = Weather(
            latency_ms=self._random.choice(((0, 3), (1, 30), (20, 120))),
            loss=self._random.choice((0.0, 0.05, 0.3)),
        )
        self._say(f"weather: {weather}")
        self._network.weather = weather


def both_ways(path: Path) -> tuple[Path, Path]:
    one, other = path
    return (one, other), (other, one)


def _words(paths: Iterable[Path]) -> str:
    return ", ".join(f"{one} to {other}" for one, other in sorted(paths))

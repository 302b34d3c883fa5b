"""A part of a seed's world: which features, clients, machines and strikes take part, and how long faults strike.

A world is built whole, with a random stream for each client and each strike, and then leaves out what its reduction
does not keep. So the rest takes the course that it takes in the whole world, as nearly as cause and effect allow.

A person types a reduction as words, one for each field; a field without a word keeps everything:

    clients=publisher-1,configurer   machines=n1,n2   strikes=3,7-9,restart-2   faults-ms=420
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

WORD_CHARACTERS_MAX: Final = 4_000
"""The longest word. The largest world has some hundred strikes and some dozen clients."""

FIELDS: Final = "features=, clients=, machines=, strikes=, faults-ms="


class WrongReduction(ValueError):
    """The words do not describe a reduction; the message says which word is wrong and why."""


class Reduction(msgspec.Struct, frozen=True):
    """The names of what is kept. None keeps everything."""

    clients: tuple[str, ...] | None = None
    machines: tuple[str, ...] | None = None
    strikes: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    faults_ms: int | None = None
    """Faults strike no longer than this."""

    def keeps_client(self, name: str) -> bool:
        return self.clients is None or name in self.clients

    def keeps_machine(self, name: str) -> bool:
        return self.machines is None or name in self.machines

    def keeps_feature(self, name: str) -> bool:
        return self.features is None or name in self.features

    def length_ms(self, drawn_ms: int) -> int:
        """Returns the time of faults for a seed that would draw `drawn_ms`."""
        return drawn_ms if self.faults_ms is None else min(drawn_ms, self.faults_ms)

    def words(self) -> list[str]:
        named = {"features": self.features, "clients": self.clients, "machines": self.machines}
        found = [f"{field}={','.join(names)}" for field, names in named.items() if names is not None]
        if self.strikes is not None:
            found.append(f"strikes={','.join(_with_ranges(self.strikes))}")
        if self.faults_ms is not None:
            found.append(f"faults-ms={self.faults_ms}")
        return found


def parse_reduction(words: Iterable[str]) -> Reduction:
    """Raises WrongReduction."""
    fields: dict[str, tuple[str, ...] | int] = {}
    for word in words:
        field, equals, value = word.partition("=")
        if not equals or len(word) > WORD_CHARACTERS_MAX or field in fields:
            raise WrongReduction(f"{word[:80]!r} is not one of {FIELDS}, each once")
        names = tuple(name for name in value.split(",") if name)
        match field:
            case "clients" | "machines" | "features":
                fields[field] = names
            case "strikes":
                fields[field] = _without_ranges(names)
            case "faults-ms" if value.isdecimal():
                fields["faults_ms"] = int(value)
            case _:
                raise WrongReduction(f"{word[:80]!r} is not one of {FIELDS}")
    return msgspec.convert(fields, Reduction)


def _with_ranges(names: Sequence[str]) -> list[str]:
    """Combines consecutive numbers into ranges; other names stay as they are."""
    spans: list[list[int]] = []
    for number in sorted(int(name) for name in names if name.isdecimal()):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    ranges = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return [*ranges, *(name for name in names if not name.isdecimal())]


def _without_ranges(names: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        first, dash, last = name.partition("-")
        if not (dash and first.isdecimal() and last.isdecimal()):
            found.append(name)
        elif int(last) - int(first) > WORD_CHARACTERS_MAX:
            raise WrongReduction(f"a world has no {int(last) - int(first)} strikes: {name}")
        else:
            found.extend(map(str, range(int(first), int(last) + 1)))
    return tuple(found)


class Strikes:
    """Names each strike of a world, leaves out those that the reduction leaves out, and lists the others.

    The strikes of the faults' own schedule are called 1, 2, 3, …; strikes that follow from events in the world have
    their own series (restart-1, restart-2, …).
    """

    def __init__(self, reduction: Reduction) -> None:
        self._kept = None if reduction.strikes is None else frozenset(reduction.strikes)
        self._numbers: Counter[str] = Counter()
        self.names: list[str] = []
        """The names of the strikes that took place, in order."""
        self.kinds: list[str] = []
        """The kinds of the same strikes."""

    def count(self, series: str = "") -> int:
        """Returns the number of strikes of the series so far, left out or not."""
        return self._numbers[series]

    def admits(self, kind: str, series: str = "") -> bool:
        """Whether the next strike of the series takes place."""
        self._numbers[series] += 1
        name = f"{series}-{self._numbers[series]}" if series else str(self._numbers[series])
        if self._kept is not None and name not in self._kept:
            return False
        self.names.append(name)
        self.kinds.append(kind)
        return True

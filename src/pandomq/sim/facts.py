"""Facts that a client was told are in force, for other clients that try them on their brokers.

A fact has one value after the other. It is in doubt from the time at which a client requests the next value until the
client receives the answer; a fact whose change was never answered stays in doubt for ever, since the request may still
be on its way. A trial counts if the fact had one certain value from the request of the trial until its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from pandomq.sim.agenda import Agenda

T = TypeVar("T")


class Fact(Generic[T]):
    def __init__(self, name: str) -> None:
        self.name = name
        self.value: T | None = None
        """The value; None while the fact is in doubt."""
        self.version = 0

    def doubt(self) -> None:
        self.value = None
        self.version += 1

    def settle(self, value: T) -> None:
        self.value = value
        self.version += 1

    @property
    def is_certain(self) -> bool:
        return self.value is not None


class Assumption(Generic[T]):
    """The value that a fact had when a trial began, on which the trial relies."""

    def __init__(self, fact: Fact[T]) -> None:
        self.fact = fact
        self.value = fact.value
        self._version = fact.version

    @property
    def holds(self) -> bool:
        """Whether the fact had this certain value all the time."""
        return self.value is not None and self.fact.version == self._version


class Facts(Generic[T]):
    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._facts: list[Fact[T]] = []
        self.listeners: list[Callable[[Fact[T]], None]] = []

    def new(self, name: str) -> Fact[T]:
        fact: Fact[T] = Fact(name)
        self._facts.append(fact)
        return fact

    def certain(self) -> list[Fact[T]]:
        return [fact for fact in self._facts if fact.is_certain]

    def __iter__(self) -> Iterator[Fact[T]]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def settle(self, fact: Fact[T], value: T) -> None:
        """A client was told that the fact has this value. Listeners may try it at once, but not in the middle of a
        broker's step."""
        fact.settle(value)

        def tell() -> None:
            for listener in self.listeners:
                listener(fact)

        self._agenda.after(0, tell)

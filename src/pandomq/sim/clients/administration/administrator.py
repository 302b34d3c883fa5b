"""Requests one administrative change at a time from the root, and notes the new value as a fact after the answer.

If the connection breaks before the answer, the change is in doubt for ever: its fact is not tried any more, and the
administrator begins with a new name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from pandomq.errors import ConnectionFault, Fault
from pandomq.methods import Method
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.facts import Fact, Facts
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.log.commands import AdministrativeCommand
    from pandomq.sim.scene import Scene

T = TypeVar("T")

LAST_CHANGES: Final = 5
LAST_THINK_MS: Final = 120
"""The pause between two changes after the faults have ended."""


class Administrator(SimulatedClient, Generic[T]):
    def __init__(self, scene: Scene, name: str, facts: Facts[T], wanted: int) -> None:
        super().__init__(scene, name)
        self.wants_root = True
        self.facts = facts
        self._wanted = wanted
        self._think_ms = self.random.choice((5, 30, 90))
        self._prepared = 0
        self._asked: AdministrativeCommand | None = None
        self.done = 0

    # Methods that a kind of administrator implements.

    @property
    def first(self) -> Sequence[Method]:
        """Returns the methods that it sends first on each connection."""
        return ()

    def draw(self) -> tuple[AdministrativeCommand, Fact[T], T]:
        """Returns the next change, the fact that it changes, and the value of that fact afterwards."""
        raise NotImplementedError

    # The course of its requests.

    @property
    def content(self) -> bool:
        return self.done >= self._wanted

    def end_wish(self) -> None:
        # The pause is long enough for all trials of one change to end before the next change.
        self._think_ms = LAST_THINK_MS
        self._wanted = self.done + LAST_CHANGES
        self._later()

    def opened(self) -> None:
        self._prepared = 0
        self.send(*self.first)
        if not self.first:
            self._later()

    def disconnected(self) -> None:
        self._asked = None

    def method(self, method: Method, body: bytes) -> None:
        self._prepared += 1
        if self._prepared == len(self.first):
            self._later()

    def _later(self) -> None:
        self.act_later(self.random.randint(0, self._think_ms), self._change)

    def _change(self) -> None:
        cable = self.cable
        prepared = self._asked is None and self._prepared == len(self.first)
        if not prepared or self.done >= self._wanted or cable is None or not self.reaches_broker:
            return
        command, fact, value = self.draw()
        fact.doubt()
        self._asked = command

        def done(fault: Fault | None) -> None:
            if self._asked is not command or self.cable is not cable:
                return
            if isinstance(fault, ConnectionFault):
                # This broker is no longer the root and is about to close the connection, or it failed.
                self.ask_again(fault, cable)
                return
            if fault is not None:
                raise BrokenPromise("legal requests are served", f"{command}: {fault}")
            self.scene.trace.detail(self.name, f"< done: {command}")
            self._asked = None
            self.done += 1
            self.facts.settle(fact, value)
            self._later()

        self.administer(command, done)

"""A plot: a course of events that chance would bring about too seldom, with chance left in its timing.

It is a generator: what it yields is how long to wait, in milliseconds, or what to wait for. It acts on a `Stage`, and
says which of its turning points it has reached; one that waits for something in vain ends there, which is no breach of
anything. Whatever it does could happen: it only chooses when.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from pandomq.sim.logs.stage import Stage

PATIENCE_MS: Final = 8_000
"""How long a plot waits for one thing."""

Cue = int | Callable[[], bool]
Course = Generator[Cue, None, None]


class Plot(msgspec.Struct, frozen=True):
    name: str
    about: str
    course: Callable[[Stage], Course]
    nodes: tuple[int, ...]
    """Of the worlds that it can be played in."""
    settings: dict[str, int] = {}
    """Of the replicas, where chance is not to choose them."""
    compacts: bool = False
    """Snapshots are taken often, and little of the log is kept."""
    journals: dict[str, dict[str, int]] = {}
    """By machine: settings of its journal that are not the others'."""


class Performance:
    """One plot in one world."""

    def __init__(self, stage: Stage, plot: Plot) -> None:
        self._stage = stage
        self._plot = plot
        self._course = plot.course(stage)
        self._awaited: Callable[[], bool] | None = None
        self._scene = 0
        self.over = False
        self.finished = False
        """To its end, not given up."""

    def is_over(self) -> bool:
        return self.over

    def begin(self) -> None:
        self._stage.say(f"{self._plot.name}: {self._plot.about}")
        self._go_on(self._scene)

    def _go_on(self, scene: int) -> None:
        if self.over or scene != self._scene:
            return
        self._scene += 1
        self._awaited = None
        try:
            cue = next(self._course)
        except StopIteration:
            self._end(finished=True)
            return
        if isinstance(cue, int):
            self._later(cue)
            return
        self._awaited = cue
        scene = self._scene
        self._stage.agenda.after(PATIENCE_MS, lambda: self._give_up(scene))
        self.looked()

    def looked(self) -> None:
        """Something has happened in the world."""
        if self._awaited is not None and self._awaited():
            self._awaited = None
            self._later(0)

    def _later(self, delay_ms: int) -> None:
        scene = self._scene
        self._stage.agenda.after(delay_ms, lambda: self._go_on(scene))

    def _give_up(self, scene: int) -> None:
        if scene == self._scene and self._awaited is not None:
            self._stage.say("waits in vain")
            self._end(finished=False)

    def _end(self, *, finished: bool) -> None:
        self.over, self.finished = True, finished
        self._awaited = None
        self._stage.clear()

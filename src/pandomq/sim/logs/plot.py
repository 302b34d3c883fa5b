"""A plot: a course of events that chance would produce too seldom, with chance left in its timing.

A plot is a generator: it yields how long to wait, in milliseconds, or a condition to wait for. It acts on a `LogScene`,
and reports the turning points that it has reached. A plot whose condition does not become true ends there, which breaks
no promise. All its actions could happen by chance: it only chooses their times.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from pandomq.sim.logs.scene import LogScene

PATIENCE_MS: Final = 8_000
"""How long a plot waits for one condition."""

Cue = int | Callable[[], bool]
Course = Generator[Cue, None, None]


class Plot(msgspec.Struct, frozen=True):
    name: str
    about: str
    course: Callable[[LogScene], Course]
    nodes: tuple[int, ...]
    """The numbers of machines with which it can be played."""
    settings: dict[str, int] = {}
    """Settings of the replicas that chance must not choose."""
    compacts: bool = False
    """Whether snapshots are taken often, and little of the log is kept."""
    journals: dict[str, dict[str, int]] = {}
    """By machine: settings of its journal that differ from those of the others."""


class Performance:
    """One plot in one world."""

    def __init__(self, stage: LogScene, plot: Plot) -> None:
        self._stage = stage
        self._plot = plot
        self._course = plot.course(stage)
        self._awaited: Callable[[], bool] | None = None
        self._scene = 0
        self.over = False
        self.finished = False
        """Whether the plot was played to its end, and not given up."""

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
        """An event has happened in the world."""
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

    def leave_off(self) -> None:
        """Ends the plot where it is, if it is not over."""
        if not self.over:
            self._end(finished=False)
        self._stage.clear()

    def _end(self, *, finished: bool) -> None:
        self.over, self.finished = True, finished
        self._awaited = None
        self._stage.clear()

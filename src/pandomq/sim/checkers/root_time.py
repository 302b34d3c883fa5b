"""The root's clock, by which timed events are due, and the time since which the root serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.replica.limits import HAND_OVER_MS
from pandomq.sim.checkers.checker import Checker

if TYPE_CHECKING:
    from pandomq.sim.ledger import WorldLedger
    from pandomq.sim.machine import Machine
    from pandomq.sim.network.cable import Cable
    from pandomq.sim.scene import Scene

HAND_OVER_WORLD_MS: Final = HAND_OVER_MS + HAND_OVER_MS // 10
"""The longest hand-over, on the slowest clock that is still within the allowed drift."""


class Moment(NamedTuple):
    """A time by the clock of one root."""

    life: int
    """The life of the root."""
    at_ms: int


class RootTime(Checker):
    def __init__(self, ledger: WorldLedger, scene: Scene) -> None:
        super().__init__(ledger)
        self._scene = scene
        self._opened: dict[int, tuple[int, int]] = {}
        """By life: the time at which the broker began to serve, by its own clock and by the world's."""
        self.calm_ms: int | None = None
        """The time at which the faults had ended and a broker served, in the world's time."""

    def opened(self, machine: Machine) -> None:
        self._opened[machine.life] = (machine.broker_ms, machine.world_ms)

    def begin_calm(self) -> None:
        """Called by clients when the faults are over. A pause may outlast the faults, and so may a hand-over, for which
        publishers wait."""
        if self.calm_ms is None:
            now_ms, machines = self._scene.agenda.now_ms, self._scene.machines
            views = [one.replica.view() for one in machines if one.replica is not None]
            handed_over_ms = now_ms + HAND_OVER_WORLD_MS if any(view.handing_over for view in views) else now_ms
            self.calm_ms = max(handed_over_ms, *(one.paused_until_ms for one in machines))

    def now(self, cable: Cable | None) -> Moment | None:
        """Returns the time of the root that a client with this connection uses; None if that root is not known."""
        if cable is not None and not cable.proxied:
            machine = cable.machine
            return Moment(machine.life, machine.broker_ms) if machine.serving else None
        serving = [machine for machine in self._scene.machines if machine.serving]
        return Moment(serving[0].life, serving[0].broker_ms) if len(serving) == 1 else None

    def opened_ms(self, life: int) -> int:
        """Returns the time at which that root began to serve, by its own clock."""
        return self._opened[life][0]

    def opened_world_ms(self, life: int) -> int:
        return self._opened[life][1]

    def undisturbed_ms(self, life: int) -> int:
        """Returns for how long, in the world's time, this root has served without a fault."""
        if self.calm_ms is None:
            return 0
        # After a leap of time or an attempted hand-over, events that were due meanwhile may be late.
        last_ms = max(self.calm_ms, self._opened[life][1], self.ledger.last_leap_ms, self.ledger.drilled_ms)
        return self._scene.agenda.now_ms - last_ms

"""Brokers beside the primaries: they join under load, serve clients as fronts, and come and go.

Only their own clients depend on them, so all of them may fail at once, and lose their disks.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.journal.faults import StoreFault
from pandomq.sim.campaigns.reduction import Strikes
from pandomq.sim.disks.files import Loss
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine
    from pandomq.sim.scene import Scene

JOINING_MS: Final = (0, 800)
PAUSE_MS: Final = (150, 1_200)
"""The range of the time between two faults."""
DOWN_MS: Final = (1, 500)
KINDS: Final = ("crash", "crash", "stop", "pause", "wipe")
SERIES: Final = "secondary"
"""The prefix of the strikes' names."""


class Secondaries:
    def __init__(self, scene: Scene, random: Random, strikes: Strikes) -> None:
        """`strikes` are those of all faults of the world."""
        self._scene = scene
        self._random = random
        self._seed = random.getrandbits(64)
        self._times = Random(f"{self._seed} times")
        self._strikes = strikes
        self._over = False
        self.closing = False
        """A process that ends now is not started again."""
        self.on_paused: Callable[[Machine, int], None] = lambda machine, for_ms: None
        """Called when one of them pauses for so long; its connections stay open."""

    @property
    def _machines(self) -> list[Machine]:
        return self._scene.secondaries

    def begin(self) -> None:
        for machine in self._machines:
            self._start_later(machine, self._random.randint(*JOINING_MS))
        if self._machines:
            self._scene.agenda.after(self._times.randint(*PAUSE_MS), self._strike)

    def end(self) -> None:
        """The faults end, and all secondaries start."""
        self._over = True
        for machine in self._machines:
            machine.wake_up()
            if not machine.up:
                machine.start()

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        if fault is not None:
            raise BrokenPromise("a crash damages nothing", f"{machine.name}: {fault}")
        self._start_later(machine, self._random.randint(*DOWN_MS))

    def _start_later(self, machine: Machine, delay_ms: int) -> None:
        def start() -> None:
            if not machine.up and not self.closing:
                machine.start()

        self._scene.agenda.after(delay_ms, start)

    def _strike(self) -> None:
        if self._over:
            return
        # As in `Faults`, the draws of a strike do not depend on the strikes before it.
        self._random.seed(f"{self._seed} strike {self._strikes.count(SERIES)}")
        machine = self._random.choice(self._machines)
        kind = self._random.choice(KINDS)
        if self._strikes.admits(f"{kind} of a secondary", SERIES):
            self._do(kind, machine)
        self._scene.agenda.after(self._times.randint(*PAUSE_MS), self._strike)

    def _do(self, kind: str, machine: Machine) -> None:
        match kind:
            case "crash" if machine.up:
                machine.crash(self._random.choice(list(Loss)))
            case "stop" if machine.accepting and machine.awake:
                machine.shut_down()
            case "pause" if machine.node is not None:
                for_ms = self._random.choice((20, 200, 1_500))
                machine.pause(for_ms)
                self.on_paused(machine, for_ms)
            case "wipe" if machine.up:
                machine.wipe()

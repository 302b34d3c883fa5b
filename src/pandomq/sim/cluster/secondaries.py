"""Brokers beside the primaries: they join while the others work, serve clients in the root's name, and come and go.

Nothing depends on them but their own clients: so they may go all at once, and with their disks.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.journal.faults import StoreFault
from pandomq.sim.files import Loss
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine
    from pandomq.sim.scene import Scene

JOINING_MS: Final = (0, 800)
PAUSE_MS: Final = (150, 1_200)
"""Between two troubles."""
DOWN_MS: Final = (1, 500)


class Secondaries:
    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene = scene
        self._random = random
        self._over = False
        self.closing = False
        """Who ends now is not started again."""

    @property
    def _machines(self) -> list[Machine]:
        return self._scene.secondaries

    def begin(self) -> None:
        for machine in self._machines:
            self._start_later(machine, self._random.randint(*JOINING_MS))
        if self._machines:
            self._scene.agenda.after(self._random.randint(*PAUSE_MS), self._strike)

    def end(self) -> None:
        """Of the faults. All of them are to be there."""
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
        machine = self._random.choice(self._machines)
        match self._random.randrange(5):
            case 0 | 1 if machine.up:
                machine.crash(self._random.choice(list(Loss)))
            case 2 if machine.accepting and machine.awake:
                machine.shut_down()
            case 3 if machine.node is not None:
                machine.pause(self._random.choice((20, 200, 1_500)))
            case 4 if machine.up:
                machine.wipe()
        self._scene.agenda.after(self._random.randint(*PAUSE_MS), self._strike)

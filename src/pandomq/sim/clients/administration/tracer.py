"""Turns tracing on and off and changes its sample, again and again; the current root writes the traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.log.commands import PutTracing
from pandomq.errors import ConnectionFault, Fault
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.network.cable import Cable

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

SAMPLES: Final = (1.0, 1.0, 0.5, 0.01, 0.0)
THINK_MS: Final = (50, 400)


class Tracer(SimulatedClient):
    def __init__(self, scene: Scene) -> None:
        super().__init__(scene, "tracer")
        self.wants_root = True

    def opened(self) -> None:
        self._ask(1.0)

    def _ask(self, sample: float) -> None:
        cable = self.cable
        assert cable is not None
        if not self.reaches_broker:
            return

        def done(fault: Fault | None) -> None:
            if fault is not None and not isinstance(fault, ConnectionFault):
                raise BrokenPromise("legal requests are served", f"traces of {sample}: {fault}")
            self.ask_again(fault, cable)
            self.scene.agenda.after(self.random.randint(*THINK_MS), lambda: self._again(cable))

        self.administer(PutTracing("/", sample), done)

    def _again(self, cable: Cable) -> None:
        if self.cable is cable and self.ready and not self.scene.ending:
            self._ask(self.random.choice(SAMPLES))

"""Turns tracing on and off and changes its sample, again and again; the current root writes the traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.log.commands import PutTracing
from pandomq.errors import ConnectionFault, Fault
from pandomq.sim.cable import Cable
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.methods import Method
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
        assert self.cable is not None
        cable, node = self.cable, self.cable.machine.node
        if node is None or cable.life != cable.machine.life:
            # The broker has not noticed the end of the connection yet.
            return
        self.scene.trace.detail(self.name, f"> {sample}")

        def done(fault: Fault | None) -> None:
            if fault is not None and not isinstance(fault, ConnectionFault):
                raise BrokenPromise("legal requests are served", f"traces of {sample}: {fault}")
            self.ask_again(fault, cable)
            self.scene.agenda.after(self.random.randint(*THINK_MS), lambda: self._again(cable))

        node.administer(PutTracing("/", sample), done)
        cable.machine.wake()

    def _again(self, cable: Cable) -> None:
        if self.cable is cable and self.ready and not self.scene.ending:
            self._ask(self.random.choice(SAMPLES))

    def method(self, method: Method, body: bytes) -> None:
        raise BrokenPromise("legal requests are served", f"{self.name} received {method} without a request")

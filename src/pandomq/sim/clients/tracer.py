"""Switches tracing on, off and over to other samples, again and again; whoever is root writes what it traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.commands import PutTracing
from pandomq.errors import ConnectionFault, Fault
from pandomq.sim.cable import Cable
from pandomq.sim.clients.client import Client
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.methods import Method
    from pandomq.sim.scene import Scene

SAMPLES: Final = (1.0, 1.0, 0.5, 0.01, 0.0)
THINK_MS: Final = (50, 400)


class Tracer(Client):
    def __init__(self, scene: Scene) -> None:
        super().__init__(scene, "tracer")
        self.wants_root = True

    def opened(self) -> None:
        self._ask(1.0)

    def _ask(self, sample: float) -> None:
        assert self.cable is not None
        cable, node = self.cable, self.cable.machine.node
        if node is None or cable.life != cable.machine.life:
            # The connection is about to be found dead.
            return
        self.scene.trace.detail(self.name, f"> {sample}")

        def done(fault: Fault | None) -> None:
            if fault is not None and not isinstance(fault, ConnectionFault):
                raise BrokenPromise("legal requests are served", f"traces of {sample}: {fault}")
            self.scene.agenda.after(self.random.randint(*THINK_MS), lambda: self._again(cable))

        node.administer(PutTracing("/", sample), done)
        cable.machine.wake()

    def _again(self, cable: Cable) -> None:
        if self.cable is cable and self.ready and not self.scene.ending:
            self._ask(self.random.choice(SAMPLES))

    def method(self, method: Method, body: bytes) -> None:
        raise BrokenPromise("legal requests are served", f"{self.name} heard {method}, and asked for nothing")

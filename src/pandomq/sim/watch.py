"""Who looks on while machines run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pandomq.journal.faults import StoreFault
    from pandomq.sim.cable import Cable
    from pandomq.sim.frames import Heard
    from pandomq.sim.machine import Machine


class Watch(Protocol):
    def emitted(self, cable: Cable, methods: list[Heard]) -> None:
        """The broker wrote this."""

    def stepped(self, machine: Machine) -> None: ...

    def opened(self, machine: Machine) -> None:
        """It serves again."""

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        """The process is gone; with a fault if it ended itself."""

    def left(self, machine: Machine) -> None:
        """This life is over, and the process begins another one."""

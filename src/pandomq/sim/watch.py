"""Observers of running machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pandomq.journal.faults import StoreFault
    from pandomq.sim.machine import Machine
    from pandomq.sim.network.cable import Cable
    from pandomq.sim.network.frames import Heard


class Watch(Protocol):
    def emitted(self, cable: Cable, methods: list[Heard]) -> None:
        """The broker wrote this."""

    def stepped(self, machine: Machine) -> None: ...

    def opened(self, machine: Machine) -> None:
        """The machine's broker serves again."""

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        """The process is gone; with a fault if it ended itself."""

    def injected(self) -> None:
        """An unexpected exception was raised in a broker."""

    def left(self, machine: Machine) -> None:
        """To be called when this life is over, and the process begins another one."""

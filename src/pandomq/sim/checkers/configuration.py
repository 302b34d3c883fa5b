"""What was declared, bound and administered is there after every restart, and in the end: a model tells."""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.clients.configurer import Configurer
from pandomq.sim.machine import Machine


class ConfigurationKept(Checker):
    configurer: Configurer | None = None

    def opened(self, machine: Machine) -> None:
        if self.configurer is not None:
            self.configurer.restarted(machine)

    def begin_epoch(self) -> None:
        if self.configurer is not None:
            self.configurer.begin_epoch()

    def finished(self, machine: Machine) -> None:
        if self.configurer is not None:
            self.configurer.check(machine)

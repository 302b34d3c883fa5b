"""The configuration equals a model after every restart, and at the end."""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.clients.administration.configurer import Configurer
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

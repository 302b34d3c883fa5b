"""Brokers fail at requests now and then: an unexpected exception is raised somewhere in their code.

At most one client receives an error. All others keep what they were promised: the broker either continues with
unchanged state, or restarts its state from its log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.sim.features.feature import Feature
from pandomq.sim.injection import REQUESTS, Injection

if TYPE_CHECKING:
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.machine import Machine

KIND: Final = "exception"
CALLS_MAX: Final = 1_000
"""The maximum number of calls until an exception; a step makes some hundred calls."""
CALLS_IN_REQUESTS_MAX: Final = 30
"""The maximum number of calls until an exception within a request, which makes some ten calls."""
ANYWHERE_CHANCE: Final = 0.2
"""The chance that an exception is raised at any call; the others are raised while one kind of request is handled."""
SHARE: Final = 3
"""Injected exceptions are one of so many kinds of faults."""


class ExceptionsFeature(Feature):
    name = "exceptions"
    chance = 0.2

    def join_faults(self, faults: WorldFaults) -> None:
        for _ in range(SHARE):
            faults.add_kind(KIND, self._strike)

    def _strike(self, machine: Machine) -> None:
        within = None if self.random.random() < ANYWHERE_CHANCE else self.random.choice(REQUESTS)
        calls = self.random.randint(1, CALLS_MAX if within is None else CALLS_IN_REQUESTS_MAX)
        machine.injection = Injection(calls, within=within, told=machine.watch.injected)

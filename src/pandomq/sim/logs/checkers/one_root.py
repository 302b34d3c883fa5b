"""At most one root in a term, and at most one that serves at any time (P1)."""

from __future__ import annotations

from pandomq.replica.effects import Effect, RoleChanged
from pandomq.replica.roles.transitions import Role
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.history import History
from pandomq.sim.logs.machine import LogMachine

PROMISE = "one root"


class OneRoot(LogChecker):
    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._roots: dict[tuple[str, int], tuple[str, int]] = {}
        """By epoch and term: machine and life."""

    def told(self, machine: LogMachine, effect: Effect) -> None:
        if isinstance(effect, RoleChanged) and effect.role is Role.ROOT:
            assert machine.keeper is not None
            key = (machine.keeper.replica.view().epoch_id, effect.term)
            one = (machine.name, machine.life)
            other = self._roots.setdefault(key, one)
            if other != one:
                raise BrokenPromise(PROMISE, f"{machine.name} and {other[0]} are both root in term {effect.term}")

    def stepped(self, machine: LogMachine) -> None:
        assert machine.keeper is not None
        if machine.keeper.replica.role is not Role.ROOT or not self.history.clocks_hold:
            return
        roots = [one for one in self.history.machines if one.keeper and one.keeper.replica.role is Role.ROOT]
        serving = [one for one in roots if self._serves(one)] if len(roots) > 1 else []
        epochs = {one.keeper.replica.view().epoch_id for one in serving if one.keeper is not None}
        if len(serving) > len(epochs):
            names = " and ".join(one.name for one in serving)
            raise BrokenPromise(PROMISE, f"{names} serve at the same time")

    def _serves(self, machine: LogMachine) -> bool:
        """Its lease holds now, by its own clock, and it is not asleep."""
        if not machine.awake or machine.keeper is None:
            return False
        view = machine.keeper.replica.view()
        late_ms = machine.steady.now_ms() - machine.keeper.now_ms
        return view.serving and (view.lease_left_ms is None or view.lease_left_ms > late_ms)

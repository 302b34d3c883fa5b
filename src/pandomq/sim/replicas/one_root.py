"""At most one root in a term, and at most one that serves at any time (P1)."""

from __future__ import annotations

from pandomq.replica.roles.transitions import Role
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.replicas.holder import Holder

PROMISE = "one root"


class OneRoot:
    def __init__(self, history: LogHistory) -> None:
        self._history = history
        self._roots: dict[tuple[str, int], tuple[str, int]] = {}
        """By epoch and term: machine and life."""

    def stepped(self, holder: Holder) -> None:
        replica = holder.replica
        if replica is None or replica.role is not Role.ROOT:
            return
        state = replica._core.state
        one = (holder.name, holder.life)
        other = self._roots.setdefault((state.epoch_id, state.term), one)
        if other != one:
            raise BrokenPromise(PROMISE, f"{holder.name} and {other[0]} are both root in term {state.term}")
        self._check_serving()

    def _check_serving(self) -> None:
        roots = [one for one in self._history.holders if one.replica is not None and one.replica.role is Role.ROOT]
        if len(roots) < 2:
            return
        serving = [one for one in roots if _serves(one)]
        epochs = {one.replica._core.state.epoch_id for one in serving if one.replica is not None}
        if len(serving) > len(epochs):
            names = " and ".join(one.name for one in serving)
            raise BrokenPromise(PROMISE, f"{names} serve at the same time")


def _serves(holder: Holder) -> bool:
    """Its lease holds now, by its own clock, and it is not asleep."""
    if not holder.awake or holder.replica is None:
        return False
    view = holder.replica.view()
    return view.serving and (view.lease_left_ms is None or view.lease_left_ms > holder.late_ms)

"""Checks that there is at most one root in a term, and at most one broker that serves as the root at any time (P1)."""

from __future__ import annotations

from pandomq.replica.roles.transitions import Role
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.replicas.holder import ReplicaHolder

PROMISE = "one root"


class OneRoot:
    def __init__(self, history: LogHistory) -> None:
        self._history = history
        self._roots: dict[tuple[str, int], tuple[str, int]] = {}
        """By epoch and term: machine and life."""

    def stepped(self, holder: ReplicaHolder) -> None:
        replica = holder.replica
        if replica is None or replica.role is not Role.ROOT:
            return
        self.elected(holder, replica._core.state.term)
        if self._history.clocks_hold:
            self._check_serving()

    def elected(self, holder: ReplicaHolder, term: int) -> None:
        """The machine is or was root in this term of its epoch."""
        assert holder.replica is not None
        one = (holder.name, holder.life)
        other = self._roots.setdefault((holder.replica._core.state.epoch_id, term), one)
        if other != one:
            raise BrokenPromise(PROMISE, f"{holder.name} and {other[0]} are both root in term {term}")

    def _check_serving(self) -> None:
        roots = [one for one in self._history.holders if one.replica is not None and one.replica.role is Role.ROOT]
        if len(roots) < 2:
            return
        serving = [one for one in roots if _serves(one)]
        epochs = {one.replica._core.state.epoch_id for one in serving if one.replica is not None}
        if len(serving) > len(epochs):
            names = " and ".join(one.name for one in serving)
            raise BrokenPromise(PROMISE, f"{names} serve at the same time")


def _serves(holder: ReplicaHolder) -> bool:
    """Whether its lease is valid now, by its own clock, and the machine is not paused."""
    if not holder.awake or holder.replica is None:
        return False
    view = holder.replica.view()
    return view.serving and (view.lease_left_ms is None or view.lease_left_ms > holder.late_ms)

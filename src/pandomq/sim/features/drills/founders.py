"""A founder that loses its store while another founder is down, before its cluster has begun or soon after.

It must neither take part in founding a cluster a second time, nor vote for a broker that lacks entries which the lost
store had. The broker that was down may lack them, and the broker that has them is killed at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.sim.cluster.faults import ClusterFaults
from pandomq.sim.features.drills.drill import of_brokers
from pandomq.sim.features.feature import Feature

if TYPE_CHECKING:
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

NODES_MIN: Final = 3
LOOK_MS: Final = 3
EARLY_CHANCE: Final = 0.5
EARLY_UNTIL_MS: Final = 500
AWAY_MS: Final = (200, 700)
"""How long a broker is down before another one loses its store."""
LENGTHS_MS: Final = (2_000, 3_000)
"""The time of faults: a cluster is founded, and works for a while before the loss."""
ALONE_MS: Final = (700, 1_500)
"""How long the two brokers are without those that ran meanwhile."""


class FoundersFeature(Feature):
    name = "founders"
    chance = 0.35

    @classmethod
    def suits(cls, world: World) -> bool:
        return of_brokers(world, NODES_MIN) and not world.founded

    def join_faults(self, faults: WorldFaults) -> None:
        assert isinstance(faults, ClusterFaults)
        self._faults = faults
        # No other broker loses data at the same time, and none is promoted without those that are down.
        lose = ("wipe", "old copy", "rot", "promote", "members")
        faults.kinds = [kind for kind in faults.kinds if kind not in lose] or ["kill"]
        agenda = self.world.agenda
        if self.random.random() < EARLY_CHANCE:
            agenda.after(LOOK_MS, self._look_for_prepared)
        else:
            # No other fault hits brokers, so that the cluster is founded in time.
            self.world.lengths_ms = LENGTHS_MS
            faults.kinds = ["cut"]
            agenda.after(self.random.randint(300, 600), self._take_one_down)

    # Before the cluster is founded.

    def _look_for_prepared(self) -> None:
        """Looks for a founder that has agreed to found a cluster, and not founded it."""
        if self._faults.over or self.world.agenda.now_ms > EARLY_UNTIL_MS:
            return
        prepared = [machine for machine in self.world.machines if _is_prepared(machine)]
        if len(prepared) < 2 or self.random.random() < 0.5 or not self._admits("wipe while founding"):
            self.world.agenda.after(LOOK_MS, self._look_for_prepared)
            return
        wiped, *rest = self.random.sample(prepared, 2)
        for machine in rest:
            self._faults.hold_down(machine, self.random.randint(*AWAY_MS))
        self._wipe(wiped)

    # After the cluster is founded.

    def _take_one_down(self) -> None:
        """Takes one broker down, as soon as there is a root."""
        root = next((machine for machine in self.world.machines if machine.serving), None)
        if self._faults.over:
            return
        if root is None or root.replica is None or root.replica.membership is None:
            self.world.agenda.after(10, self._take_one_down)
            return
        voters = [one for one in self.world.machines if one.name in root.replica.membership.names]
        backups = [machine for machine in voters if machine is not root and machine.replica is not None]
        if len(backups) < len(voters) - 1 or not self._admits("founder down"):
            self.world.agenda.after(10, self._take_one_down)
            return
        quorum = len(voters) // 2 + 1
        absent = self.random.sample(backups, quorum - 1)
        away_ms = self.random.randint(*AWAY_MS)
        for machine in absent:
            self._faults.hold_down(machine, away_ms)
        self.world.agenda.after(away_ms - 1, lambda: self._leave_them_alone(voters, absent))

    def _leave_them_alone(self, voters: list[Machine], absent: list[Machine]) -> None:
        """The brokers that were down start; of the others one has lost its store and the rest are down."""
        others = [machine for machine in voters if machine not in absent]
        if self._faults.over or any(machine.lacks_data for machine in self.world.machines):
            return
        if not self._admits("wipe while a founder is down"):
            return
        wiped = self.random.choice(others)
        for machine in others:
            if machine is not wiped:
                self._faults.hold_down(machine, self.random.randint(*ALONE_MS))
        self._wipe(wiped)

    def _wipe(self, machine: Machine) -> None:
        machine.wipe()
        self._faults.start_later(machine)

    def _admits(self, kind: str) -> bool:
        return self._faults.strikes.admits(kind, "founders")


def _is_prepared(machine: Machine) -> bool:
    if machine.node is None or machine.node._disk is None or not machine.node.peers.life.store_is_read:
        return False
    state = machine.journal.store_identity.state
    return bool(state.founding) and not state.cluster_id

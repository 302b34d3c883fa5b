"""Faults of several brokers and of the network between them, and actions of operators meanwhile.

Operators promote a broker by force as the manual says. The brokers that it leaves out restart only while the promoted
one runs, or they would continue by themselves; and the next promoted broker has received the previous promotion, or the
two would be two clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.ids import NodeName
from pandomq.replica.members.membership import Member
from pandomq.sim.cluster.checkers.subscriptions import FALTERING
from pandomq.sim.cluster.network_faults import LONG_CUT_MS, NetworkFaults
from pandomq.sim.disks.files import Loss
from pandomq.sim.faults import WorldFaults
from pandomq.sim.machine import Machine
from pandomq.sim.machine_faults import KILL
from pandomq.sim.replicas.faults import ReplicaFaults

if TYPE_CHECKING:
    from pandomq.node.views.cluster_knowledge import OnEnded
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.network.byte_network import ByteNetwork
    from pandomq.sim.scene import Scene

DOWN_MS: Final = (1, 600)
CALM_CHANCE: Final = 0.3
"""The chance of a network without faults."""
ROOT_LIVES_MS: Final = 500
"""The mean life of a root, in worlds in which only roots die."""
HELD_DOWN_MS: Final = 2_000
"""The time for which a machine that was named as dead stays down."""


class ClusterFaults(ReplicaFaults[Machine], WorldFaults):
    down_ms = DOWN_MS
    named_dead_ms = HELD_DOWN_MS

    def __init__(self, scene: Scene, clients: list[SimulatedClient], random: Random, network: ByteNetwork) -> None:
        self._of_network = NetworkFaults(scene.agenda, scene.trace, random, network)
        self._network = network
        self._unanswered = set()
        self._done_without: dict[str, Machine | None] = {}
        """By machine that was named as dead: the machine that was to be promoted; without refused promotions."""
        self._epoch = 0
        """The last epoch that an operator knows."""
        self.on_promoted: Callable[[Machine], None] = lambda machine: None
        """Called after a forced promotion."""
        super().__init__(scene, clients, random)
        self._rots = False
        if random.random() < CALM_CHANCE:
            self.kinds = [kind for kind in self.kinds if kind not in self._of_network.kinds] or [KILL]

    def _all_kinds(self) -> dict[str, Callable[[Machine], None]]:
        return {
            **super()._all_kinds(),
            **{kind: _on_any(strike) for kind, strike in self._of_network.kinds.items()},
        }

    @property
    def _network_fails(self) -> bool:
        return bool(self._network.troubles)

    @property
    def network_is_calm(self) -> bool:
        return not any(kind in self._of_network.kinds for kind in self.kinds)

    def only_roots_die(self) -> None:
        """Kills only roots, again and again; each one lives long enough to make progress."""
        self.kinds = ["kill root"]
        self._pause_ms = ROOT_LIVES_MS

    def keep_ways_whole(self) -> None:
        """No fault breaks the path between two live brokers, and each root lives long enough to make progress."""
        spared = (*FALTERING, *self._of_network.kinds)
        self.kinds = [kind for kind in self.kinds if kind not in spared] or ["kill root"]
        self._pause_ms = ROOT_LIVES_MS

    def cut_for_long(self) -> None:
        """Cuts paths for longer than links may be silent."""
        self._of_network.cut_ms = LONG_CUT_MS
        self.kinds += [kind for kind in ("split", "one way") if kind not in self.kinds]

    def end(self) -> None:
        self._of_network.end()
        for machine in self._machines:
            machine.wake_up()
        super().end()

    # A machine whose process ended.

    def _repair(self, machine: Machine) -> None:
        if machine.rotten_pages is not None and machine.up:
            machine.crash(Loss.NONE)
            self._agenda.after(0, lambda: self._replace(machine))

    def hold_down(self, machine: Machine, for_ms: int) -> None:
        """Kills the machine's process, and does not start it for this time."""
        self._held_down[machine.name] = self._agenda.now_ms + for_ms
        self._kill(machine)

    def _stays_down(self, machine: Machine) -> bool:
        promoted = self._done_without.get(machine.name)
        return (promoted is not None and not promoted.up) or super()._stays_down(machine)

    # Machines.

    def _stop(self, machine: Machine) -> None:
        if machine.accepting and machine.awake:
            machine.shut_down()

    # Operators.

    def _said(self, machine: Machine) -> OnEnded:
        return lambda done, text: self._trace.say(machine.name, f"{'done' if done else 'refused'}: {text}")

    def _ask_hand_over(self, root: Machine) -> None:
        root.ask(lambda peers: peers.hand_over(None, self._said(root)))

    def _ask_members(self, root: Machine, names: list[str]) -> None:
        root.ask(lambda peers: peers.change_members([member(name) for name in names], self._said(root)))

    def _promotable(self, alive: list[Machine]) -> list[Machine]:
        return [one for one in alive if one.replica is not None and one.replica.view().epoch >= self._epoch]

    def _ask_promotion(self, machine: Machine, dead: list[str], epoch_id: str) -> None:
        before = {name: self._done_without.get(name) for name in dead}
        self._done_without |= dict.fromkeys(dead, machine)

        def ended(done: bool, text: str) -> None:
            self._said(machine)(done, text)
            self._promotion_ended(epoch_id, done=done)
            if done:
                assert machine.replica is not None
                self._epoch = machine.replica.view().epoch
                self.on_promoted(machine)
            else:
                self._done_without |= before

        machine.ask(lambda peers: peers.promote(dead, epoch_id, ended))


def _on_any(strike: Callable[[], None]) -> Callable[[Machine], None]:
    """Applies the strike regardless of the machine that was drawn."""
    return lambda machine: strike()


def member(name: str) -> Member:
    return Member(NodeName(name), f"{name}:5672")

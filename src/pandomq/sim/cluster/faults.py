"""What goes wrong among several brokers and the network between them, and what people do to them meanwhile.

No more is destroyed than the promises allow: of synced data one machine at a time loses some, and only when the one
before has got it back. By force a broker is promoted only when those it does without are down.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.ids import NodeName
from pandomq.journal.faults import CorruptFault, StoreFault
from pandomq.replica.membership import Member
from pandomq.replica.roles.transitions import Role
from pandomq.sim.faults import Faults
from pandomq.sim.files import Loss
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.network_faults import NetworkFaults

if TYPE_CHECKING:
    from pandomq.node.cluster_notices import OnEnded
    from pandomq.replica.view import ReplicaView
    from pandomq.sim.clients.client import Client
    from pandomq.sim.machine import Machine
    from pandomq.sim.network import Network
    from pandomq.sim.scene import Scene

DOWN_MS: Final = (1, 600)
CUT_MS: Final = (100, 600, 1_500)
ROOT_LIVES_MS: Final = 500
"""On average, where roots are all that dies."""
PATIENCE_MS: Final = 1_500
"""Of a person who waits for a root."""
HELD_DOWN_MS: Final = 2_000
"""Who is said to be dead stays so for this long."""


class ClusterFaults(Faults):
    def __init__(self, scene: Scene, clients: list[Client], random: Random, network: Network) -> None:
        self._weather = NetworkFaults(scene.agenda, scene.trace, random, network, CUT_MS)
        self._network = network
        self._held_down: dict[str, int] = {}
        self._unanswered: set[str] = set()
        """Forced promotions of which nobody heard what became of them."""
        self.on_promoted: Callable[[Machine], None] = lambda machine: None
        """Is told of a forced promotion that was done."""
        super().__init__(scene, clients, random)
        self._rots = False

    def _all_kinds(self) -> dict[str, Callable[[Machine], None]]:
        weather = self._weather
        return {
            **super()._all_kinds(),
            "kill root": self._kill_root,
            "power of all": self._lose_all_power,
            "wipe": self._wipe,
            "old copy": self._put_back,
            "rot": self._rot_or_cut,
            "split": lambda machine: weather.split(),
            "one way": lambda machine: weather.deafen(),
            "tangle": lambda machine: weather.tangle(),
            "clog": lambda machine: weather.clog(),
            "storm": lambda machine: weather.storm(),
            "hand over": self._hand_over,
            "members": self._change_members,
            "promote": self._promote,
        }

    def only_roots_die(self) -> None:
        """Again and again, and each lives long enough to be of use."""
        self.kinds = ["kill root"]
        self._pause_ms = ROOT_LIVES_MS

    def end(self) -> None:
        self._weather.end()
        for machine in self._scene.machines:
            machine.wake_up()
            machine.disk.calm_down()
        super().end()
        self._scene.agenda.after(PATIENCE_MS, self._promote_again)

    # What becomes of a machine whose process ended.

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        if isinstance(fault, CorruptFault):
            if not machine.wounded:
                raise BrokenPromise("a crash damages nothing", f"{machine.name}: {fault}")
            # Nothing can be read of it: a person replaces the disk.
            self._scene.agenda.after(0, lambda: self._replace(machine))
        elif fault is not None and self.over and machine.life > self._last_lives[machine]:
            raise BrokenPromise("progress", f"{machine.name} ended on a healthy disk: {fault}")
        self._start_later(machine)

    def _replace(self, machine: Machine) -> None:
        if not machine.up:
            machine.wipe()

    def _start_later(self, machine: Machine) -> None:
        delay_ms = self._random.randint(1, 50) if self.over else self._random.randint(*DOWN_MS)

        def start() -> None:
            if self._scene.agenda.now_ms < self._held_down.get(machine.name, 0) and not self.over:
                self._start_later(machine)
            else:
                self._start(machine)

        self._scene.agenda.after(delay_ms, start)

    # Machines.

    @property
    def _root(self) -> Machine | None:
        return next((one for one in self._scene.machines if one.replica and one.replica.role is Role.ROOT), None)

    def _kill_root(self, machine: Machine) -> None:
        root = self._root
        if root is not None:
            root.crash(self._random.choice(list(Loss)))

    def _lose_all_power(self, machine: Machine) -> None:
        self._scene.trace.say("faults", "power fails everywhere")
        for one in self._scene.machines:
            self._lose_power(one)

    def _stop(self, machine: Machine) -> None:
        if machine.accepting and machine.awake:
            machine.shut_down()

    def _views(self) -> list[ReplicaView]:
        return [machine.replica.view() for machine in self._scene.machines if machine.replica is not None]

    def _may_lose(self) -> bool:
        """Everything that was lost has come back, and there are enough others."""
        if len(self._scene.machines) < 3 or any(machine.wounded for machine in self._scene.machines):
            return False
        views = self._views()
        voters = [view for view in views if view.membership is not None and view.name in view.membership.names]
        settled = all(view.membership is not None and not view.membership.joint for view in views)
        return len(voters) >= 3 and settled and not any(view.joining for view in views)

    def _wipe(self, machine: Machine) -> None:
        if self._may_lose():
            machine.wipe()
            self._start_later(machine)

    def _put_back(self, machine: Machine) -> None:
        """Its store as it was a while ago. Nobody can tell if it has no mark: so that is done only while all others
        have all that it ever had."""
        if machine.copy is None:
            if machine.replica is not None and not machine.wounded:
                machine.copy_store()
        elif self._may_lose() and machine.up:
            machine.put_back(mark=self._random.random() < 0.5 or not self._are_even())

    def _are_even(self) -> bool:
        """All logs are one, and nobody has voted for anybody but the root whom all follow."""
        views = self._views()
        ends = {(view.epoch_id, view.term, view.root, view.commit_index) for view in views}
        even = all(view.last_index == view.commit_index == view.synced_index and view.root for view in views)
        return len(views) == len(self._scene.machines) and len(ends) == 1 and even

    def _rot_or_cut(self, machine: Machine) -> None:
        """One bit, or the end of a file, of a machine that is down."""
        if not self._may_lose() or not machine.up:
            return
        machine.crash(Loss.NONE)
        sizes = {file: size for file, size in machine.disk.sizes().items() if size > 600}
        if not sizes:
            return
        machine.wounded = True
        file = self._random.choice(sorted(sizes))
        if self._random.random() < 0.3:
            size_bytes = self._random.randrange(sizes[file])
            self._scene.trace.say(machine.name, f"{file} is cut from {sizes[file]} to {size_bytes} bytes")
            machine.disk.truncate_file(file, size_bytes)
        else:
            bit = self._random.randrange(sizes[file] * 8)
            self._scene.trace.say(machine.name, f"rots: bit {bit % 8} of byte {bit // 8} of {file}")
            machine.disk.flip_bit(file, bit)

    # People.

    def _said(self, machine: Machine) -> OnEnded:
        return lambda done, text: self._scene.trace.say(machine.name, f"{'done' if done else 'refused'}: {text}")

    def _hand_over(self, machine: Machine) -> None:
        root = self._root
        if root is not None:
            self._scene.trace.say(root.name, "is asked to hand over")
            root.ask(lambda peers: peers.hand_over(None, self._said(root)))

    def _change_members(self, machine: Machine) -> None:
        root, machines = self._root, self._scene.machines
        if root is None or any(one.wounded for one in machines):
            return
        names = sorted(self._random.sample([one.name for one in machines], 1 + self._random.randrange(len(machines))))
        if len(machines) > 2 and len(names) < 2:
            return
        self._scene.trace.say(root.name, f"is asked to make {' '.join(names)} the primaries")
        members = [member(name) for name in names]
        root.ask(lambda peers: peers.change_members(members, self._said(root)))

    def _promote(self, machine: Machine) -> None:
        """By force, when those who are down keep the others from having a root."""
        machines = self._scene.machines
        dead = [one.name for one in machines if not one.up]
        alive = [one for one in machines if one.awake and one.replica is not None]
        lost = any(one.wounded for one in machines)
        if not dead or not alive or len(alive) + len(dead) < len(machines) or self._network.cut or lost or self._root:
            return
        one = self._random.choice(alive)
        assert one.replica is not None
        for name in dead:
            self._held_down[name] = self._scene.agenda.now_ms + HELD_DOWN_MS
        membership = one.replica.view().membership
        self._promote_one(one, [name for name in dead if membership is not None and name in membership.names])

    def _promote_one(self, machine: Machine, dead: list[str]) -> None:
        epoch_id = f"{self._random.getrandbits(64):016x}"
        self._scene.trace.say(machine.name, f"is promoted by force, without {' '.join(dead) or 'anybody missing'}")
        self._unanswered.add(epoch_id)

        def ended(done: bool, text: str) -> None:
            self._said(machine)(done, text)
            self._unanswered.discard(epoch_id)
            if done:
                self._unanswered.clear()
                self.on_promoted(machine)

        machine.ask(lambda peers: peers.promote(dead, epoch_id, ended))

    def _promote_again(self) -> None:
        """Who was not answered asks once more, now that all are there, until somebody is promoted."""
        if self._unanswered and self._root is None:
            machine = self._random.choice(self._scene.machines)
            if machine.replica is not None:
                self._promote_one(machine, [])
        self._scene.agenda.after(2 * PATIENCE_MS, self._promote_again)


def member(name: str) -> Member:
    return Member(NodeName(name), f"{name}:5672")

"""Faults of several machines with a replica each, and actions of operators meanwhile.

The faults destroy no more than the promises allow. Only one machine at a time loses synced data, and only after the
previous one has it back. A machine is promoted by force only while the machines that it leaves out are down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from pandomq.journal.faults import CorruptFault
from pandomq.replica.roles.transitions import Role
from pandomq.replica.view import ReplicaView
from pandomq.sim.disks.files import Loss
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.machine_faults import MachineFaults, MachineT

ROTTEN_BYTES_MIN: Final = 600
"""Only files that are larger than this rot."""
PATIENCE_MS: Final = 1_500
"""The time for which an operator waits for a root."""


class ReplicaFaults(MachineFaults[MachineT]):
    down_ms: ClassVar[tuple[int, int]]
    """The range of the time for which a machine stays down."""
    named_dead_ms: ClassVar[int]
    """The time for which a machine that was named as dead stays down."""
    _unanswered: set[str]
    """The epochs of forced promotions whose outcome no operator knows."""

    def _all_kinds(self) -> dict[str, Callable[[MachineT], None]]:
        return {
            **super()._all_kinds(),
            "kill root": self._kill_root,
            "power of all": self._lose_all_power,
            "wipe": self._wipe,
            "old copy": self._put_back,
            "rot": self._rot_or_cut,
            "hand over": self._hand_over,
            "members": self._change_members,
            "promote": self._promote,
        }

    def end(self) -> None:
        super().end()
        self._agenda.after(PATIENCE_MS, self._promote_again)

    @property
    def _network_fails(self) -> bool:
        """Whether some machines cannot reach each other now."""
        raise NotImplementedError

    # A machine whose process ended.

    def _blame(self, machine: MachineT, fault: CorruptFault) -> None:
        if not machine.wounded and (fault.file is None or fault.file != machine.rotten_pages):
            raise BrokenPromise("a crash damages nothing", f"{machine.name}: {fault}")
        # The disk cannot be read, so an operator replaces it.
        self._agenda.after(0, lambda: self._replace(machine))

    def _replace(self, machine: MachineT) -> None:
        if not machine.up:
            machine.wipe()

    def start_later(self, machine: MachineT) -> None:
        random = self._random_after_end(machine, "end")
        delay_ms = random.randint(1, 50) if self.over else random.randint(*self.down_ms)

        def start() -> None:
            if self._stays_down(machine) and not self.over:
                self.start_later(machine)
            else:
                self._start(machine)

        self._agenda.after(delay_ms, start)

    def _stays_down(self, machine: MachineT) -> bool:
        return self._agenda.now_ms < self._held_down.get(machine.name, 0)

    # Machines.

    @property
    def _root(self) -> MachineT | None:
        return next((one for one in self._machines if one.replica and one.replica.role is Role.ROOT), None)

    def _kill_root(self, machine: MachineT) -> None:
        root = self._root
        if root is not None:
            root.crash(self._random.choice(list(Loss)))

    def _lose_all_power(self, machine: MachineT) -> None:
        self._trace.say("faults", "power fails everywhere")
        for one in self._machines:
            self._lose_power(one)

    def _views(self) -> list[ReplicaView]:
        return [machine.replica.view() for machine in self._machines if machine.replica is not None]

    def _may_lose(self) -> bool:
        """Whether all lost data has come back, and there are enough other machines."""
        if len(self._machines) < 3 or any(machine.lacks_data for machine in self._machines):
            return False
        views = self._views()
        voters = [view for view in views if view.membership is not None and view.name in view.membership.names]
        settled = all(view.membership is not None and not view.membership.joint for view in views)
        return len(voters) >= 3 and settled and not any(view.joining for view in views)

    def _wipe(self, machine: MachineT) -> None:
        if self._may_lose():
            machine.wipe()
            self.start_later(machine)

    def _put_back(self, machine: MachineT) -> None:
        """Restores an older copy of the machine's store. The age of a copy without a mark cannot be detected, so it is
        used only while all others have everything that this machine ever had."""
        if machine.copy is None:
            if machine.replica is not None and not machine.lacks_data:
                machine.copy_store()
        elif self._may_lose() and machine.up:
            machine.put_back(mark=self._random.random() < 0.5 or not self._are_even())

    def _are_even(self) -> bool:
        """Whether all logs are equal, and all votes are for the root that all others follow."""
        views = self._views()
        ends = {(view.epoch_id, view.term, view.root, view.commit_index) for view in views}
        even = all(view.last_index == view.commit_index == view.synced_index and view.root for view in views)
        return len(views) == len(self._machines) and len(ends) == 1 and even

    def _rot_or_cut(self, machine: MachineT) -> None:
        """Flips one bit, or cuts the end of a file, on a machine that is down."""
        if not self._may_lose() or not machine.up:
            return
        machine.crash(Loss.NONE)
        sizes = {file: size for file, size in machine.disk.sizes().items() if size > ROTTEN_BYTES_MIN}
        if not sizes:
            return
        machine.wounded = True
        file = self._random.choice(sorted(sizes))
        if self._random.random() < 0.3:
            size_bytes = self._random.randrange(sizes[file])
            self._trace.say(machine.name, f"{file} is cut from {sizes[file]} to {size_bytes} bytes")
            machine.disk.truncate_file(file, size_bytes)
        else:
            bit = self._random.randrange(sizes[file] * 8)
            self._trace.say(machine.name, f"rots: bit {bit % 8} of byte {bit // 8} of {file}")
            machine.disk.flip_bit(file, bit)

    # Operators.

    def _hand_over(self, machine: MachineT) -> None:
        root = self._root
        if root is not None:
            self._trace.say(root.name, "is asked to hand over")
            self._ask_hand_over(root)

    def _ask_hand_over(self, root: MachineT) -> None:
        raise NotImplementedError

    def _change_members(self, machine: MachineT) -> None:
        root, machines = self._root, self._machines
        if root is None or any(one.lacks_data for one in machines):
            return
        names = sorted(self._random.sample([one.name for one in machines], 1 + self._random.randrange(len(machines))))
        if len(machines) > 2 and len(names) < 2:
            return
        self._trace.say(root.name, f"is asked to make {' '.join(names)} the primaries")
        self._ask_members(root, names)

    def _ask_members(self, root: MachineT, names: list[str]) -> None:
        raise NotImplementedError

    def _promote(self, machine: MachineT) -> None:
        """Promotes a machine by force, if the machines that are down keep the others from electing a root."""
        machines = self._machines
        dead = [one.name for one in machines if not one.up]
        alive = [one for one in machines if one.awake and one.replica is not None]
        able = self._promotable(alive)
        unclear = len(alive) + len(dead) < len(machines) or self._network_fails
        if not dead or not able or unclear or any(one.lacks_data for one in machines) or self._root:
            return
        one = self._random.choice(able)
        assert one.replica is not None
        for name in dead:
            self._held_down[name] = self._agenda.now_ms + self.named_dead_ms
        membership = one.replica.membership
        self._promote_one(one, [name for name in dead if membership is not None and name in membership.names])

    def _promotable(self, alive: list[MachineT]) -> Sequence[MachineT]:
        return alive

    def _promote_one(self, machine: MachineT, dead: list[str]) -> None:
        epoch_id = f"{self._random.getrandbits(64):016x}"
        self._trace.say(machine.name, f"is promoted by force, without {' '.join(dead) or 'anybody missing'}")
        self._unanswered.add(epoch_id)
        self._ask_promotion(machine, dead, epoch_id)

    def _ask_promotion(self, machine: MachineT, dead: list[str], epoch_id: str) -> None:
        """Calls `_promotion_ended` when the broker answers."""
        raise NotImplementedError

    def _promotion_ended(self, epoch_id: str, *, done: bool) -> None:
        self._unanswered.discard(epoch_id)
        if done:
            self._unanswered.clear()

    def _promote_again(self) -> None:
        """An operator without an answer repeats the promotion, now that all machines run, until it succeeds."""
        if self._unanswered and self._root is None:
            machine = self._random.choice(self._machines)
            if machine.replica is not None:
                self._promote_one(machine, [])
        self._agenda.after(2 * PATIENCE_MS, self._promote_again)

"""The faults of a world of brokers: drawn from the seed, one after the other, until the faults end."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.journal.effects import FileName, Write
from pandomq.journal.faults import CorruptFault
from pandomq.sim.disks.files import Loss
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.machine import Machine
from pandomq.sim.machine_faults import MachineFaults

if TYPE_CHECKING:
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.scene import Scene

HOUR_MS: Final = 3_600_000
TEMPTATION_CHANCE: Final = 0.15
TEMPTATION_MS: Final = (10, 80)
DOWN_MS: Final = (1, 150)
"""The range of the time for which a machine stays down."""


class WorldFaults(MachineFaults[Machine]):
    def __init__(self, scene: Scene, clients: list[SimulatedClient], random: Random) -> None:
        self._scene = scene
        self._clients = clients
        self.closing = False
        """A process that ends now is not started again."""
        self._rot: tuple[Machine, FileName, int] | None = None
        self._capacity_bytes: dict[Machine, int] = {}
        super().__init__(scene.agenda, scene.trace, random, scene.reduction)
        self._temptations = Random(f"{self._seed} temptations")
        scene.on_tempted = self._tempted
        scene.on_damage = self._found_by_client

    def _draw_habits(self) -> None:
        self._dies_again = self._random.choice((0.0, 0.0, 0.4))
        """The chance that a machine that restarts is killed during the restart."""
        self._rots = self._random.random() < 0.15

    @property
    def _machines(self) -> Sequence[Machine]:
        return self._scene.machines

    @property
    def _names(self) -> Sequence[str]:
        return self._scene.machine_names

    def _tempted(self) -> None:
        """A random fault would hardly ever strike in the few milliseconds that matter. So the disk stalls, and before
        it is done the power fails."""
        machine = next((one for one in self._machines if one.serving), None)
        if machine is None or "power" not in self.kinds or self.over or self._temptations.random() >= TEMPTATION_CHANCE:
            return
        life, after_ms = machine.life, self._temptations.randint(*TEMPTATION_MS)
        if not self.strikes.admits("power in a stall", "temptation"):
            return
        self._trace.say(machine.name, f"its disk stalls for {after_ms + 1} ms")
        machine.disk.stall(self._agenda.now_ms, after_ms + 1)

        def strike() -> None:
            if machine.life == life and not self.over:
                self._lose_power(machine)

        self._agenda.after(after_ms, strike)

    def focus(self, kinds: list[str], pause_ms: int) -> None:
        """Lets only these kinds of faults strike from now on, with this mean time between strikes."""
        self.kinds = kinds
        self._pause_ms = pause_ms

    def add_kind(self, name: str, strike: Callable[[Machine], None]) -> None:
        """Adds a kind of fault that belongs to a feature of the world."""
        self._known[name] = strike
        self.kinds.append(name)

    def _restore(self, machine: Machine) -> None:
        super()._restore(machine)
        # Random stalls of a disk are faults, too.
        machine.disk.calm_down()
        self._give_space_back(machine)

    def _all_kinds(self) -> dict[str, Callable[[Machine], None]]:
        return {
            **super()._all_kinds(),
            "stop": self._stop,
            "write": self._fail_write,
            "full": self._fill,
            "clock": self._jump,
            "cut": self._cut,
        }

    # A machine whose process ended.

    def start_later(self, machine: Machine) -> None:
        random = self._random_after_end(machine, "end")
        if self._rots and not self.over and self._rot is None and random.random() < 0.3:
            self._rot_one_bit(machine, random)
        self._agenda.after(random.randint(*DOWN_MS), lambda: self._start(machine))

    def _start(self, machine: Machine) -> None:
        if machine.up or self.closing:
            return
        super()._start(machine)
        random = self._random_after_end(machine, "start")
        if not self.over and random.random() < self._dies_again and self.strikes.admits("crash at start", "restart"):
            life = machine.life

            def die() -> None:
                if machine.life == life and machine.up and not self.over:
                    machine.crash(random.choice(list(Loss)))

            self._agenda.after(random.randint(0, 12), die)

    # Rot: one bit at a time, in data that the broker is not reading.

    def _rot_one_bit(self, machine: Machine, random: Random) -> None:
        sizes = {file: size for file, size in machine.disk.sizes().items() if size and not file.startswith("reserve")}
        if not sizes or not self.strikes.admits("rot", "rot"):
            return
        file = random.choice(sorted(sizes))
        # The beginning of the log is usually out of use by now, so half of the flips hit the last 600 bytes of the
        # file.
        size_bytes = sizes[file]
        start = random.choice((0, max(0, size_bytes - 600)))
        bit = random.randrange(start * 8, size_bytes * 8)
        machine.disk.flip_bit(file, bit)
        self._rot = (machine, file, bit)
        self._trace.say(machine.name, f"rots: bit {bit % 8} of byte {bit // 8} of {file}")

    def _blame(self, machine: Machine, fault: CorruptFault) -> None:
        if self._rot is None or self._rot[0] is not machine:
            raise BrokenPromise("a crash damages nothing", str(fault))
        # The broker reported the damage and refused the data, as promised.
        self._put_right(*self._rot)

    def _found_by_client(self, machine: Machine) -> None:
        """A client found the damage in a chunk that the broker sent. The damage may have been repaired since."""
        if not machine.disk.was_damaged:
            raise BrokenPromise("a crash damages nothing", f"{machine.name} has sent a damaged chunk")
        self._repair(machine)

    def _repair(self, machine: Machine) -> None:
        """An operator repairs the file when a client has found the damage."""
        if self._rot is not None and self._rot[0] is machine:
            self._put_right(*self._rot)

    def _put_right(self, machine: Machine, file: FileName, bit: int) -> None:
        """An operator restores the file from elsewhere."""
        self._rot = None
        if file in machine.disk.sizes() and machine.disk.sizes()[file] > bit // 8:
            machine.disk.flip_bit(file, bit)
        self._trace.say(machine.name, f"{file} is put right")

    # Kinds of faults.

    def _stop(self, machine: Machine) -> None:
        if machine.serving:
            machine.shut_down()

    def _fail_write(self, machine: Machine) -> None:
        self._trace.say(machine.name, "the next write will fail")
        machine.disk.fail_next(Write, self._random.choice((errno.EIO, errno.ENOSPC)))

    def _fill(self, machine: Machine) -> None:
        if machine in self._capacity_bytes:
            return
        self._capacity_bytes[machine] = machine.disk.capacity_bytes
        room_bytes = self._random.choice((0, 2_000, 30_000, 90_000))
        for_ms = self._random.choice((100, 1_000, 2_500))
        self._trace.say(machine.name, f"its disk is full but for {room_bytes} bytes, for {for_ms} ms")
        machine.disk.capacity_bytes = machine.disk.used_bytes + room_bytes
        self._agenda.after(for_ms, lambda: self._give_space_back(machine))

    def _give_space_back(self, machine: Machine) -> None:
        capacity_bytes = self._capacity_bytes.pop(machine, None)
        if capacity_bytes is not None:
            machine.disk.capacity_bytes = capacity_bytes

    def _jump(self, machine: Machine) -> None:
        by_ms = self._random.choice((-24 * HOUR_MS, -HOUR_MS, -1_000, 1_000, HOUR_MS // 6))
        machine.wall.jump(by_ms)
        self._trace.say(machine.name, f"its wall clock jumps by {by_ms} ms")

    def _cut(self, machine: Machine) -> None:
        client = self._random.choice(self._clients)
        if client.cable is not None:
            self._trace.say(client.name, "is cut off")
            client.cut()

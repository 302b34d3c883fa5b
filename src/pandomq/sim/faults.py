"""What goes wrong in a world: drawn from the seed, one kind of trouble after the other, until the faults end.

A seed takes part of the kinds only, so that some worlds know nothing but power losses and others everything at once.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.journal.effects import FileName, SyncFile, Write
from pandomq.journal.faults import CorruptFault, StoreFault
from pandomq.sim.files import Loss
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.sim.clients.client import Client
    from pandomq.sim.machine import Machine
    from pandomq.sim.scene import Scene

KILL: Final = "kill"
HOUR_MS: Final = 3_600_000
TEMPTATION_CHANCE: Final = 0.15
TEMPTATION_MS: Final = (10, 80)
DOWN_MS: Final = (1, 150)
"""How long a machine stays down."""


class Faults:
    def __init__(self, scene: Scene, clients: list[Client], random: Random) -> None:
        self._scene = scene
        self._clients = clients
        self._random = random
        self.over = False
        self.closing = False
        """Who ends now is not started again."""
        self._known = self._all_kinds()
        kinds = sorted(self._known)
        self.kinds = random.sample(kinds, random.randint(1, len(kinds)))
        self.struck: Counter[str] = Counter()
        self._pause_ms = random.choice((40, 150, 500))
        self._dies_again = random.choice((0.0, 0.0, 0.4))
        """The chance that a machine that is coming back dies in the middle of it."""
        self._rots = random.random() < 0.15
        self._rot: tuple[Machine, FileName, int] | None = None
        self._capacity_bytes: dict[Machine, int] = {}
        self._last_lives: dict[Machine, int] = {}
        scene.on_tempted = self._tempted

    def _tempted(self) -> None:
        """Chance alone would hardly ever strike in the few milliseconds that matter: so the disk takes its time, and
        before it is done the power fails."""
        machine = next((one for one in self._scene.machines if one.serving), None)
        if machine is None or "power" not in self.kinds or self.over or self._random.random() >= TEMPTATION_CHANCE:
            return
        life, after_ms = machine.life, self._random.randint(*TEMPTATION_MS)
        self._scene.trace.say(machine.name, f"its disk stalls for {after_ms + 1} ms")
        machine.disk.stall(self._scene.agenda.now_ms, after_ms + 1)

        def strike() -> None:
            if machine.life == life and not self.over:
                self._lose_power(machine)

        self._scene.agenda.after(after_ms, strike)

    def begin(self) -> None:
        self._scene.agenda.after(self._random.randint(20, 20 + self._pause_ms), self._strike)

    def end(self) -> None:
        self._scene.trace.say("faults", "end")
        self.over = True
        for machine in self._scene.machines:
            # What failed before may be found out later, by the process that lived then.
            self._last_lives[machine] = machine.life
            machine.disk.heal()
            machine.disk_hurries()
            self._give_space_back(machine)
            if not machine.up:
                machine.start()

    def _strike(self) -> None:
        if self.over:
            return
        kind = self._random.choice(self.kinds)
        self.struck[kind] += 1
        self._known[kind](self._random.choice(self._scene.machines))
        self._scene.agenda.after(self._random.randint(1, 2 * self._pause_ms), self._strike)

    def _all_kinds(self) -> dict[str, Callable[[Machine], None]]:
        return {
            KILL: self._kill,
            "power": self._lose_power,
            "stop": self._stop,
            "pause": self._pause,
            "stall": self._stall,
            "slow": self._slow,
            "sync": self._fail_sync,
            "write": self._fail_write,
            "full": self._fill,
            "clock": self._jump,
            "cut": self._cut,
        }

    # What becomes of a machine whose process ended.

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        if isinstance(fault, CorruptFault):
            self._blame(machine, fault)
        elif fault is not None and self.over and machine.life > self._last_lives[machine]:
            raise BrokenPromise("progress", f"{machine.name} ended on a healthy disk: {fault}")
        if self._rots and not self.over and self._rot is None and self._random.random() < 0.3:
            self._rot_one_bit(machine)
        self._scene.agenda.after(self._random.randint(*DOWN_MS), lambda: self._start(machine))

    def _start(self, machine: Machine) -> None:
        if machine.up or self.closing:
            return
        machine.start()
        if not self.over and self._random.random() < self._dies_again:
            life = machine.life

            def die() -> None:
                if machine.life == life and machine.up and not self.over:
                    machine.crash(self._random.choice(list(Loss)))

            self._scene.agenda.after(self._random.randint(0, 12), die)

    # Rot: one bit at a time, while nobody looks.

    def _rot_one_bit(self, machine: Machine) -> None:
        sizes = {file: size for file, size in machine.disk.sizes().items() if size and not file.startswith("reserve")}
        if not sizes:
            return
        file = self._random.choice(sorted(sizes))
        # Half of the files is their beginning, and the beginning of the log is long gone: the end is worth a look.
        size_bytes = sizes[file]
        start = self._random.choice((0, max(0, size_bytes - 600)))
        bit = self._random.randrange(start * 8, size_bytes * 8)
        machine.disk.flip_bit(file, bit)
        self._rot = (machine, file, bit)
        self._scene.trace.say(machine.name, f"rots: bit {bit % 8} of byte {bit // 8} of {file}")

    def _blame(self, machine: Machine, fault: CorruptFault) -> None:
        if self._rot is None or self._rot[0] is not machine:
            raise BrokenPromise("a crash damages nothing", str(fault))
        # Named and refused, as promised. A person brings the file back from elsewhere.
        _, file, bit = self._rot
        self._rot = None
        if file in machine.disk.sizes() and machine.disk.sizes()[file] > bit // 8:
            machine.disk.flip_bit(file, bit)
        self._scene.trace.say(machine.name, f"{file} is put right")

    # Kinds of trouble.

    def _kill(self, machine: Machine) -> None:
        if machine.up:
            machine.crash(Loss.NONE)

    def _lose_power(self, machine: Machine) -> None:
        if machine.up:
            machine.crash(self._random.choice((Loss.ALL, Loss.SOME, Loss.SOME)))

    def _stop(self, machine: Machine) -> None:
        if machine.serving:
            machine.shut_down()

    def _pause(self, machine: Machine) -> None:
        if machine.node is not None:
            machine.pause(self._random.choice((20, 200, 1_500)))

    def _stall(self, machine: Machine) -> None:
        for_ms = self._random.choice((30, 300, 2_000))
        self._scene.trace.say(machine.name, f"its disk stalls for {for_ms} ms")
        machine.disk.stall(self._scene.agenda.now_ms, for_ms)

    def _slow(self, machine: Machine) -> None:
        machine.disk.slowness = self._random.choice((1, 5, 30))
        self._scene.trace.say(machine.name, f"its disk takes {machine.disk.slowness} times as long")

    def _fail_sync(self, machine: Machine) -> None:
        self._scene.trace.say(machine.name, "the next sync will fail")
        machine.disk.fail_next(SyncFile, errno.EIO)

    def _fail_write(self, machine: Machine) -> None:
        self._scene.trace.say(machine.name, "the next write will fail")
        machine.disk.fail_next(Write, self._random.choice((errno.EIO, errno.ENOSPC)))

    def _fill(self, machine: Machine) -> None:
        if machine in self._capacity_bytes:
            return
        self._capacity_bytes[machine] = machine.disk.capacity_bytes
        room_bytes = self._random.choice((0, 2_000, 30_000, 90_000))
        for_ms = self._random.choice((100, 1_000, 2_500))
        self._scene.trace.say(machine.name, f"its disk is full but for {room_bytes} bytes, for {for_ms} ms")
        machine.disk.capacity_bytes = machine.disk.used_bytes + room_bytes
        self._scene.agenda.after(for_ms, lambda: self._give_space_back(machine))

    def _give_space_back(self, machine: Machine) -> None:
        capacity_bytes = self._capacity_bytes.pop(machine, None)
        if capacity_bytes is not None:
            machine.disk.capacity_bytes = capacity_bytes

    def _jump(self, machine: Machine) -> None:
        by_ms = self._random.choice((-24 * HOUR_MS, -HOUR_MS, -1_000, 1_000, HOUR_MS // 6))
        machine.wall.shift_ms += by_ms
        self._scene.trace.say(machine.name, f"its wall clock jumps by {by_ms} ms")

    def _cut(self, machine: Machine) -> None:
        client = self._random.choice(self._clients)
        if client.cable is not None:
            self._scene.trace.say(client.name, "is cut off")
            client.cut()

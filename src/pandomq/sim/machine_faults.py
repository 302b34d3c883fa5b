"""The schedule of a world's faults, and the faults that any machine may have, whatever software runs on it.

A seed uses a subset of the kinds, so that some worlds have only power losses and others have all kinds at once. Each
strike draws from its own random stream, and so does each restart of a machine: if a reduction leaves one out, the
others do not change.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar, Final, Generic, TypeVar

from pandomq.journal.effects import SyncFile
from pandomq.journal.faults import CorruptFault, StoreFault
from pandomq.sim.agenda import Agenda
from pandomq.sim.campaigns.reduction import Reduction, Strikes
from pandomq.sim.disks.files import Loss
from pandomq.sim.host import Host
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.trace import WorldTrace

KILL: Final = "kill"

MachineT = TypeVar("MachineT", bound=Host)


class MachineFaults(Generic[MachineT]):
    between_ms: ClassVar[tuple[int, ...]] = (40, 150, 500)
    """The mean time between two strikes, in milliseconds; each world chooses one of these."""
    paused_ms: ClassVar[tuple[int, ...]] = (20, 200, 1_500)
    stalled_ms: ClassVar[tuple[int, ...]] = (30, 300, 2_000)
    losses: ClassVar[tuple[Loss, ...]] = (Loss.ALL, Loss.SOME, Loss.SOME)
    """The losses of unsynced data that a power failure may cause; each failure chooses one of these."""

    def __init__(self, agenda: Agenda, trace: WorldTrace, random: Random, reduction: Reduction) -> None:
        self._agenda = agenda
        self._trace = trace
        self._random = random
        self.over = False
        self._known = self._all_kinds()
        kinds = sorted(self._known)
        self.kinds = random.sample(kinds, random.randint(1, len(kinds)))
        self.strikes = Strikes(reduction)
        self._pause_ms = random.choice(self.between_ms)
        self._draw_habits()
        self._last_lives: dict[str, int] = {}
        """By machine: the life in which the faults ended."""
        self._held_down: dict[str, int] = {}
        """By machine: the time until which it stays down."""
        self._seed = random.getrandbits(64)
        self._times = Random(f"{self._seed} times")
        self._ends: Counter[str] = Counter()
        """By machine: the number of times that its process has ended."""

    def _draw_habits(self) -> None:
        """Draws what else distinguishes the faults of this world."""

    @property
    def _machines(self) -> Sequence[MachineT]:
        raise NotImplementedError

    @property
    def _names(self) -> Sequence[str]:
        """The names of the machines that strikes may choose, including those that the reduction leaves out."""
        raise NotImplementedError

    def _all_kinds(self) -> dict[str, Callable[[MachineT], None]]:
        return {
            KILL: self._kill,
            "power": self._lose_power,
            "pause": self._pause,
            "stall": self._stall,
            "slow": self._slow,
            "sync": self._fail_sync,
        }

    # The schedule.

    def begin(self) -> None:
        self._agenda.after(self._times.randint(20, 20 + self._pause_ms), self._strike)

    def _strike(self) -> None:
        if self.over:
            return
        # The random source that all kinds of faults share is seeded anew for each strike.
        self._random.seed(f"{self._seed} strike {self.strikes.count()}")
        kind, name = self._random.choice(self.kinds), self._random.choice(self._names)
        machine = next((one for one in self._machines if one.name == name), None)
        if self.strikes.admits(kind) and machine is not None:
            self._known[kind](machine)
        self._agenda.after(self._times.randint(1, 2 * self._pause_ms), self._strike)

    def end(self) -> None:
        self._trace.say("faults", "end")
        self.over = True
        for machine in self._machines:
            # An earlier failure may be detected later, by the process that lived then.
            self._last_lives[machine.name] = machine.life
            self._restore(machine)
            machine.disk_hurries()
            if not machine.up:
                machine.start()

    def _restore(self, machine: MachineT) -> None:
        machine.disk.heal()

    # A machine whose process ended.

    def ended(self, machine: MachineT, fault: StoreFault | None) -> None:
        if isinstance(fault, CorruptFault):
            self._blame(machine, fault)
        elif fault is not None and self.over and machine.life > self._last_lives[machine.name]:
            raise BrokenPromise("progress", f"{machine.name} ended on a healthy disk: {fault}")
        self._ends[machine.name] += 1
        self.start_later(machine)

    def _blame(self, machine: MachineT, fault: CorruptFault) -> None:
        """Raises BrokenPromise unless a fault of this world has damaged the data."""
        raise NotImplementedError

    def start_later(self, machine: MachineT) -> None:
        raise NotImplementedError

    def _start(self, machine: MachineT) -> None:
        if not machine.up:
            machine.start()

    def _random_after_end(self, machine: MachineT, what: str) -> Random:
        """Returns a random stream for something that happens once after the latest end of the machine's process."""
        return Random(f"{self._seed} {what} {machine.name} {self._ends[machine.name]}")

    # Kinds of faults.

    def _kill(self, machine: MachineT) -> None:
        if machine.up:
            machine.crash(Loss.NONE)

    def _lose_power(self, machine: MachineT) -> None:
        if machine.up:
            machine.crash(self._random.choice(self.losses))

    def _pause(self, machine: MachineT) -> None:
        if machine.reachable:
            machine.pause(self._random.choice(self.paused_ms))

    def _stall(self, machine: MachineT) -> None:
        for_ms = self._random.choice(self.stalled_ms)
        self._trace.say(machine.name, f"its disk stalls for {for_ms} ms")
        machine.disk.stall(self._agenda.now_ms, for_ms)

    def _slow(self, machine: MachineT) -> None:
        machine.disk.slowness = self._random.choice((1, 5, 30))
        self._trace.say(machine.name, f"its disk takes {machine.disk.slowness} times as long")

    def _fail_sync(self, machine: MachineT) -> None:
        self._trace.say(machine.name, "the next sync will fail")
        machine.disk.fail_next(SyncFile, errno.EIO)

"""What goes wrong among machines that keep one log, and what people do to them meanwhile.

No more is destroyed than the promises allow: of synced data one machine at a time loses some, and only when the one
before has got it back.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from pandomq.ids import NodeName
from pandomq.journal.effects import SyncFile
from pandomq.journal.faults import CorruptFault, StoreFault
from pandomq.replica.membership import Member
from pandomq.replica.roles.transitions import Role
from pandomq.sim.agenda import Agenda
from pandomq.sim.files import Loss
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.network import Network, Weather
from pandomq.sim.trace import Trace

DOWN_MS: Final = (1, 1_200)
HELD_DOWN_MS: Final = 4_000
"""Of those who were said to be dead."""


class LogFaults:
    def __init__(
        self,
        agenda: Agenda,
        trace: Trace,
        random: Random,
        machines: list[LogMachine],
        network: Network,
    ) -> None:
        self._agenda = agenda
        self._trace = trace
        self._random = random
        self._machines = machines
        self._network = network
        kinds = sorted(KINDS)
        self.kinds = random.sample(kinds, random.randint(1, len(kinds)))
        self.struck: Counter[str] = Counter()
        self._pause_ms = random.choice((150, 400, 1_200))
        self.over = False
        self._last_lives: dict[str, int] = {}
        self._held_down: dict[str, int] = {}
        """Until when somebody who is said to be dead must stay so."""

    def hold_down(self, machine: LogMachine, until_ms: int) -> None:
        """It does not come back by itself before that."""
        self._held_down[machine.name] = until_ms

    def begin(self) -> None:
        self._agenda.after(self._random.randint(100, 1_500), self._strike)

    def _strike(self) -> None:
        if self.over:
            return
        kind = self._random.choice(self.kinds)
        self.struck[kind] += 1
        KINDS[kind](self, self._random.choice(self._machines))
        self._agenda.after(self._random.randint(1, 2 * self._pause_ms), self._strike)

    def end(self) -> None:
        self._trace.say("faults", "end")
        self.over = True
        self._network.heal()
        self._network.weather = Weather()
        for machine in self._machines:
            self._last_lives[machine.name] = machine.life
            machine.wake_up()
            machine.disk.heal()
            machine.disk_hurries()
            if machine.keeper is None:
                machine.start()

    def ended(self, machine: LogMachine, fault: StoreFault | None) -> None:
        if isinstance(fault, CorruptFault):
            if not machine.wounded:
                raise BrokenPromise("a crash damages nothing", f"{machine.name}: {fault}")
            # Nothing can be read of it: a person replaces the disk.
            self._agenda.after(0, lambda: self._replace(machine))
        elif fault is not None and self.over and machine.life > self._last_lives[machine.name]:
            raise BrokenPromise("progress", f"{machine.name} ended on a healthy disk: {fault}")
        self._start_later(machine)

    def _replace(self, machine: LogMachine) -> None:
        if machine.keeper is None:
            machine.wipe()

    def _start_later(self, machine: LogMachine) -> None:
        delay_ms = self._random.randint(1, 50) if self.over else self._random.randint(*DOWN_MS)

        def start() -> None:
            if machine.keeper is not None:
                return
            if self._agenda.now_ms < self._held_down.get(machine.name, 0) and not self.over:
                self._start_later(machine)
            else:
                machine.start()

        self._agenda.after(delay_ms, start)

    # Processes and machines.

    def _kill(self, machine: LogMachine) -> None:
        if machine.keeper is not None:
            machine.crash(Loss.NONE)

    def _kill_root(self, machine: LogMachine) -> None:
        for one in self._machines:
            if one.keeper is not None and one.keeper.replica.role is Role.ROOT:
                one.crash(self._random.choice(list(Loss)))
                return

    def _lose_power(self, machine: LogMachine) -> None:
        if machine.keeper is not None:
            machine.crash(self._random.choice((Loss.ALL, Loss.SOME)))

    def _lose_all_power(self, machine: LogMachine) -> None:
        self._trace.say("faults", "power fails everywhere")
        for one in self._machines:
            self._lose_power(one)

    def _pause(self, machine: LogMachine) -> None:
        if machine.keeper is not None:
            machine.pause(self._random.choice((50, 400, 2_500)))

    # Disks.

    def _stall(self, machine: LogMachine) -> None:
        for_ms = self._random.choice((100, 700, 3_000))
        self._trace.say(machine.name, f"its disk stalls for {for_ms} ms")
        machine.disk.stall(self._agenda.now_ms, for_ms)

    def _slow(self, machine: LogMachine) -> None:
        machine.disk.slowness = self._random.choice((1, 5, 30))
        self._trace.say(machine.name, f"its disk takes {machine.disk.slowness} times as long")

    def _fail_sync(self, machine: LogMachine) -> None:
        self._trace.say(machine.name, "the next sync will fail")
        machine.disk.fail_next(SyncFile, errno.EIO)

    def _may_lose(self) -> bool:
        """Everything that was lost has come back, and there are enough others."""
        if len(self._machines) < 3 or any(machine.wounded for machine in self._machines):
            return False
        views = [machine.keeper.replica.view() for machine in self._machines if machine.keeper is not None]
        voters = [view for view in views if view.membership is not None and view.name in view.membership.names]
        settled = all(view.membership is not None and not view.membership.joint for view in views)
        return len(voters) >= 3 and settled and not any(view.joining for view in views)

    def _wipe(self, machine: LogMachine) -> None:
        if self._may_lose():
            machine.wipe()
            self._start_later(machine)

    def _put_back(self, machine: LogMachine) -> None:
        """Its store as it was a while ago. Nobody can tell if it has no mark: so that is done only while all others
        have all that it ever had."""
        keeper = machine.keeper
        if machine.copy is None:
            if keeper is not None and keeper.runs and not machine.wounded:
                machine.copy_store()
        elif self._may_lose() and keeper is not None:
            machine.put_back(mark=self._random.random() < 0.5 or not self._are_even())

    def _are_even(self) -> bool:
        """All logs are one, and nobody has voted for anybody but the root whom all follow."""
        states: set[tuple[object, ...]] = set()
        for machine in self._machines:
            keeper = machine.keeper
            if keeper is None or not keeper.runs:
                return False
            view = keeper.replica.view()
            ends = {len(keeper.entries), view.commit_index, view.synced_index}
            if view.root is None or len(ends) > 1:
                return False
            states.add((view.epoch_id, view.term, view.root, view.commit_index))
        return len(states) == 1

    def _rot(self, machine: LogMachine) -> None:
        """One bit, or the end of a file, of a machine that is down."""
        if not self._may_lose() or machine.keeper is None:
            return
        machine.crash(Loss.NONE)
        sizes = {file: size for file, size in machine.disk.sizes().items() if size > 600}
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

    # The network.

    def _split(self, machine: LogMachine) -> None:
        names = [one.name for one in self._machines]
        side = self._random.sample(names, self._random.randint(1, max(1, len(names) - 1)))
        self._trace.say("network", f"{' '.join(sorted(side))} are cut off from the others")
        others = [name for name in names if name not in side]
        self._block([path for one in side for other in others for path in ((one, other), (other, one))])

    def _deafen(self, machine: LogMachine) -> None:
        other = self._random.choice(self._machines).name
        if other != machine.name:
            self._trace.say("network", f"nothing comes from {machine.name} to {other}")
            self._block([(machine.name, other)])

    def _tangle(self, machine: LogMachine) -> None:
        """Who can talk to whom follows no rule."""
        names = [one.name for one in self._machines]
        paths = [(one, other) for one in names for other in names if one != other and self._random.random() < 0.3]
        self._trace.say("network", f"cut: {', '.join(f'{one} to {other}' for one, other in paths)}")
        self._block(paths)

    def _block(self, paths: list[tuple[str, str]]) -> None:
        self._network.block(paths)
        self._agenda.after(self._random.choice((200, 1_500, 4_000)), self._heal)

    def _heal(self) -> None:
        if self._network.cut:
            self._trace.say("network", "is whole again")
        self._network.heal()

    def _clog(self, machine: LogMachine) -> None:
        other = self._random.choice(self._machines).name
        self._trace.say("network", f"what {machine.name} sends to {other} takes long")
        self._network.clogged.add((machine.name, other))
        self._agenda.after(self._random.choice((300, 2_000)), self._network.clogged.clear)

    def _storm(self, machine: LogMachine) -> None:
        weather = Weather(
            latency_ms=self._random.choice(((0, 3), (1, 30), (20, 120))),
            loss=self._random.choice((0.0, 0.05, 0.3)),
            doubling=self._random.choice((0.0, 0.2)),
            disorder=self._random.choice((0.0, 0.3)),
        )
        self._trace.say("network", f"weather: {weather}")
        self._network.weather = weather

    # People.

    def _hand_over(self, machine: LogMachine) -> None:
        for one in self._machines:
            if one.keeper is not None and one.keeper.replica.role is Role.ROOT:
                self._trace.say(one.name, "is asked to hand over")
                one.do(lambda keeper: keeper.ask(keeper.replica.hand_over))
                return

    def _change_members(self, machine: LogMachine) -> None:
        if any(one.wounded for one in self._machines):
            return
        count = 1 + self._random.randrange(len(self._machines))
        names = sorted(self._random.sample([one.name for one in self._machines], count))
        if len(self._machines) > 2 and len(names) < 2:
            return
        members = [Member(NodeName(name)) for name in names]
        for one in self._machines:
            if one.keeper is not None and one.keeper.replica.role is Role.ROOT:
                self._trace.say(one.name, f"is asked to make {' '.join(names)} the primaries")
                one.do(lambda keeper: keeper.ask(lambda: keeper.replica.change_members(members)))
                return

    def _promote(self, machine: LogMachine) -> None:
        """By force, when those who are down keep the others from having a root."""
        dead = [one.name for one in self._machines if one.keeper is None]
        alive = [one for one in self._machines if one.awake and one.keeper is not None and one.keeper.runs]
        if not dead or not alive or len(alive) + len(dead) < len(self._machines) or self._network.cut:
            return
        if any(one.wounded for one in self._machines) or any(
            one.keeper is not None and one.keeper.replica.role is Role.ROOT for one in alive
        ):
            return
        for name in dead:
            self._held_down[name] = self._agenda.now_ms + HELD_DOWN_MS
        one = self._random.choice(alive)
        epoch_id = f"{self._random.getrandbits(64):016x}"
        assert one.keeper is not None
        voters = one.keeper.replica.view().membership
        gone = [NodeName(name) for name in dead if voters is not None and name in voters.names]
        self._trace.say(one.name, f"is promoted by force, without {' '.join(gone)}")
        one.do(lambda keeper: keeper.ask(lambda: keeper.replica.promote(gone, epoch_id)))


KINDS: Final[dict[str, Callable[[LogFaults, LogMachine], None]]] = {
    "kill": LogFaults._kill,
    "kill root": LogFaults._kill_root,
    "power": LogFaults._lose_power,
    "power of all": LogFaults._lose_all_power,
    "pause": LogFaults._pause,
    "stall": LogFaults._stall,
    "slow": LogFaults._slow,
    "sync": LogFaults._fail_sync,
    "wipe": LogFaults._wipe,
    "old copy": LogFaults._put_back,
    "rot": LogFaults._rot,
    "split": LogFaults._split,
    "one way": LogFaults._deafen,
    "tangle": LogFaults._tangle,
    "clog": LogFaults._clog,
    "storm": LogFaults._storm,
    "hand over": LogFaults._hand_over,
    "members": LogFaults._change_members,
    "promote": LogFaults._promote,
}

"""The view of a world that a plot has, and the actions that it can take, in the terms of a story."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, Final

from pandomq.ids import NodeName
from pandomq.journal.effects import Lane
from pandomq.replica.effects import Effect, RoleChanged
from pandomq.replica.members.membership import Member
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.roles.transitions import Role
from pandomq.replica.view import ReplicaView
from pandomq.sim.disks.files import Loss
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.message_filter import Rule
from pandomq.sim.logs.network import MessageWeather

if TYPE_CHECKING:
    from pandomq.sim.agenda import Agenda
    from pandomq.sim.logs.machine import LogMachine
    from pandomq.sim.logs.world import LogWorld

EVER_MS: Final = 2**40


class LogScene:
    def __init__(self, world: LogWorld, random: Random) -> None:
        self._world = world
        self.random = random
        self.agenda: Agenda = world.agenda
        self.machines = world.machines
        self.lease_ms = world.settings.lease_ms
        self.turns: list[str] = []
        """The turning points that were reached."""
        self._roots: set[tuple[str, int]] = set()

    # The view.

    def root(self) -> LogMachine | None:
        """Returns the machine that serves as root, if there is one."""
        for machine in self.machines:
            if machine.awake and machine.keeper is not None and machine.keeper.replica.serving:
                return machine
        return None

    def machine(self, name: str) -> LogMachine:
        return next(machine for machine in self.machines if machine.name == name)

    def is_root(self, machine: LogMachine) -> bool:
        return machine.keeper is not None and machine.keeper.replica.role is Role.ROOT

    def others(self, *but: LogMachine) -> list[LogMachine]:
        """Returns the other machines, in random order."""
        left = [machine for machine in self.machines if machine not in but]
        self.random.shuffle(left)
        return left

    def view(self, machine: LogMachine) -> ReplicaView | None:
        keeper = machine.keeper
        return keeper.replica.view() if keeper is not None and keeper.runs_replica else None

    def is_even(self, *machines: LogMachine) -> bool:
        """Whether they run, and every entry of any of them is committed and on the disks of all of them."""
        ends: set[int] = set()
        for machine in machines:
            keeper = machine.keeper
            if keeper is None or not keeper.runs_replica:
                return False
            ends |= {len(keeper.entries), keeper.replica.commit_index, keeper.journal.synced_index}
            if len(ends) > 1:
                return False
        return True

    def has(self, machine: LogMachine, payload: bytes) -> bool:
        keeper = machine.keeper
        return keeper is not None and any(entry.payload == payload for entry in keeper.entries)

    def has_on_disk(self, machine: LogMachine, payload: bytes) -> bool:
        index = self.index_of(machine, payload)
        return index is not None and machine.keeper is not None and machine.keeper.journal.synced_index >= index

    def index_of(self, machine: LogMachine, payload: bytes) -> int | None:
        entries: list[LogEntry] = [] if machine.keeper is None else machine.keeper.entries
        return next((index for index, entry in enumerate(entries, 1) if entry.payload == payload), None)

    def is_confirmed(self, payload: bytes) -> bool:
        return payload in self._world.history.confirmed

    def term(self, machine: LogMachine) -> int:
        view = self.view(machine)
        return 0 if view is None else view.term

    def epoch(self, machine: LogMachine) -> str:
        view = self.view(machine)
        return "" if view is None else view.epoch_id

    def last_index(self, machine: LogMachine) -> int:
        return 0 if machine.keeper is None else len(machine.keeper.entries)

    def first_index(self, *but: LogMachine) -> int:
        """Returns the first index that any other machine could send from its log."""
        others = [
            one.keeper for one in self.machines if one not in but and one.keeper is not None and one.keeper.runs_replica
        ]
        return min((keeper.journal.first_index for keeper in others), default=0)

    def hears_root(self, machine: LogMachine) -> bool:
        view = self.view(machine)
        return view is not None and view.root is not None

    def has_log_of(self, machine: LogMachine, root: LogMachine) -> bool:
        return machine.keeper is not None and root.keeper is not None and machine.keeper.entries == root.keeper.entries

    def pieces_taken(self, machine: LogMachine) -> int:
        """Returns the number of pieces of the snapshot that the machine is receiving."""
        incoming = None if machine.keeper is None else machine.keeper.replica._core.incoming
        return 0 if incoming is None else incoming.offered

    def has_last_piece(self, machine: LogMachine) -> bool:
        """Whether it has the last piece of a snapshot, though its disk has not completed the write."""
        incoming = None if machine.keeper is None else machine.keeper.replica._core.incoming
        return incoming is not None and incoming.whole and not incoming.installing

    @property
    def confirmed(self) -> int:
        return self._world.proposer.confirmed

    def any_ms(self, most: float) -> int:
        return self.random.randint(0, max(1, int(most)))

    # Reports to the world.

    def say(self, what: str) -> None:
        self._world.trace.say("plot", what)

    def reached(self, turn: str) -> None:
        self.turns.append(turn)
        self.say(turn)

    def demand(self, holds: bool, what: str, promise: str = "nothing committed is lost") -> None:
        if not holds:
            raise BrokenPromise(promise, f"this does not hold: {what}")

    # Machines.

    def kill(self, *machines: LogMachine, loss: Loss | None = None) -> None:
        """Kills the machines; they stay down until they are started."""
        for machine in machines:
            self._world.faults.hold_down(machine, EVER_MS)
            if machine.keeper is not None:
                machine.crash(loss or self.random.choice(list(Loss)))

    def start(self, *machines: LogMachine) -> None:
        for machine in machines:
            self._world.faults.hold_down(machine, 0)
            if machine.keeper is None:
                machine.start()

    def wipe(self, machine: LogMachine) -> None:
        self._world.faults.hold_down(machine, EVER_MS)
        machine.wipe()

    def put_back(self, machine: LogMachine) -> None:
        """Replaces the store by an older copy with a mark."""
        self._world.faults.hold_down(machine, EVER_MS)
        machine.put_back(mark=True)

    def stall_snapshots(self, machine: LogMachine, for_ms: int) -> None:
        """Delays a received snapshot on its way to the disk, but not the log."""
        self.say(f"{machine.name} writes no snapshots for {for_ms} ms")
        machine.disk.stall(self.agenda.now_ms, for_ms, (Lane.BULK,))

    def stall(self, machine: LogMachine, for_ms: int) -> None:
        self.say(f"{machine.name}'s disk stalls for {for_ms} ms")
        machine.disk.stall(self.agenda.now_ms, for_ms)

    def hurry_disks(self) -> None:
        for machine in self.machines:
            machine.disk_hurries()

    def rot(self, machine: LogMachine, payload: bytes) -> None:
        """Flips a bit of this entry on the disk of a machine that is down."""
        assert machine.keeper is None
        machine.wounded = True
        for file in sorted(machine.disk.sizes()):
            at = machine.disk.content(file).find(payload)
            if at >= 0:
                bit = at * 8 + self.random.randrange(len(payload) * 8)
                self.say(f"{machine.name} rots: bit {bit % 8} of byte {bit // 8} of {file}")
                machine.disk.flip_bit(file, bit)

    def pause(self, machine: LogMachine, for_ms: int) -> None:
        machine.pause(for_ms)

    def run_clock(self, machine: LogMachine, percent: int) -> None:
        """Runs the clock so much slower or faster that leases are not reliable. Commits must not depend on leases."""
        self._world.history.clocks_hold = False
        self.say(f"{machine.name}'s clock goes at {percent} % of its speed")
        machine.steady.run_at(percent * 10)

    # The network.

    def part(self, some: Iterable[LogMachine], others: Iterable[LogMachine]) -> None:
        """Cuts all paths between the two sides."""
        ones, twos = [one.name for one in some], [other.name for other in others]
        self.say(f"{' '.join(ones)} and {' '.join(twos)} are cut off from each other")
        self._world.network.block([path for one in ones for two in twos for path in ((one, two), (two, one))])

    def deafen(self, receiver: LogMachine, sender: LogMachine) -> None:
        self.say(f"nothing comes from {sender.name} to {receiver.name}")
        self._world.network.block([(sender.name, receiver.name)])

    def join(self, one: LogMachine, other: LogMachine) -> None:
        """Repairs the paths between these two."""
        self._world.network.cut -= {(one.name, other.name), (other.name, one.name)}

    def heal(self) -> None:
        self.say("the network is whole")
        self._world.network.heal()

    def are_linked(self, one: LogMachine, other: LogMachine) -> bool:
        return self._world.network.is_linked(one.name, other.name)

    def storm(self) -> None:
        self.say("messages are lost, doubled and reordered")
        self._world.network.weather = MessageWeather(latency_ms=(1, 30), loss=0.2, doubling=0.2, disorder=0.3)

    def calm(self) -> None:
        self._world.network.weather = MessageWeather()

    # Messages.

    def rule(self, rule: Rule | None) -> None:
        self._world.message_filter.rule = rule

    def release(self) -> None:
        """Delivers the held messages."""
        self._world.message_filter.rule = None
        self._world.message_filter.release()

    @property
    def held(self) -> int:
        return len(self._world.message_filter.held)

    # Clients and operators.

    def propose(self, machine: LogMachine, size_bytes: int = 20) -> bytes:
        """A client proposes an entry to the machine; the plot observes the entry."""
        return self._world.proposer.propose_to(machine, size_bytes)

    def silence(self) -> None:
        """The client in the background proposes nothing for now."""
        self._world.proposer.resting = True

    def chatter(self) -> None:
        self._world.proposer.resting = False

    def change_members(self, root: LogMachine, members: Iterable[LogMachine]) -> None:
        wanted = [Member(NodeName(machine.name)) for machine in members]
        self.say(f"{root.name} is asked to make {' '.join(member.name for member in wanted)} the primaries")
        root.do(lambda keeper: keeper.ask(lambda: keeper.replica.change_members(wanted)))

    def hand_over(self, root: LogMachine, successor: LogMachine) -> None:
        self.say(f"{root.name} is asked to hand over to {successor.name}")
        root.do(lambda keeper: keeper.ask(lambda: keeper.replica.hand_over(NodeName(successor.name))))

    def promote(self, machine: LogMachine, dead: Iterable[LogMachine]) -> None:
        gone = [NodeName(one.name) for one in dead]
        epoch_id = f"{self.random.getrandbits(64):016x}"
        self.say(f"{machine.name} is promoted by force, without {' '.join(gone)}")
        machine.do(lambda keeper: keeper.ask(lambda: keeper.replica.promote(gone, epoch_id)))

    # Reports of the world.

    def told(self, machine: LogMachine, effect: Effect) -> None:
        if isinstance(effect, RoleChanged) and effect.role is Role.ROOT:
            self._roots.add((machine.name, effect.term))

    def was_root(self, machine: LogMachine, after_term: int) -> bool:
        """Whether it was elected in a term after this one."""
        return any(name == machine.name and term > after_term for name, term in self._roots)

    def clear(self) -> None:
        """The plot is over; its faults last as long as all others."""
        self._world.message_filter.clear()
        self.chatter()
        for machine in self.machines:
            self._world.faults.hold_down(machine, 0)

"""The world of one seed with logs: machines with one log among them, a client, faults, and the end, when all logs are
equal."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from pandomq.ids import LogIndex, NodeName
from pandomq.journal.faults import StoreFault
from pandomq.journal.limits import JournalSettings
from pandomq.limits import KIB
from pandomq.replica.effects import ChangeEnded, Effect, RoleChanged
from pandomq.replica.limits import APPEND_BYTES_MAX, TAIL_BYTES_MAX
from pandomq.replica.members.membership import Member
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.campaigns.outcome import WorldOutcome, outcome_of
from pandomq.sim.campaigns.reduction import Reduction
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.checkers.hand_over import HandOverWhole
from pandomq.sim.logs.checkers.invariants import ReplicaInvariants
from pandomq.sim.logs.checkers.nothing_lost import NothingLost
from pandomq.sim.logs.checkers.replicas import LogReplicasAgree
from pandomq.sim.logs.faults import LogFaults
from pandomq.sim.logs.history import History
from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.message_filter import MessageFilter
from pandomq.sim.logs.network import MessageWeather, Network
from pandomq.sim.logs.plot import Performance, Plot
from pandomq.sim.logs.plots.programme import PLOTS
from pandomq.sim.logs.proposer import Proposer
from pandomq.sim.logs.scene import LogScene
from pandomq.sim.trace import WorldTrace

PROGRESS_MS: Final = 30_000
LENGTHS_MS: Final = (1_000, 2_000, 4_000)
"""Possible lengths of the time of faults."""
DRIFT_PERMILLE: Final = 45
"""Two clocks differ by at most twice as much, which a lease allows for."""


PLOT_MS: Final = 120_000
"""A plot that is not over by then is ended."""
PLOT_CHANCE: Final = 0.5
PROPOSER: Final = "proposer"
"""The name of the client in reductions."""
STEPS_BETWEEN: Final = 4
"""The number of steps between two checks while nothing has changed."""


def _choose_plot(seed: int, nodes: int) -> Plot | None:
    chance = Random(f"plot {seed} {nodes}")
    able = [plot for plot in PLOTS.values() if nodes in plot.nodes]
    return chance.choice(able) if able and chance.random() < PLOT_CHANCE else None


class LogWorld:
    def __init__(
        self,
        seed: int,
        nodes: int,
        show: Callable[[str], None] | None = None,
        plot: str | None = None,
        reduction: Reduction | None = None,
    ) -> None:
        """`plot` is the name of a plot, or empty for none; with None the seed chooses."""
        self.seed = seed
        self.plot = _choose_plot(seed, nodes) if plot is None else PLOTS.get(plot)
        self._reduction = reduction or Reduction()
        if self.plot is not None:
            # A plot needs all of its machines, and the client.
            self._reduction = Reduction(faults_ms=self._reduction.faults_ms)
        self._faults_ms = 0
        self.random = random = Random(f"log {seed} {nodes}")
        self.agenda = Agenda()
        self.trace = WorldTrace(self.agenda, show)
        lease_ms = random.choice((150, 400, 1_000))
        self.settings = ReplicaSettings(
            lease_ms=lease_ms,
            disk_stall_ms=lease_ms,
            min_copies=random.choice((1, 2, 2, 2)),
            last_man_standing=random.random() < 0.15,
            append_bytes=random.choice((1, 2 * KIB, APPEND_BYTES_MAX)),
            tail_bytes=random.choice((1, 4 * KIB, TAIL_BYTES_MAX)),
        )
        if self.plot is not None:
            self.settings = msgspec.structs.replace(self.settings, **self.plot.settings)
            lease_ms = self.settings.lease_ms
        weather = MessageWeather(latency_ms=random.choice(((0, 2), (1, 8))))
        self.network = Network(self.agenda, Random(random.getrandbits(64)), weather, patience_ms=3 * lease_ms)
        self.message_filter = MessageFilter(self.network)
        self.machines: list[LogMachine] = []
        self._lives = itertools.count(1)
        self._steps = 0
        self._looked: dict[str, object] = {}
        """The state of each machine at the last check."""
        self.history = History(self.machines)
        self.checkers: list[LogChecker] = [
            LogReplicasAgree(self.history, self.settings),
            NothingLost(self.history),
            HandOverWhole(self.history),
            ReplicaInvariants(self.history),
        ]
        # Few checkers inspect the events that happen often.
        self._hearing = [checker for checker in self.checkers if type(checker).told is not LogChecker.told]
        self._stepping = [checker for checker in self.checkers if type(checker).stepped is not LogChecker.stepped]
        self._make_machines(nodes)
        self.proposer = Proposer(
            self.agenda, Random(random.getrandbits(64)), self.machines, random.choice((30, 90, 300))
        )
        self.proposer.on_confirmed = self._confirmed
        own = Random(random.getrandbits(64))
        self.faults = LogFaults(self.agenda, self.trace, own, self.machines, self.network, self._reduction)
        self._leave_out_machines()
        self.stage = LogScene(self, Random(random.getrandbits(64)))
        self.performance = None if self.plot is None else Performance(self.stage, self.plot)

    def _make_machines(self, nodes: int) -> None:
        random = self.random
        journal = JournalSettings(
            segment_bytes=random.choice((8, 64)) * KIB,
            snapshot_log_bytes=random.choice((4, 4, 16, 2**20)) * KIB,
            part_bytes=random.choice((300, 2 * KIB)),
            bulk_chunk_bytes=random.choice((1, 4)) * KIB,
            disk_free_bytes_min=0,
            reserve_bytes=0,
            replay_chunk_bytes=4 * KIB,
        )
        if self.plot is not None and self.plot.compacts:
            journal = msgspec.structs.replace(journal, snapshot_log_bytes=4 * KIB, segment_bytes=8 * KIB)
        names = [f"n{number}" for number in range(1, nodes + 1)]
        # Some machines begin outside of the cluster, and may become members later.
        first = names[: random.randint(max(1, nodes - 1), nodes)] if nodes > 3 and self.plot is None else names
        founders = tuple(Member(NodeName(name)) for name in first if self._reduction.keeps_machine(name))
        special = {} if self.plot is None else self.plot.journals
        for name in names:
            machine = LogMachine(
                name,
                self.agenda,
                self.trace,
                Random(random.getrandbits(64)),
                self._lives,
                self.network,
                self.message_filter,
                self.settings,
                msgspec.structs.replace(journal, **special.get(name, {})),
                self,
                drift_permille=random.randint(-DRIFT_PERMILLE, DRIFT_PERMILLE),
                founders=founders if name in first else (),
            )
            self.machines.append(machine)
            self.network.stations[name] = machine

    def _leave_out_machines(self) -> None:
        """Leaves out machines. They were built because the draws depend on the seed alone."""
        for machine in list(self.machines):
            if not self._reduction.keeps_machine(machine.name):
                self.machines.remove(machine)
                del self.network.stations[machine.name]

    # Reports of machines and the client.

    def told(self, machine: LogMachine, effect: Effect) -> None:
        if isinstance(effect, RoleChanged) and effect.role is Role.ROOT:
            self._note_promotion(machine)
        for checker in self._hearing:
            checker.told(machine, effect)
        self.proposer.told(machine, effect)
        self.stage.told(machine, effect)
        if isinstance(effect, RoleChanged):
            self.trace.say(machine.name, f"is {effect.role.value} in term {effect.term}, root is {effect.root}")
        elif isinstance(effect, ChangeEnded):
            self.faults.told(machine, effect)
            self.trace.say(machine.name, f"{'done' if effect.done else 'refused'}: {effect.text}")

    def _note_promotion(self, machine: LogMachine) -> None:
        """A new epoch counts when it has a root; before that no client can have received an answer from it."""
        assert machine.keeper is not None
        epochs = machine.keeper.epochs
        if epochs and epochs[-1][1] not in self.history.lengths:
            self.history.promoted(machine, epochs[-1][1])

    def stepped(self, machine: LogMachine) -> None:
        self._look_at(machine)
        if self.performance is not None:
            self.performance.looked()

    def _look_at(self, machine: LogMachine) -> None:
        keeper = machine.keeper
        assert keeper is not None
        if not keeper.runs_replica:
            return
        replica = keeper.replica
        looked = (machine.life, replica.commit_index, keeper.journal.synced_index, replica.role, replica.root)
        self._steps += 1
        if looked == self._looked.get(machine.name) and self._steps % STEPS_BETWEEN:
            return
        self._looked[machine.name] = looked
        self.history.note_synced(machine)
        for checker in self._stepping:
            checker.stepped(machine)
        self._note_recovery(machine)

    def _note_recovery(self, machine: LogMachine) -> None:
        if not machine.wounded or machine.keeper is None or not machine.keeper.runs_replica:
            return
        view = machine.keeper.replica.view()
        least = min(view.synced_index, view.commit_index)
        if not view.joining and not view.repairing and least >= self.history.longest:
            machine.wounded = False

    def ended(self, machine: LogMachine, fault: StoreFault | None) -> None:
        self.proposer.ended(machine)
        self.faults.ended(machine, fault)

    def _confirmed(self, machine: LogMachine, index: LogIndex, entry: LogEntry) -> None:
        self.history.note_synced(machine)
        for checker in self.checkers:
            checker.confirmed(machine, index, entry)
        assert machine.keeper is not None
        epoch_id = machine.keeper.replica.view().epoch_id
        if epoch_id not in self.history.overtaken:
            self.history.confirmed[entry.payload] = epoch_id

    # The course of the world.

    def run(self) -> WorldOutcome:
        return outcome_of(
            self.seed, self.trace, self.agenda, self._live, self._counts, self.faults.strikes, self._course
        )

    def _course(self) -> Reduction:
        return Reduction(
            clients=(PROPOSER,) if self._reduction.keeps_client(PROPOSER) else (),
            machines=tuple(machine.name for machine in self.machines),
            strikes=tuple(self.faults.strikes.names),
            features=(),
            faults_ms=min(self._faults_ms, self.agenda.now_ms),
        )

    def _counts(self) -> tuple[int, int]:
        return self.proposer.confirmed, next(self._lives) - 1

    def begin(self) -> None:
        for machine in self.machines:
            self.agenda.after(self.random.randint(0, 100), machine.start)
        self.agenda.at(100, self.network.begin)

    def _live(self) -> None:
        self.trace.say("world", f"lease {self.settings.lease_ms} ms, copies {self.settings.min_copies}")
        self.begin()
        proposes = self._reduction.keeps_client(PROPOSER)
        if proposes:
            self.proposer.begin()
        if self.performance is None:
            self.trace.say("world", f"faults: {', '.join(self.faults.kinds)}")
            self.faults.begin()
            self._faults_ms = self._reduction.length_ms(self.random.choice(LENGTHS_MS))
            self.agenda.run(self._faults_ms)
        else:
            self.performance.begin()
            self._faults_ms = self._reduction.length_ms(PLOT_MS)
            self.agenda.run(self._faults_ms, self.performance.is_over)
            self._faults_ms = self.agenda.now_ms
            self.performance.leave_off()
        self.faults.end()
        if not proposes:
            # Only a new entry can show that the log continues.
            self.proposer.begin()
        self.heal()

    def heal(self) -> None:
        """All machines agree again, and the log continues."""
        confirmed = self.proposer.confirmed
        self.await_("commits", lambda: self.proposer.confirmed >= confirmed + 3)
        self.proposer.stopped = True
        self.await_("equal logs", self._equal)
        for checker in self.checkers:
            checker.finished()

    def _equal(self) -> bool:
        """Whether every entry that some machine knows to be committed is committed on all of them."""
        for machine in self.machines:
            keeper = machine.keeper
            if keeper is None or not keeper.runs_replica or keeper.replica.commit_index < self.history.longest:
                return False
            view = keeper.replica.view()
            if view.joining or view.repairing:
                return False
        return True

    def await_(self, what: str, over: Callable[[], bool]) -> None:
        self.trace.say("world", f"awaits {what}")
        if not self.agenda.run(self.agenda.now_ms + PROGRESS_MS, over):
            raise BrokenPromise("progress", f"no {what} after {PROGRESS_MS} ms")

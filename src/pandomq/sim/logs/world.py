"""One seed's world of logs: machines with one log among them, a client, faults, and the end, when all logs are one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from pandomq.ids import LogIndex, NodeName
from pandomq.journal.faults import StoreFault
from pandomq.journal.limits import JournalSettings
from pandomq.limits import KIB
from pandomq.replica.effects import ChangeEnded, Effect, RoleChanged
from pandomq.replica.entries import EpochBegins, LogEntry, decode_entry, is_own
from pandomq.replica.membership import Member
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.agenda import Agenda
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.logs.checker import LogChecker
from pandomq.sim.logs.checkers.enough_copies import EnoughCopies
from pandomq.sim.logs.checkers.invariants import ReplicaInvariants
from pandomq.sim.logs.checkers.logs_agree import LogsAgree
from pandomq.sim.logs.checkers.nothing_lost import NothingLost
from pandomq.sim.logs.checkers.office import ResignsInTime
from pandomq.sim.logs.checkers.one_root import OneRoot
from pandomq.sim.logs.faults import LogFaults
from pandomq.sim.logs.history import History
from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.proposer import Proposer
from pandomq.sim.network import Network, Weather
from pandomq.sim.outcome import Outcome, outcome_of
from pandomq.sim.trace import Trace

PROGRESS_MS: Final = 30_000
DRIFT_PERMILLE: Final = 45
"""Two clocks differ by twice as much at most, which is within what a lease allows for."""


class LogWorld:
    def __init__(self, seed: int, nodes: int, show: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.random = random = Random(f"log {seed} {nodes}")
        self.agenda = Agenda()
        self.trace = Trace(self.agenda, show)
        lease_ms = random.choice((150, 400, 1_000))
        self.settings = ReplicaSettings(
            lease_ms=lease_ms,
            disk_stall_ms=lease_ms,
            min_copies=random.choice((1, 2, 2, 2)),
            last_man_standing=random.random() < 0.15,
        )
        weather = Weather(latency_ms=random.choice(((0, 2), (1, 8))))
        self.network = Network(self.agenda, Random(random.getrandbits(64)), weather, patience_ms=3 * lease_ms)
        self.machines: list[LogMachine] = []
        self.history = History(self.machines)
        self.checkers: list[LogChecker] = [
            OneRoot(self.history),
            LogsAgree(self.history),
            EnoughCopies(self.history),
            NothingLost(self.history),
            ResignsInTime(self.history),
            ReplicaInvariants(self.history),
        ]
        self._make_machines(nodes)
        self.proposer = Proposer(
            self.agenda, Random(random.getrandbits(64)), self.machines, random.choice((20, 60, 200))
        )
        self.proposer.on_confirmed = self._confirmed
        own = Random(random.getrandbits(64))
        self.faults = LogFaults(self.agenda, self.trace, own, self.machines, self.network)

    def _make_machines(self, nodes: int) -> None:
        random = self.random
        journal = JournalSettings(
            segment_bytes=random.choice((8, 64)) * KIB,
            disk_free_bytes_min=0,
            reserve_bytes=0,
            replay_chunk_bytes=4 * KIB,
        )
        names = [f"n{number}" for number in range(1, nodes + 1)]
        # Some begin outside, and may be made members later.
        first = names[: random.randint(max(1, nodes - 1), nodes)] if nodes > 3 else names
        founders = tuple(Member(NodeName(name)) for name in first)
        for name in names:
            machine = LogMachine(
                name,
                self.agenda,
                self.trace,
                Random(random.getrandbits(64)),
                self.network,
                self.settings,
                journal,
                self,
                drift_permille=random.randint(-DRIFT_PERMILLE, DRIFT_PERMILLE),
                founders=founders if name in first else (),
            )
            self.machines.append(machine)
            self.network.stations[name] = machine

    # What machines and the client report.

    def told(self, machine: LogMachine, effect: Effect) -> None:
        for checker in self.checkers:
            checker.told(machine, effect)
        self.proposer.told(machine, effect)
        if isinstance(effect, RoleChanged):
            self.trace.say(machine.name, f"is {effect.role.value} in term {effect.term}, root is {effect.root}")
        elif isinstance(effect, ChangeEnded):
            self.trace.say(machine.name, f"{'done' if effect.done else 'refused'}: {effect.text}")
            self._note_promotion(machine, effect)

    def _note_promotion(self, machine: LogMachine, effect: ChangeEnded) -> None:
        assert machine.keeper is not None
        entries = machine.keeper.entries
        own = decode_entry(entries[-1].payload) if entries and is_own(entries[-1].payload) else None
        if effect.done and isinstance(own, EpochBegins) and own.epoch_id not in self.history.committed:
            self.history.promoted(machine, own.epoch_id)

    def stepped(self, machine: LogMachine) -> None:
        self.history.note_synced(machine)
        for checker in self.checkers:
            checker.stepped(machine)
        self._note_recovery(machine)

    def _note_recovery(self, machine: LogMachine) -> None:
        if not machine.lost or machine.keeper is None or not machine.keeper.runs:
            return
        view = machine.keeper.replica.view()
        longest = max(map(len, self.history.committed.values()))
        if not view.joining and not view.repairing and min(view.synced_index, view.commit_index) >= longest:
            machine.lost = False

    def ended(self, machine: LogMachine, fault: StoreFault | None) -> None:
        self.proposer.ended(machine)
        self.faults.ended(machine, fault)

    def _confirmed(self, machine: LogMachine, index: LogIndex, entry: LogEntry) -> None:
        self.history.note_synced(machine)
        for checker in self.checkers:
            checker.confirmed(machine, index, entry)
        assert machine.keeper is not None
        self.history.confirmed[entry.payload] = machine.keeper.replica.view().epoch_id

    # The course of it.

    def run(self) -> Outcome:
        return outcome_of(self.seed, self.trace, self.agenda, self._live, self._counts)

    def _counts(self) -> tuple[int, int]:
        return self.proposer.confirmed, sum(machine.life for machine in self.machines)

    def begin(self) -> None:
        for machine in self.machines:
            self.agenda.after(self.random.randint(0, 100), machine.start)
        self.agenda.at(100, self.network.begin)

    def _live(self) -> None:
        self.trace.say("world", f"lease {self.settings.lease_ms} ms, copies {self.settings.min_copies}")
        self.trace.say("world", f"faults: {', '.join(self.faults.kinds)}")
        self.begin()
        self.proposer.begin()
        self.faults.begin()
        self.agenda.run(self.random.choice((1_500, 4_000, 8_000)))
        self.faults.end()
        self.heal()

    def heal(self) -> None:
        """Everybody agrees again, and the log goes on."""
        confirmed = self.proposer.confirmed
        self.await_("commits", lambda: self.proposer.confirmed >= confirmed + 3)
        self.proposer.stopped = True
        self.await_("equal logs", self._equal)
        for checker in self.checkers:
            checker.finished()

    def _equal(self) -> bool:
        """All that the others know to be committed is committed everywhere."""
        longest = max(map(len, self.history.committed.values()))
        for machine in self.machines:
            keeper = machine.keeper
            if keeper is None or not keeper.runs or keeper.replica.commit_index < longest:
                return False
            view = keeper.replica.view()
            if view.joining or view.repairing:
                return False
        return True

    def await_(self, what: str, over: Callable[[], bool]) -> None:
        self.trace.say("world", f"awaits {what}")
        if not self.agenda.run(self.agenda.now_ms + PROGRESS_MS, over):
            raise BrokenPromise("progress", f"no {what} after {PROGRESS_MS} ms")

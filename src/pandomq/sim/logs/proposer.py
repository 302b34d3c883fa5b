"""A client of the log: proposes entries to any machine that accepts them, and is told when they are committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from pandomq.ids import LogIndex
from pandomq.replica.effects import Committed, Effect, RoleChanged
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.replica import NotRoot
from pandomq.replica.roles.transitions import Role
from pandomq.sim.agenda import Agenda
from pandomq.sim.logs.keeper import Keeper
from pandomq.sim.logs.machine import LogMachine

SIZES = (1, 1, 20, 300, 1_500)


def name_of(payload: bytes) -> str:
    return f"entry {payload[1:].partition(b'|')[0].decode()}"


class Proposer:
    def __init__(self, agenda: Agenda, random: Random, machines: list[LogMachine], think_ms: int) -> None:
        self._agenda = agenda
        self._random = random
        self._machines = machines
        self._think_ms = think_ms
        self._count = 0
        self.stopped = False
        self.resting = False
        """Whether it proposes only entries that a plot requests."""
        self._waiting: dict[str, deque[tuple[LogIndex, LogEntry]]] = {}
        self.confirmed = 0
        self.on_confirmed: Callable[[LogMachine, LogIndex, LogEntry], None] = lambda machine, index, entry: None

    def begin(self) -> None:
        self._agenda.after(self._random.randint(0, self._think_ms), self._propose)

    def _propose(self) -> None:
        if self.stopped:
            return
        roots = [one for one in self._machines if one.keeper is not None and one.keeper.replica.role is Role.ROOT]
        if roots and not self.resting:
            machine = self._random.choice(roots)
            for _ in range(self._random.choice((1, 1, 5))):
                self.propose_to(machine, self._random.choice(SIZES))
        self.begin()

    def propose_to(self, machine: LogMachine, size_bytes: int) -> bytes:
        """Returns the entry, which is unique."""
        self._count += 1
        # It has no zeros, because a disk that has lost data may contain zeros.
        payload = b"\x01%d|" % self._count + bytes((1 + self._count % 255,)) * size_bytes
        machine.do(self._asker(machine, payload))
        return payload

    def _asker(self, machine: LogMachine, payload: bytes) -> Callable[[Keeper], None]:
        def ask(keeper: Keeper) -> None:
            try:
                index = keeper.log.propose(payload, prompt=True)
            except NotRoot:
                return
            # A root without peers may have committed it already.
            entry = keeper.entries[index - 1]
            if keeper.replica.commit_index >= index:
                self._confirm(machine, index, entry)
            else:
                self._waiting.setdefault(machine.name, deque()).append((index, entry))

        return ask

    def _confirm(self, machine: LogMachine, index: LogIndex, entry: LogEntry) -> None:
        self.confirmed += 1
        self.on_confirmed(machine, index, entry)

    def told(self, machine: LogMachine, effect: Effect) -> None:
        waiting = self._waiting.get(machine.name)
        if not waiting:
            return
        if isinstance(effect, RoleChanged):
            if effect.role is not Role.ROOT:
                # The next root determines whether they are committed.
                waiting.clear()
        elif isinstance(effect, Committed):
            assert machine.keeper is not None
            while waiting and waiting[0][0] <= effect.index:
                index, entry = waiting.popleft()
                if machine.keeper.entries[index - 1] is entry:
                    self._confirm(machine, index, entry)

    def ended(self, machine: LogMachine) -> None:
        self._waiting.pop(machine.name, None)

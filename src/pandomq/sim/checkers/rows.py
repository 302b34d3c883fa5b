"""The data port's rows of a stream, on any broker (D3, D10, docs/data-port.md).

Each offset has one row for ever, byte for byte; an answer has no gaps and ends at its stated end; no broker serves rows
that are not committed there; and the end that one process of a broker reports never decreases. Another broker may know
less.

Offsets that readers store by name are kept: the last one whose store was answered, or one that was requested later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, WorldLedger

if TYPE_CHECKING:
    from pandomq.chunk_form import MessageRow
    from pandomq.sim.checkers.streams import StreamsKept
    from pandomq.sim.machine import Machine

ROWS: Final = "the data port serves a stream as it is"
COMMITTED: Final = "the data port serves what is committed"
STORED: Final = "stored offsets are kept"


class RowsKept(Checker):
    def __init__(self, ledger: WorldLedger, stream: str, streams_kept: StreamsKept) -> None:
        super().__init__(ledger)
        self.stream = stream
        self._streams_kept = streams_kept
        self._rows: dict[int, MessageRow] = {}
        self._times_us: list[int] = []
        """The times of the offsets from 0 on, up to the first unknown one."""
        self._ends: dict[int, int] = {}
        """By life of a broker: the end that it has reported."""
        self._stored: dict[str, list[int]] = {}
        """By name: the last offset whose store was answered, if there is one, and all offsets whose store was requested
        later."""
        self._answered: set[str] = set()

    # Rows.

    def committed_end(self, machine: Machine) -> int:
        """Returns the end of the committed part of the stream on this broker."""
        assert machine.node is not None
        stream = machine.node.broker.streams.find("/", self.stream)
        return 0 if stream is None else stream.queue.committed_end

    def known_end(self, life: int) -> int:
        """Returns the end that this process has reported so far."""
        return self._ends.get(life, 0)

    def said_end(self, machine: Machine, end: int, known: int) -> None:
        """A broker reported its end; `known` is the end that it had reported before the request."""
        if end < known:
            raise BrokenPromise(ROWS, f"{machine.name} reported {known} as the end of {self.stream}, and then {end}")
        self.check_end(machine, end)
        self._ends[machine.life] = max(end, self.known_end(machine.life))

    def check_end(self, machine: Machine, end: int) -> None:
        """The broker serves rows before this offset. Its end never decreases, so a later check is valid, too."""
        committed_end = self.committed_end(machine)
        if end > committed_end:
            text = f"{machine.name} serves {self.stream} up to {end}, and {committed_end} is committed there"
            raise BrokenPromise(COMMITTED, text)

    def read(self, first: int, rows: Sequence[MessageRow], ends: Sequence[int], next_offset: int) -> None:
        offsets = [row.offset for row in rows]
        if rows and (offsets != list(range(offsets[0], offsets[0] + len(rows))) or offsets[0] > first):
            raise BrokenPromise(ROWS, f"a read of {self.stream} from offset {first} returned the offsets {offsets}")
        end = offsets[-1] + 1 if rows else first
        if next_offset != (ends[-1] if ends else first) or end < next_offset:
            raise BrokenPromise(
                ROWS, f"{self.stream} was read from {first} to {end}, but the next offset is {next_offset}"
            )
        for row in rows:
            known = self._rows.setdefault(row.offset, row)
            if known != row:
                raise BrokenPromise(ROWS, f"offset {row.offset} of {self.stream} is {row}, and was {known}")
            self._streams_kept.read(self.stream, row.offset, self.ledger.message_of(row.body))
        while (following := self._rows.get(len(self._times_us))) is not None:
            self._times_us.append(following.time_us)

    @property
    def end(self) -> int:
        """Returns the offset up to which all rows were read."""
        return len(self._times_us)

    def time_of(self, offset: int) -> int:
        return self._times_us[offset]

    def found_time(self, time_us: int, offset: int, known: int) -> None:
        """A broker reported this offset as the first of that time; `known` is as above."""
        expected = bisect_left(self._times_us, time_us)
        if offset > expected or (offset < expected and expected < known):
            raise BrokenPromise(ROWS, f"the first offset of {time_us} was reported as {offset}, and is {expected}")

    # Stored offsets.

    def stores(self, name: str, offset: int) -> None:
        self._stored.setdefault(name, []).append(offset)

    def has_stored(self, name: str, offset: int) -> None:
        """One client, which stores one offset after the other, was answered."""
        stored = self._stored[name]
        self._stored[name] = stored[len(stored) - 1 - stored[::-1].index(offset) :]
        self._answered.add(name)

    def check_stored(self, who: str, offsets: dict[str, int]) -> None:
        """Checks the stored offsets of a broker that has all committed entries."""
        for name, possible in self._stored.items():
            offset = offsets.get(name)
            if offset not in possible and (offset is not None or name in self._answered):
                raise BrokenPromise(STORED, f"{who} has offset {offset} of {name}, and not one of {possible}")

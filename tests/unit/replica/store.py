"""A log and a hard state in memory, with a disk that does one thing at a time and only when told to.

Requests that the disk has not done are lost in a crash; everything before them is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import LogIndex, Term
from pandomq.replica.completions import (
    Completion,
    CutDone,
    Fetched,
    Missing,
    NoSnapshot,
    PieceRead,
    PieceTaken,
    SnapshotBad,
    SnapshotInstalled,
    StateSaved,
    StoreEmptied,
    Synced,
)
from pandomq.replica.effects import (
    Cut,
    Effect,
    Fetch,
    InstallSnapshot,
    ReadPiece,
    SaveState,
    SetAside,
    TakePiece,
    WriteEntries,
)
from pandomq.replica.protocol.entries import LogEntry, changes_members
from pandomq.replica.store_facts import Damage, StoreFacts

PIECE_BYTES = 64


class Stored(msgspec.Struct):
    """The content of a disk, now or after its pending requests."""

    state: HardState = HardState()
    entries: list[LogEntry] = []
    """All of the log, also below the snapshot, so that tests can compare; the replica is not shown these."""
    snapshot_index: int = 0
    aside: list[list[LogEntry]] = []

    def copy(self) -> Stored:
        return Stored(self.state, list(self.entries), self.snapshot_index, [list(part) for part in self.aside])


Operation = tuple[Callable[[Stored], None], Completion | None]


class Store:
    """The port of a replica to its log, and the disk below it."""

    def __init__(self) -> None:
        self.durable = Stored()
        self.memory = Stored()
        self.queue: deque[Operation] = deque()
        self.stalled_since_ms: int | None = None
        self.pieces: dict[int, bytes] = {}
        self.snapshot_is_bad = False
        self.fetch_entries = 3
        self.damage: Damage | None = None
        self.bad: list[LogEntry] = []
        """Entries that cannot be read any more."""
        self.doubtful = False
        self.answers: list[Completion] = []

    # LogPort.

    @property
    def first_index(self) -> LogIndex:
        return LogIndex(self.memory.snapshot_index + 1)

    @property
    def last_index(self) -> LogIndex:
        return LogIndex(len(self.memory.entries))

    @property
    def last_term(self) -> Term:
        return self.memory.entries[-1].term if self.memory.entries else Term(0)

    @property
    def synced_index(self) -> LogIndex:
        return LogIndex(len(self.durable.entries))

    @property
    def waiting_since_ms(self) -> int | None:
        return self.stalled_since_ms if self.queue else None

    def term_at(self, index: LogIndex) -> Term | None:
        if index == 0:
            return Term(0)
        if index < self.memory.snapshot_index or index > len(self.memory.entries):
            return None
        return self.memory.entries[index - 1].term

    # The disk.

    def do(self, change: Callable[[Stored], None], completion: Completion | None) -> None:
        change(self.memory)
        self.queue.append((change, completion))

    def step(self) -> Completion | None:
        """The disk does the oldest thing that it was asked."""
        change, completion = self.queue.popleft()
        change(self.durable)
        return completion

    def crash(self) -> None:
        self.queue.clear()
        self.answers.clear()
        self.pieces.clear()
        self.memory = self.durable.copy()

    def wipe(self) -> None:
        self.durable = Stored()
        self.crash()

    def facts(self) -> StoreFacts:
        memory = self.memory
        own = [(i, entry) for i, entry in enumerate(memory.entries, start=1) if changes_members(entry.payload)]
        after = tuple((i, entry) for i, entry in own if i > memory.snapshot_index)
        return StoreFacts(memory.state, memory.snapshot_index, self.damage, self.doubtful, after)

    def compact(self, index: int) -> None:
        """A snapshot takes the place of the log up to this entry."""

        def change(stored: Stored) -> None:
            stored.snapshot_index = max(index, stored.snapshot_index)

        self.do(change, None)

    # Effects.

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case SaveState(number, state):
                self.do(lambda stored: setattr(stored, "state", state), StateSaved(number))
            case WriteEntries(first_index, term, payloads):
                assert first_index == self.last_index + 1, (first_index, self.last_index)
                assert self.damage is None or self.queue, "a damaged log takes nothing before it is cut"
                entries = [LogEntry(term, payload) for payload in payloads]
                last_index = LogIndex(first_index + len(payloads) - 1)
                self.do(lambda stored: stored.entries.extend(entries), Synced(last_index))
            case Cut(first_index, keep_aside):
                self._cut(first_index, keep_aside=keep_aside)
            case SetAside(_, membership):
                self.do(lambda stored: empty(stored, membership), StoreEmptied())
            case Fetch(peer, first_index, _):
                if first_index <= self.memory.snapshot_index:
                    self.answers.append(Missing(peer, first_index))
                else:
                    entries = self.memory.entries[first_index - 1 : first_index - 1 + self.fetch_entries]
                    self.answers.append(Fetched(peer, first_index, tuple(entries)))
            case ReadPiece():
                self.answers.append(self._read_piece(effect))
            case TakePiece(source, number, data):
                if number == 0:
                    self.pieces.clear()
                self.pieces[number] = data
                self.answers.append(PieceTaken(source, number))
            case InstallSnapshot():
                self._install(effect)
            case _:
                raise AssertionError(effect)

    def _cut(self, first_index: int, *, keep_aside: bool) -> None:
        bad, damage = self.bad, self.damage
        assert damage is None or damage.first_index == first_index, "a damaged log is cut where it is damaged"

        def change(stored: Stored) -> None:
            if keep_aside:
                stored.aside.append(stored.entries[first_index - 1 :] + bad)
            del stored.entries[first_index - 1 :]
            if stored is self.durable:
                self.bad, self.damage = [], None

        self.do(change, CutDone())

    def _read_piece(self, effect: ReadPiece) -> Completion:
        index = self.durable.snapshot_index
        source = f"snapshot {index}"
        if index == 0 or effect.source not in ("", source):
            return NoSnapshot(effect.peer, effect.source)
        data = msgspec.msgpack.encode(self.durable.entries[:index])
        pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]
        term = self.durable.entries[index - 1].term
        last = effect.number == len(pieces) - 1
        return PieceRead(effect.peer, source, LogIndex(index), term, effect.number, pieces[effect.number], last)

    def _install(self, effect: InstallSnapshot) -> None:
        data = b"".join(self.pieces[number] for number in sorted(self.pieces))
        self.pieces.clear()
        if self.snapshot_is_bad:
            self.snapshot_is_bad = False
            self.answers.append(SnapshotBad(effect.source, "read back, it is damaged"))
            return
        entries = msgspec.msgpack.decode(data, type=list[LogEntry])
        assert len(entries) == effect.index

        def change(stored: Stored) -> None:
            stored.entries = list(entries)
            stored.snapshot_index = effect.index

        self.do(change, SnapshotInstalled(effect.source))


def empty(stored: Stored, membership: bytes) -> None:
    stored.aside.append(stored.entries)
    stored.entries = []
    stored.snapshot_index = 0
    stored.state = msgspec.structs.replace(stored.state, membership=membership)

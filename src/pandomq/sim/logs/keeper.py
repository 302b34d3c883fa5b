"""One process that keeps the log: a replica on a journal, and nothing else. What it is given are opaque entries.

It stands where the node stands: carries out the replica's effects with the journal, and tells it what became of them.
`node.replication` does the same for a broker, which applies what is committed, takes office and begins again; here
there is none, so only what does not know of one is shared (`node.transfer`).
It also remembers what its log holds, so that checkers can compare logs without reading disks. That is its state, and
what is in its snapshots; so a snapshot that is not what it stands for shows when logs are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol, assert_never

from pandomq.ids import LogIndex, NodeName
from pandomq.journal import hard_state as stored
from pandomq.journal.effects import Completion as DiskCompletion
from pandomq.journal.effects import Ticket
from pandomq.journal.events import (
    Durable,
    Emptied,
    EntriesRead,
    Event,
    Installed,
    InstallFailed,
    PartRead,
    PartTaken,
    Recovered,
    Replayed,
    SnapshotBegins,
    SnapshotFailed,
    SnapshotPiece,
    SnapshotSaved,
    StateSaved,
    Truncated,
)
from pandomq.journal.journal import Journal
from pandomq.node.transfer import Transfer
from pandomq.replica import completions as done
from pandomq.replica.effects import (
    Alarm,
    ChangeEnded,
    Committed,
    Cut,
    Effect,
    Fetch,
    InstallSnapshot,
    MembersChanged,
    PrepareHandOver,
    ReadPiece,
    Received,
    Resigned,
    RoleChanged,
    SaveState,
    Send,
    Serve,
    SetAside,
    TakePiece,
    Write,
)
from pandomq.replica.entries import EpochBegins, LogEntry, changes_members, decode_entry, is_own
from pandomq.replica.hard_state import Damage, HardState, StoreFacts
from pandomq.replica.membership import Member
from pandomq.replica.messages import decode, encode
from pandomq.replica.record import first_state
from pandomq.replica.replica import Replica
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.logs.snapshots import KeeperSnapshots, decode_piece


class KeeperWatch(Protocol):
    """Who is told what the replica says."""

    def told(self, keeper: Keeper, effect: Effect) -> None: ...

    def send(self, keeper: Keeper, peer: str, data: bytes) -> None: ...

    def replaced(self, keeper: Keeper, reason: str) -> None:
        """Its store is another one when it is opened again, which is to be now."""


class Keeper:
    def __init__(
        self,
        name: str,
        settings: ReplicaSettings,
        journal: Journal,
        random: Random,
        founders: tuple[Member, ...],
        watch: KeeperWatch,
    ) -> None:
        """`founders` is who votes first, if the store is empty and this one may begin with them."""
        self.name = name
        self.journal = journal
        self._founders = founders
        self._watch = watch
        self.replica = Replica(NodeName(name), settings, journal, random)
        self.entries: list[LogEntry] = []
        """The log in memory, from the first entry on."""
        self.epochs: list[tuple[int, str]] = []
        """From which entry on the log is of which forced promotion."""
        self._facts: StoreFacts | None = None
        self._saves: dict[Ticket, int] = {}
        self._fetches: dict[Ticket, Fetch] = {}
        self._cutting = self._wrote = False
        self._events: list[Event] = []
        self.transfer = Transfer(journal, self._complete)
        self._snapshots = KeeperSnapshots(journal)
        self.over = False
        self.now_ms = 0
        journal.open()

    @property
    def runs(self) -> bool:
        return not self.over and self.replica.role is not Role.RECOVERING

    # What happens.

    def tick(self, now_ms: int) -> None:
        if now_ms == self.now_ms:
            return
        self.now_ms = now_ms
        if self.runs:
            self.journal.tick(now_ms)
            self.replica.tick(now_ms)
            self.carry_out()
        if self.runs:
            self.journal.pin(self.replica.needed_from if self.replica.role is Role.ROOT else None)
            self._snapshots.work(self.entries, self.replica.commit_index)

    def linked(self, peer: str) -> None:
        if self.runs:
            self.replica.connected(NodeName(peer))
            self.carry_out()

    def unlinked(self, peer: str, *, by_peer: bool) -> None:
        if self.runs:
            self.replica.disconnected(NodeName(peer), by_peer=by_peer)
            self.carry_out()

    def received(self, peer: str, data: bytes) -> None:
        if self.runs:
            self.replica.step(NodeName(peer), decode(data))
            self.carry_out()

    def propose(self, payload: bytes) -> LogIndex:
        """Raises NotRoot."""
        index = self.replica.propose((payload,), prompt=True)
        self.carry_out()
        return index

    def ask(self, call: Callable[[], None]) -> None:
        """What a person wants of the replica."""
        if self.runs:
            call()
            self.carry_out()

    def disk_completed(self, finished: list[DiskCompletion]) -> bool:
        """Whether the journal has something to say. Raises StoreFault."""
        for completion in finished:
            self.journal.completed(completion)
        self._events += self.journal.take_events()
        return bool(self._events)

    def hear_journal(self) -> None:
        """Raises StoreFault."""
        while self._events:
            events, self._events = self._events, []
            for event in events:
                if not self.over:
                    self._hear(event)
            self._events += self.journal.take_events()

    # The journal.

    def _hear(self, event: Event) -> None:
        match event:
            case SnapshotBegins() | SnapshotPiece() | Replayed() | Recovered():
                self._read_store(event)
            case SnapshotSaved(index):
                self._snapshots.saved(index)
            case SnapshotFailed():
                self._snapshots.failed()
            case PartRead() | PartTaken() | InstallFailed() | Installed() | Emptied():
                self._hear_of_transfer(event)
            case StateSaved(ticket):
                number = self._saves.pop(ticket)
                if number < 0:
                    self._set_out()
                else:
                    self._complete(done.StateSaved(number))
            case Durable(index):
                # Of entries that are being cut off nothing is said any more.
                if not self._cutting:
                    self._complete(done.Synced(index))
            case Truncated():
                self._cutting = False
                self._complete(done.CutDone())
            case EntriesRead(ticket, entries):
                fetch = self._fetches.pop(ticket)
                found = tuple(LogEntry(entry.term, entry.payload) for entry in entries)
                self._complete(
                    done.Fetched(fetch.peer, fetch.first_index, found)
                    if found
                    else done.Missing(fetch.peer, fetch.first_index)
                )
            case _:
                pass

    def _read_store(self, event: SnapshotBegins | SnapshotPiece | Replayed | Recovered) -> None:
        match event:
            case SnapshotBegins():
                self.entries, self.epochs = [], []
            case SnapshotPiece(_, data):
                self._note(decode_piece(data))
            case Replayed(entries):
                assert entries[0].index == len(self.entries) + 1, "the log goes on where the snapshot ends"
                self._note([LogEntry(entry.term, entry.payload) for entry in entries])
            case Recovered():
                self._recovered(event)
            case _:
                assert_never(event)

    def _hear_of_transfer(self, event: PartRead | PartTaken | InstallFailed | Installed | Emptied) -> None:
        match event:
            case PartRead():
                self.transfer.part_read(event)
            case PartTaken():
                self.transfer.part_taken(event)
            case InstallFailed(ticket, reason):
                self.transfer.install_failed(ticket, reason)
            case Installed():
                self._replaced("a snapshot takes the place of its store")
            case Emptied():
                self._replaced("its store is set aside, and it begins empty")
            case _:
                assert_never(event)

    def _replaced(self, reason: str) -> None:
        self.over = True
        self._watch.replaced(self, reason)

    def _recovered(self, recovered: Recovered) -> None:
        # From now on it knows since when the disk owes something.
        self.journal.tick(self.now_ms)
        state, damage = recovered.hard_state, recovered.damage
        found = HardState(state.epoch, state.epoch_id, state.term, state.vote, state.membership)
        founding = not found.membership and bool(self._founders)
        if founding:
            found = first_state(self._founders)
            self._saves[self.journal.save_state(_stored(found))] = -1
        self.journal.replayed()
        self._snapshots.last_index = recovered.snapshot_index
        self._facts = StoreFacts(
            found,
            snapshot_index=recovered.snapshot_index,
            damage=None if damage is None else Damage(damage.index, damage.known_term, damage.known_index),
            doubtful=self.journal.charter.state.doubtful,
            own=tuple((i, entry) for i, entry in enumerate(self.entries, start=1) if changes_members(entry.payload)),
        )
        if not founding:
            self._set_out()

    def _set_out(self) -> None:
        assert self._facts is not None
        facts, self._facts = self._facts, None
        self.replica.recovered(facts, self.now_ms)
        self.carry_out()

    def _complete(self, completion: done.Completion) -> None:
        if not self.over:
            self.replica.completed(completion)
            self.carry_out()

    # Effects.

    def carry_out(self) -> None:
        while effects := self.replica.take_effects():
            for effect in effects:
                if not self.over:
                    self._carry_out_one(effect)
        if self._wrote and not self.over:
            self._wrote = False
            self.journal.sync()

    def _carry_out_one(self, effect: Effect) -> None:
        match effect:
            case Write(_, term, payloads):
                self._wrote = True
                self.journal.extend(term, payloads)
                self._note([LogEntry(term, payload) for payload in payloads])
            case Send(peer, message):
                self._watch.send(self, peer, encode(message))
            case SaveState(number, state):
                self._saves[self.journal.save_state(_stored(state))] = number
            case Cut(first_index, keep_aside):
                self._cutting = True
                del self.entries[first_index - 1 :]
                self.epochs = [start for start in self.epochs if start[0] < first_index]
                self.journal.truncate(first_index, keep_aside=keep_aside)
            case Fetch(peer, first_index, bytes_max):
                try:
                    self._fetches[self.journal.read(first_index, bytes_max)] = effect
                except LookupError:
                    self.replica.completed(done.Missing(peer, first_index))
            case ReadPiece() | TakePiece() | InstallSnapshot():
                self._watch.told(self, effect)
                self.transfer.carry_out(effect)
            case SetAside():
                self.journal.arrivals.set_aside(self.now_ms)
            case PrepareHandOver():
                self._watch.told(self, effect)
                self.replica.completed(done.HandOverPrepared(None))
            case Committed(index):
                self.journal.commit(index)
                self._watch.told(self, effect)
            case RoleChanged() | Received() | Serve() | Resigned() | Alarm() | MembersChanged() | ChangeEnded():
                self._watch.told(self, effect)
            case _:
                assert_never(effect)

    def _note(self, entries: list[LogEntry]) -> None:
        for entry in entries:
            self.entries.append(entry)
            own = decode_entry(entry.payload) if is_own(entry.payload) else None
            if isinstance(own, EpochBegins):
                self.epochs.append((len(self.entries), own.epoch_id))


def _stored(state: HardState) -> stored.HardState:
    return stored.HardState(state.epoch, state.epoch_id, state.term, state.vote, state.membership)

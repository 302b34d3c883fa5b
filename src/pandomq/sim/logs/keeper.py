"""One process that keeps the log: a replica on a journal, and nothing else. Its entries are opaque.

It replaces the node: where a broker applies committed entries, takes over and restarts, the keeper remembers the
content of its log, so that checkers can compare logs without reading disks. This is its state, and the content of its
snapshots; so an incorrect snapshot shows when logs are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol, assert_never

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.journal.checksums import CHAIN_START, chain_next, entry_checksum
from pandomq.journal.effects import Completion as DiskCompletion
from pandomq.journal.events import (
    Durable,
    Emptied,
    EntriesRead,
    Event,
    HardStateSaved,
    Installed,
    InstallFailed,
    PartRead,
    PartTaken,
    Recovered,
    Replayed,
    RestoredPiece,
    SnapshotBegins,
    SnapshotFailed,
    SnapshotSaved,
    Truncated,
)
from pandomq.journal.journal import Journal
from pandomq.node.log.replicated_log import ReplicatedLog, Told
from pandomq.replica.completions import HandOverPrepared
from pandomq.replica.effects import Effect, PrepareHandOver, Send
from pandomq.replica.members.membership import Member, Membership
from pandomq.replica.protocol.entries import EpochBegins, LogEntry, decode_entry, is_own
from pandomq.replica.protocol.messages import decode, encode
from pandomq.replica.replica import Replica
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.logs.snapshots import KeeperSnapshots, decode_piece


class KeeperWatch(Protocol):
    """Receives what the replica reports."""

    def told(self, keeper: Keeper, effect: Effect) -> None: ...

    def send(self, keeper: Keeper, peer: str, data: bytes) -> None: ...

    def replaced(self, keeper: Keeper, reason: str) -> None:
        """The keeper's store has been replaced; it must be opened again now."""


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
        """`founders` are the first voters, if the store is empty and this machine may be one of them."""
        self.name = name
        self.journal = journal
        self._watch = watch
        self.replica = Replica(NodeName(name), settings, journal, random)
        self.log = ReplicatedLog(name, self.replica, journal, self, self, founders)
        self.entries: list[LogEntry] = []
        """The log in memory, from the first entry on."""
        self.chains: list[int] = []
        """The chain after each of them, as a journal with this content has it."""
        self.epochs: list[tuple[int, str]] = []
        """The first entry of each forced promotion's epoch."""
        self._events: list[Event] = []
        self._snapshots = KeeperSnapshots(journal)
        self.runs_replica = self.is_over = False
        journal.open()

    # Inputs.

    def tick(self, now_ms: int) -> None:
        if now_ms == self.log.now_ms:
            return
        self.log.now_ms = now_ms
        if self.runs_replica:
            self.journal.tick(now_ms)
            self.replica.tick(now_ms)
            self.log.carry_out()
        if self.runs_replica:
            self.journal.pin(self.replica.needed_from if self.replica.role is Role.ROOT else None)
            self._snapshots.work(self.entries, self.replica.commit_index)

    def received(self, peer: str, data: bytes) -> None:
        if self.runs_replica:
            self.replica.step(NodeName(peer), decode(data))
            self.log.carry_out()

    def ask(self, call: Callable[[], object]) -> None:
        """Carries out an operator's request to the replica."""
        if self.runs_replica:
            call()
            self.log.carry_out()

    def disk_completed(self, finished: list[DiskCompletion]) -> bool:
        """Returns whether the journal has reports. Raises StoreFault."""
        for completion in finished:
            self.journal.completed(completion)
        self._events += self.journal.take_events()
        return bool(self._events)

    def hear_journal(self) -> None:
        """Raises StoreFault."""
        while self._events:
            events, self._events = self._events, []
            for event in events:
                if not self.is_over:
                    self._hear(event)
            self._events += self.journal.take_events()

    # The journal.

    def _hear(self, event: Event) -> None:
        match event:
            case SnapshotBegins() | RestoredPiece() | Replayed() | Recovered():
                self._read_store(event)
            case SnapshotSaved(index):
                self._snapshots.saved(index)
            case SnapshotFailed():
                self._snapshots.failed()
            case Durable(index):
                self.log.durable(index)
            case (
                HardStateSaved()
                | Truncated()
                | EntriesRead()
                | PartRead()
                | PartTaken()
                | InstallFailed()
                | Installed()
                | Emptied()
            ):
                self.log.answered(event)
            case _:
                pass

    def _read_store(self, event: SnapshotBegins | RestoredPiece | Replayed | Recovered) -> None:
        match event:
            case SnapshotBegins():
                self.entries, self.chains, self.epochs = [], [], []
            case RestoredPiece(_, data):
                self._note(decode_piece(data))
            case Replayed(entries):
                assert entries[0].index == len(self.entries) + 1, "the log goes on where the snapshot ends"
                self._note([LogEntry(entry.term, entry.payload) for entry in entries])
                self.log.replayed(entries)
            case Recovered():
                # From now on the journal knows since when the disk has pending requests.
                self.journal.tick(self.log.now_ms)
                self.journal.replayed()
                self._snapshots.last_index = event.snapshot_index
                self.log.begin(event)
            case _:
                assert_never(event)

    # Reports of the log.

    def found(self, membership: Membership | None) -> None:
        """The replica reports them when it begins."""

    def begins(self) -> None:
        self.runs_replica = True

    def wrote(self, first_index: LogIndex, term: Term, payloads: Sequence[bytes]) -> None:
        self._note([LogEntry(term, payload) for payload in payloads])

    def cut(self, first_index: LogIndex) -> None:
        del self.entries[first_index - 1 :], self.chains[first_index - 1 :]
        self.epochs = [start for start in self.epochs if start[0] < first_index]

    def read(self, event: EntriesRead) -> None:
        raise AssertionError("the keeper has its entries in memory, and reads none")

    def told(self, effect: Told) -> None:
        match effect:
            case Send(peer, message):
                self._watch.send(self, peer, encode(message))
            case PrepareHandOver():
                self.replica.completed(HandOverPrepared(None))
            case _:
                self._watch.told(self, effect)

    def replaced(self, reason: str) -> None:
        self.runs_replica, self.is_over = False, True
        self._watch.replaced(self, reason)

    def _note(self, entries: list[LogEntry]) -> None:
        for entry in entries:
            self.entries.append(entry)
            checksum = entry_checksum(len(self.entries), entry.term, entry.payload)
            self.chains.append(chain_next(self.chains[-1] if self.chains else CHAIN_START, checksum))
            own = decode_entry(entry.payload) if is_own(entry.payload) else None
            if isinstance(own, EpochBegins):
                self.epochs.append((len(self.entries), own.epoch_id))

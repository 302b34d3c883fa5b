"""Joins a replica with its journal: the journal does what the replica requests of the store, and its results go back.

The owner knows the meaning of the entries. It gets all other effects, in their order, and calls `carry_out` when it has
called the replica itself. A broker (`replication`) and a simulated process without a broker both own such a log.

Once the owner has ended, nothing is written or released, as if it had crashed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol, assert_never

import msgspec

from pandomq.ids import LogIndex, NodeName
from pandomq.journal.events import (
    Emptied,
    EntriesRead,
    HardStateSaved,
    Installed,
    InstallFailed,
    PartRead,
    PartTaken,
    Truncated,
)
from pandomq.node.log.transfer import Transfer
from pandomq.replica import completions as done
from pandomq.replica.effects import (
    Alarm,
    ChangeEnded,
    Committed,
    Cut,
    Fetch,
    InstallSnapshot,
    MembersChanged,
    PrepareHandOver,
    ReadPiece,
    Received,
    RoleChanged,
    SaveState,
    Send,
    Serve,
    SetAside,
    SteppedDown,
    TakePiece,
    WriteEntries,
)
from pandomq.replica.protocol.entries import LogEntry, changes_members
from pandomq.replica.record import decode_record, first_state
from pandomq.replica.store_facts import Damage, StoreFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.ids import Term
    from pandomq.journal.effects import Ticket
    from pandomq.journal.events import Entry, Recovered
    from pandomq.journal.journal import Journal
    from pandomq.replica.members.membership import Member, Membership
    from pandomq.replica.replica import Replica

log = logging.getLogger("pandomq")

FOUNDING: Final = -1
"""Stands for the number of a save that the replica did not ask for."""
LAST_WORDS: Final = (Send, ChangeEnded)
"""Still sent when the owner has ended: a hand-over notifies the successor, and requests get their results."""

Answer = HardStateSaved | Truncated | EntriesRead | PartRead | PartTaken | InstallFailed | Installed | Emptied
"""The journal's events that answer requests of the replica; some of them may answer requests of the owner."""
Told = (
    Send
    | Committed
    | Received
    | RoleChanged
    | Serve
    | SteppedDown
    | PrepareHandOver
    | Alarm
    | MembersChanged
    | ChangeEnded
)
"""The effects that the owner carries out."""


class Life(Protocol):
    """The state of the owner, as far as it matters here."""

    runs_replica: bool
    """Whether the replica takes events."""
    is_over: bool


class Owner(Protocol):
    def found(self, membership: Membership | None) -> None:
        """These are the members according to the store, before the replica begins."""

    def begins(self) -> None:
        """From now on the replica takes events."""

    def wrote(self, first_index: LogIndex, term: Term, payloads: Sequence[bytes]) -> None:
        """These entries are at the end of the log, though not on the disk yet."""

    def cut(self, first_index: LogIndex) -> None:
        """The log ends before this entry."""

    def read(self, event: EntriesRead) -> None:
        """Takes entries that the owner itself has requested from the journal."""

    def told(self, effect: Told) -> None:
        """Carries out this effect."""

    def replaced(self, reason: str) -> None:
        """The journal has another store now, and must be opened again."""


class ReplicatedLog:
    def __init__(
        self, name: str, replica: Replica, journal: Journal, life: Life, owner: Owner, founders: Sequence[Member]
    ) -> None:
        """`founders` are the first voters, if an empty store may begin a cluster."""
        self._name = NodeName(name)
        self.replica = replica
        self.journal = journal
        self.transfer = Transfer(journal)
        self.linked: set[str] = set()
        """Brokers to which there is a link."""
        self.now_ms = 0
        """The owner sets it, before anything else of that time."""
        self._life = life
        self._owner = owner
        self._founders = founders
        self._own: list[tuple[int, LogEntry]] = []
        self._facts: StoreFacts | None = None
        """Set while the first members are being saved."""
        self._saves: dict[Ticket, int] = {}
        self._cutting = self._wrote = False

    # The store is open.

    @property
    def is_alone(self) -> bool:
        """Everything in such a store is committed, since there are no other voters."""
        state = self.journal.found_state
        if state is None or not state.hard.membership:
            return self._founds and len(self._founders) == 1
        membership = decode_record(state.hard.membership).membership
        return membership is not None and membership.sets == ((self._name,),)

    @property
    def _founds(self) -> bool:
        """An empty store may begin a cluster, unless it is empty because another one has overtaken it."""
        state = self.journal.found_state
        return bool(self._founders) and (state is None or not state.emptied)

    def replayed(self, entries: Sequence[Entry]) -> None:
        """To be called with the entries that are in the log after the snapshot."""
        for entry in entries:
            if changes_members(entry.payload):
                self._own.append((entry.index, LogEntry(entry.term, entry.payload)))

    def begin(self, recovered: Recovered) -> None:
        found, damage = recovered.hard_state, recovered.damage
        if not found.membership and self._founds:
            # Saved before the first vote: a broker that forgot that it was among the first could be counted twice.
            found = msgspec.structs.replace(found, membership=first_state(self._founders).membership)
            self._saves[self.journal.save_state(found)] = FOUNDING
        self._facts = StoreFacts(
            found,
            snapshot_index=recovered.snapshot_index,
            damage=None if damage is None else Damage(damage.index, damage.known_term, damage.known_index),
            own=tuple(self._own),
            # A store that is alone has no other voters, and so no other broker could help it.
            doubtful=self.journal.store_identity.state.doubtful and not self.is_alone,
        )
        self._own.clear()
        self._owner.found(decode_record(found.membership).membership if found.membership else None)
        if not self._saves:
            self._start()

    def _start(self) -> None:
        assert self._facts is not None
        facts, self._facts = self._facts, None
        self._owner.begins()
        self.replica.recovered(facts, self.now_ms)
        for peer in sorted(self.linked):
            self.replica.connected(NodeName(peer))
        self.carry_out()

    # Events.

    def connected(self, peer: str) -> None:
        self.linked.add(peer)
        if self._life.runs_replica:
            self.replica.connected(NodeName(peer))
            self.carry_out()

    def disconnected(self, peer: str, *, by_peer: bool) -> None:
        self.linked.discard(peer)
        if self._life.runs_replica:
            self.replica.disconnected(NodeName(peer), by_peer=by_peer)
            self.carry_out()

    def propose(self, entry: bytes, *, prompt: bool) -> LogIndex:
        """`prompt`: a client waits for it to be received. Raises NotRoot."""
        index = self.replica.propose((entry,), prompt=prompt)
        self.carry_out()
        return index

    def durable(self, index: LogIndex) -> None:
        # Entries that are being cut off are not reported any more; their replacements are not on the disk yet.
        if not self._cutting:
            self._complete(done.Synced(index))

    def answered(self, event: Answer) -> None:
        """Raises CorruptFault."""
        match event:
            case HardStateSaved(ticket):
                number = self._saves.pop(ticket)
                if number == FOUNDING:
                    self._start()
                else:
                    self._complete(done.StateSaved(number))
            case Truncated(_, aside):
                if aside is not None:
                    log.warning("entries that were cut off the log are kept in %s", aside)
                self._cutting = False
                self._complete(done.CutDone())
            case EntriesRead() | PartRead() | PartTaken() | InstallFailed():
                completion = self.transfer.end(event, self.replica.root)
                if completion is not None:
                    self._complete(completion)
                elif isinstance(event, EntriesRead):
                    self._owner.read(event)
            case Installed():
                self._owner.replaced("the store is replaced by a snapshot of the root")
            case Emptied():
                self._owner.replaced("the store was set aside, and is fetched from the root again")
            case _:
                assert_never(event)

    def _complete(self, completion: done.Completion) -> None:
        if not self._life.is_over:
            self.replica.completed(completion)
            self.carry_out()

    # Effects.

    def carry_out(self) -> None:
        life, owner, journal = self._life, self._owner, self.journal
        while effects := self.replica.take_effects():
            for effect in effects:
                if life.is_over and not isinstance(effect, LAST_WORDS):
                    continue
                match effect:
                    case WriteEntries(first_index, term, payloads):
                        self._wrote = True
                        last_index = journal.extend(term, payloads)
                        assert last_index == first_index + len(payloads) - 1
                        owner.wrote(first_index, term, payloads)
                    case Committed(index):
                        journal.commit(index)
                        owner.told(effect)
                    case SaveState() | Cut() | SetAside() | Fetch() | ReadPiece() | TakePiece() | InstallSnapshot():
                        self._use_store(effect)
                    case _:
                        owner.told(effect)
        if self._wrote and not life.is_over:
            self._wrote = False
            journal.sync()

    def _use_store(self, effect: SaveState | Cut | SetAside | Fetch | ReadPiece | TakePiece | InstallSnapshot) -> None:
        journal = self.journal
        match effect:
            case SaveState(number, state):
                self._saves[journal.save_state(state)] = number
            case Cut(first_index, keep_aside):
                self._owner.cut(first_index)
                self._cutting = True
                journal.truncate(first_index, keep_aside=keep_aside)
            case SetAside(reason, membership):
                log.warning("the store is set aside, and this broker fetches a new one from the root: %s", reason)
                journal.arrivals.set_aside(self.now_ms, membership)
            case Fetch() | ReadPiece() | TakePiece() | InstallSnapshot():
                completion = self.transfer.begin(effect)
                if completion is not None:
                    self.replica.completed(completion)
            case _:
                assert_never(effect)

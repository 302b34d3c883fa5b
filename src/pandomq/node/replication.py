"""Carries out what the replica wants, with the journal, the broker and the peers, and tells it what became of it.

    following     what is committed goes to the broker, entry by entry
    elected       an entry of this broker's term is committed; what came before it is still being applied
    in office     the broker's own batches are proposed, and a commit releases what waited for it

    lingering     it handed over: its log follows, and its broker does nothing any more, until the next one is in office

From an office there is no way back: a broker that was in it may hold what never was committed. `restart` then says why
this life ends, and from then on nothing is written, sent or released any more, as if it had crashed; the owner begins
another one with what is on the disk. The same goes for a store that was replaced as a whole.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from pandomq.broker.hand_over import encode_delivered
from pandomq.ids import LogIndex, NodeName
from pandomq.journal import hard_state as stored
from pandomq.journal.events import EntriesRead, Entry, Recovered
from pandomq.node.cluster_notices import ClusterNotices, OnEnded
from pandomq.node.excerpts import Commands
from pandomq.node.lingering import Lingering
from pandomq.node.spoken import Spoken
from pandomq.node.transfer import Transfer
from pandomq.replica.completions import Completion, CutDone, HandOverPrepared, StateSaved, Synced
from pandomq.replica.effects import (
    Alarm,
    AlarmKind,
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
from pandomq.replica.entries import LogEntry, changes_members
from pandomq.replica.hard_state import Damage, HardState, StoreFacts
from pandomq.replica.membership import Member, Membership
from pandomq.replica.messages import decode
from pandomq.replica.record import decode_record, first_state
from pandomq.replica.replica import Replica
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from pandomq.broker.broker import Broker
    from pandomq.journal.effects import Ticket
    from pandomq.journal.journal import Journal
    from pandomq.node.applier import Applier
    from pandomq.node.cluster_settings import ClusterSettings

log = logging.getLogger("pandomq")

FOUNDING: Final = -1
"""Stands for the number of a save that the replica did not ask for."""

TICKS_PER_LEASE: Final = 20
LAST_WORDS: Final = (Send, ChangeEnded)
"""What is still said when this life is over: who hands over tells its successor, and who asked for it hears."""


class Replication:
    def __init__(
        self, name: str, settings: ClusterSettings, journal: Journal, broker: Broker, applier: Applier, random: Random
    ) -> None:
        self._name, self._settings = NodeName(name), settings
        self._journal = journal
        self._broker = broker
        self._applier = applier
        self.replica = Replica(self._name, settings.replica, journal, random, Commands(), observer=settings.observer)
        self._now_ms = self._ticked_ms = 0
        self._facts: StoreFacts | None = None
        """While the first members are being saved."""
        self._own: list[tuple[int, LogEntry]] = []
        self._saves: dict[Ticket, int] = {}
        self._cutting = self._wrote = False
        self.linked: set[str] = set()
        """Brokers to which there is a link."""
        self._spoken = Spoken()
        self._serve: Serve | None = None
        self.in_office = False
        """The broker has finished its takeover, or is about to, and may propose."""
        self.lingering: Lingering | None = None
        self.restart: str | None = None
        self.notices = ClusterNotices(broker.tracing.note)
        self.transfer = Transfer(journal, self._complete)

    # The store is open.

    def is_alone(self, state: stored.StoreState | None) -> bool:
        """Whatever such a store holds is committed, since nobody else has a say in it."""
        if state is None or not state.hard.membership:
            return self._founds(state) and len(self._first_members) == 1
        membership = decode_record(state.hard.membership).membership
        return membership is not None and membership.sets == ((self._name,),)

    def _founds(self, state: stored.StoreState | None) -> bool:
        """An empty store may begin a cluster, unless it is empty because another one has overtaken it."""
        if self._settings.observer or (state is not None and state.emptied):
            return False
        return self._settings.founding or not self._settings.primaries

    @property
    def _first_members(self) -> tuple[Member, ...]:
        return self._settings.primaries or (Member(self._name),)

    def replayed(self, entries: Sequence[Entry]) -> None:
        """These are in the log, after the snapshot."""
        for entry in entries:
            if changes_members(entry.payload):
                self._own.append((entry.index, LogEntry(entry.term, entry.payload)))

    def begin(self, recovered: Recovered) -> None:
        state, damage = recovered.hard_state, recovered.damage
        found = HardState(state.epoch, state.epoch_id, state.term, state.vote, state.membership)
        if not found.membership and self._founds(self._journal.found_state):
            # Saved before the first vote: who forgets that it was among the first could be counted twice.
            found = msgspec.structs.replace(found, membership=first_state(self._first_members).membership)
            self._saves[self._journal.save_state(_stored(found))] = FOUNDING
        self._facts = StoreFacts(
            found,
            snapshot_index=recovered.snapshot_index,
            damage=None if damage is None else Damage(damage.index, damage.known_term, damage.known_index),
            own=tuple(self._own),
            # Nobody else has a say in a store that is alone, and so nobody could help it.
            doubtful=self._journal.charter.state.doubtful and not self.is_alone(self._journal.found_state),
        )
        self._own.clear()
        known = decode_record(found.membership).membership if found.membership else None
        self.notices.membership = known or Membership(())
        self._tell_levels()
        if not self._saves:
            self._set_out()

    def _set_out(self) -> None:
        assert self._facts is not None
        facts, self._facts = self._facts, None
        self.replica.recovered(facts, self._now_ms)
        for peer in sorted(self.linked):
            self.replica.connected(NodeName(peer))
        self._carry_out()

    # What happens.

    def tick(self, monotonic_ms: int) -> None:
        """To be told before anything else of that time."""
        if monotonic_ms == self._now_ms:
            return
        self._now_ms = monotonic_ms
        self._journal.note_time(monotonic_ms)
        # To a root that is alone time means little: it has no lease, and nobody to give way to.
        is_alone = self.in_office and not self.replicated and not self.linked
        if self._runs and not (is_alone and monotonic_ms < self._ticked_ms + self.tick_ms):
            self._ticked_ms = monotonic_ms
            self.replica.tick(monotonic_ms)
            self._carry_out()
        if self.lingering is not None:
            self.lingering.tick(monotonic_ms, linked=bool(self.linked))
            self._carry_out()

    def connected(self, peer: str) -> None:
        self.linked.add(peer)
        if self._runs:
            self.replica.connected(NodeName(peer))
            self._carry_out()

    def disconnected(self, peer: str, *, by_peer: bool) -> None:
        self.linked.discard(peer)
        if self._runs:
            self.replica.disconnected(NodeName(peer), by_peer=by_peer)
            self._carry_out()

    def received(self, peer: str, data: bytes) -> None:
        """Raises BadMessage."""
        message = decode(data)
        if self._runs and peer in self.linked:
            self.replica.step(NodeName(peer), message)
            self._carry_out()
            self.notices.heard(peer, message)

    def propose(self, entry: bytes, *, prompt: bool) -> LogIndex:
        """`prompt`: somebody waits for it to be received. Raises NotRoot."""
        index = self.replica.propose((entry,), prompt=prompt)
        self._carry_out()
        return index

    # What a person asks for. Each is answered once, perhaps at once.

    def change_members(self, members: Sequence[Member], on_ended: OnEnded) -> None:
        self._ask(on_ended, lambda: self.replica.change_members(members))

    def hand_over(self, successor: str | None, on_ended: OnEnded) -> None:
        """To this backup, or to the one that is furthest."""
        chosen = None if successor is None else NodeName(successor)
        self._ask(on_ended, lambda: self.replica.hand_over(chosen))

    def promote(self, dead: Sequence[str], epoch_id: str, on_ended: OnEnded) -> None:
        """By force, without these."""
        self._ask(on_ended, lambda: self.replica.promote([NodeName(name) for name in dead], epoch_id))

    def _ask(self, on_ended: OnEnded, ask: Callable[[], None]) -> None:
        if not self._runs:
            on_ended(False, "this broker is not ready")
            return
        self.notices.ask(on_ended)
        ask()
        self._carry_out()

    def take_sends(self) -> list[tuple[str, bytes]]:
        """Whole messages for peers, in order."""
        return self._spoken.take()

    def _is_over(self) -> bool:
        return self.restart is not None

    @property
    def _runs(self) -> bool:
        return self.restart is None and self.replica.role is not Role.RECOVERING

    @property
    def has_peers(self) -> bool:
        """There are other brokers, or ought to be."""
        names = self.notices.membership.names
        return bool(self.linked) or self._settings.observer or len(names) > 1 or len(self._settings.primaries) > 1

    @property
    def replicated(self) -> bool:
        """The log is kept by more than one broker."""
        return self._broker.engine.replicated

    def _tell_levels(self) -> None:
        self._broker.engine.replicated = len(self.notices.membership.names) > 1
        self._broker.lacks_copies = AlarmKind.LAST_MAN_STANDING in self.notices.alarms

    @property
    def tick_ms(self) -> int:
        """How often the replica wants to know the time."""
        return max(1, self._settings.replica.lease_ms // TICKS_PER_LEASE)

    # Office.

    @property
    def elected(self) -> Serve | None:
        """The broker may take over: it has all that was committed before it."""
        serve = self._serve
        if serve is None or self.in_office or self._applier.behind or self._applier.applied_index < serve.index:
            return None
        return serve

    @property
    def serving(self) -> bool:
        """In office, with a lease that holds, and not about to hand over."""
        return self.in_office and self.restart is None and self.replica.serving

    # What the disk did.

    def durable(self, index: LogIndex) -> None:
        # Of entries that are being cut off nothing is said any more; what takes their places is not on the disk yet.
        if not self._cutting:
            self._complete(Synced(index))

    def state_saved(self, ticket: Ticket) -> None:
        number = self._saves.pop(ticket)
        if number == FOUNDING:
            self._set_out()
        else:
            self._complete(StateSaved(number))

    def truncated(self) -> None:
        self._cutting = False
        self._complete(CutDone())

    def entries_read(self, event: EntriesRead) -> None:
        """Raises CorruptFault."""
        if not self.transfer.entries_read(event):
            self._applier.read(event)

    def _complete(self, completion: Completion) -> None:
        if self.restart is None:
            self.replica.completed(completion)
            self._carry_out()

    # Effects.

    def _carry_out(self) -> None:
        while effects := self.replica.take_effects():
            for effect in effects:
                if self._is_over() and not isinstance(effect, LAST_WORDS):
                    continue
                self._carry_out_one(effect)
        if self._wrote and not self._is_over():
            self._wrote = False
            self._journal.sync()
        if self.lingering is not None and self.lingering.over:
            self._end("it has handed over")

    def _carry_out_one(self, effect: Effect) -> None:
        match effect:
            case Write(first_index, term, payloads):
                self._wrote = True
                last_index = self._journal.extend(term, payloads)
                assert last_index == first_index + len(payloads) - 1
                if self.lingering is not None:
                    self.lingering.wrote(first_index, payloads)
                elif not self.in_office:
                    self._applier.written(first_index, term, payloads)
            case Committed(index):
                self._journal.commit(index)
                self._applier.commit_index = index
                if self.lingering is not None:
                    self.lingering.committed(index)
                elif self.in_office:
                    self._broker.committed(index)
            case Send(peer, message):
                if peer in self.linked:
                    self._spoken.say(peer, message)
            case Received(index):
                if self.in_office:
                    self._broker.received(index)
            case SaveState() | Cut() | SetAside():
                self._change_store(effect)
            case RoleChanged() | Serve() | Resigned() | PrepareHandOver():
                self._change_role(effect)
            case Fetch() | ReadPiece() | TakePiece() | InstallSnapshot():
                self.transfer.carry_out(effect)
            case Alarm() | MembersChanged() | ChangeEnded():
                self.notices.take(effect)
                self._tell_levels()
            case _:
                assert_never(effect)

    def _change_store(self, effect: SaveState | Cut | SetAside) -> None:
        journal = self._journal
        match effect:
            case SaveState(number, state):
                self._saves[journal.save_state(_stored(state))] = number
            case Cut(first_index, keep_aside):
                self._applier.cut(first_index)
                self._cutting = True
                journal.truncate(first_index, keep_aside=keep_aside)
            case SetAside(reason):
                log.warning("the store is set aside: %s", reason)
                journal.arrivals.set_aside(self._now_ms)
            case _:
                assert_never(effect)

    def _change_role(self, effect: RoleChanged | Serve | Resigned | PrepareHandOver) -> None:
        match effect:
            case RoleChanged(role, term, root):
                self.notices.role_changed(self._name, role, term, root)
                if role is not Role.ROOT:
                    self._serve = None
                if self.in_office:
                    self._lose_office(role, term)
            case Serve():
                self._serve = effect
            case Resigned(reason, successor):
                self.notices.resignation, self.notices.successor = reason, successor
                log.warning("this broker resigns as root: %s", reason)
            case PrepareHandOver():
                self.replica.completed(HandOverPrepared(encode_delivered(self._broker)))
            case _:
                assert_never(effect)

    def _lose_office(self, role: Role, term: int) -> None:
        if role is Role.BACKUP and self.notices.successor is not None:
            self.lingering = self.lingering or Lingering(self._now_ms, self._settings.replica.lease_ms)
        elif role is not Role.ROOT:
            self._end(f"another broker was elected in term {term}")

    def _end(self, reason: str) -> None:
        self.lingering = None
        self.restart = self.restart or self.notices.resignation or reason

    def store_replaced(self, reason: str) -> None:
        """By a snapshot, or by nothing. What the replica says next it says in its next life."""
        self.restart = reason


def _stored(state: HardState) -> stored.HardState:
    return stored.HardState(state.epoch, state.epoch_id, state.term, state.vote, state.membership)

"""The state that all roles share: identity, hard state, the log's end, the root, and the few ways in which these
change.

Roles make decisions and carry them out here, so that everything that must be saved, sent or undone with a decision is
done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.effects import (
    Alarm,
    AlarmKind,
    Committed,
    Cut,
    MembersChanged,
    RoleChanged,
    SetAside,
    WriteEntries,
)
from pandomq.replica.limits import TOLD_SLACK_MS
from pandomq.replica.log.tail import Tail
from pandomq.replica.members.membership import Membership
from pandomq.replica.outbox import Outbox
from pandomq.replica.ports import Chance, LogPort
from pandomq.replica.protocol.entries import EpochBegins, LogEntry, Members, decode_entry, is_own
from pandomq.replica.protocol.excerpts import Excerpts
from pandomq.replica.protocol.messages import Greeting, Header, ReplicaMessage
from pandomq.replica.protocol.position import Position
from pandomq.replica.record import Config, EpochStart, Record, encode_record
from pandomq.replica.roles.transitions import is_legal
from pandomq.replica.settings import ReplicaSettings

if TYPE_CHECKING:
    from pandomq.replica.hand_over import Succession
    from pandomq.replica.log.snapshot_in import IncomingSnapshot
    from pandomq.replica.roles.handlers import Handlers

NOBODY = Membership(())


class Core:
    def __init__(
        self,
        name: NodeName,
        settings: ReplicaSettings,
        port: LogPort,
        chance: Chance,
        excerpts: Excerpts,
        *,
        observer: bool,
    ) -> None:
        self.name = name
        self.settings = settings
        self.port = port
        self.chance = chance
        self.excerpts = excerpts
        self.observer = observer
        self.outbox = Outbox()
        self.now_ms = 0
        self.started_ms = 0
        self.life = 0
        self.state = HardState()
        self.record = Record()
        self.tail = Tail(port, LogIndex(0), Term(0), settings.tail_bytes)
        self.commit_index = LogIndex(0)
        self.handlers: Handlers
        self.new_follower: Callable[[Core, int], Handlers]
        self.new_root: Callable[[Core, Collection[NodeName], int, bytes | None], Handlers]
        self._membership = NOBODY
        self.others: list[NodeName] = []
        """The other voters, in an order that is the same on every run."""
        # Links, and how long the broker at the other end has run, by this broker's clock.
        self.links: set[NodeName] = set()
        self.born_ms: dict[NodeName, int] = {}
        self.greetings: dict[NodeName, Greeting] = {}
        """The last greeting of each linked broker: a new root knows at once which brokers are there beside the
        voters."""
        self.cluster_ahead_ms: int | None = None
        """How much the cluster's time is ahead of this broker's clock, if known; greetings carry it to others."""
        self.told_ahead_ms: int | None = None
        """How much the cluster's time is ahead of this broker's clock according to other brokers' greetings."""
        self._told_ms = 0
        """The time at which a greeting last contained it, by this broker's clock."""
        # The root of this term, and the promise to vote for no other broker for a while.
        self.root: NodeName | None = None
        self.promised_to: NodeName | None = None
        self.promise_until_ms = 0
        self.succession: Succession | None = None
        """The hand-over in which this broker has stepped down in favour of another one, if it has known no root
        since."""
        # The log is equal to the root's up to here, as confirmed in this term.
        self.matched_index = LogIndex(0)
        self.cutting: LogIndex | None = None
        """The disk is cutting the log here."""
        self.emptying = False
        self.incoming: IncomingSnapshot | None = None
        self.damaged_from: LogIndex | None = None
        """The disk must cut the log here before anything can be written."""
        self._config_unsaved: LogIndex | None = None
        self._alarms: set[AlarmKind] = set()
        self.split_from: set[NodeName] = set()
        """Peers that are in another forced promotion with our epoch number."""

    # The role, and the time.

    @property
    def term(self) -> Term:
        return Term(self.state.term)

    @property
    def end(self) -> Position:
        """The end of the log in memory."""
        return self.end_at(self.tail.last_index, self.tail.last_term)

    def end_at(self, index: LogIndex, term: Term) -> Position:
        start = self.record.epoch_at(index)
        return Position(0 if start is None else start.epoch, term, index)

    def epoch_id_at(self, index: LogIndex) -> str:
        """The id of the epoch in which this entry was written."""
        start = self.record.epoch_at(index)
        return "" if start is None else start.epoch_id

    def is_overtaken(self) -> bool:
        """A newer epoch has begun, and this log has no entry of it yet: entries that were committed here may not be
        part of it."""
        return self.end.epoch < self.state.epoch

    def begin_life(self) -> None:
        """Tells its root that its earlier acknowledgements are void."""
        self.life = 1 + self.chance.randrange(2**62)

    @property
    def header(self) -> tuple[int, str, Term]:
        """The fields with which every message begins."""
        return self.state.epoch, self.state.epoch_id, self.term

    @property
    def membership(self) -> Membership:
        return self._membership

    @membership.setter
    def membership(self, membership: Membership) -> None:
        self._membership = membership
        self.others = sorted(membership.names - {self.name})
        self.tail.wanted = bool(self.others) and not self.observer

    def may_be_needed(self) -> bool:
        """Among the voters, or among those that an uncommitted change removes: until the change is committed this
        broker's log may be needed, and also its candidacy if no other broker has the log."""
        return self.is_voter() or any(self.name in config.membership.names for config in self.record.configs)

    def is_voter(self) -> bool:
        return self.name in self.membership.names

    def age_of(self, message: Header) -> int:
        """-1 if the message is of an older term than ours, 0 if of the same, 1 if of a newer one."""
        theirs, ours = (message.epoch, message.term), (self.state.epoch, self.state.term)
        return (theirs > ours) - (theirs < ours)

    def send(self, peer: NodeName, message: ReplicaMessage) -> None:
        self.outbox.send(peer, message)

    # The hard state.

    def save(self, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, membership=encode_record(self.record), **changes)
        self.outbox.save(self.state)

    def note(self, record: Record) -> None:
        """Saves a changed record."""
        before, self.record = self.membership, record
        self.membership = record.membership or NOBODY
        self.save()
        if self.membership != before:
            self.outbox.put(MembersChanged(self.membership))

    def adopt(self, message: Header) -> None:
        """Takes over a newer term. The root of the old one is no longer root."""
        self.save(epoch=message.epoch, epoch_id=message.epoch_id, term=message.term, vote=None)
        self.root = None
        self.forget_match()

    def forget_match(self) -> None:
        """A new term begins: this log is known to equal its root's only as far as both are committed; in a new epoch
        not even that."""
        self.matched_index = LogIndex(0) if self.is_overtaken() else self.commit_index

    def state_saved(self, number: int) -> None:
        self.outbox.saved(number)
        if not self.outbox.must_wait():
            self._config_unsaved = None

    # Roles.

    def become(self, handlers: Handlers) -> None:
        assert is_legal(self.handlers.role, handlers.role), (self.handlers.role, handlers.role)
        self.handlers.leave()
        self.handlers = handlers
        self.tell_role()
        handlers.enter()

    def become_follower(self, *, rest_ms: int = 0) -> None:
        """Backup, learner or observer, as the record has it."""
        self.become(self.new_follower(self, rest_ms))

    def elected(self, granted: Collection[NodeName], stood_ms: int, payload: bytes | None) -> None:
        self.root = self.name
        self.become(self.new_root(self, granted, stood_ms, payload))
        self._root_known()

    def tell_role(self) -> None:
        self.outbox.put(RoleChanged(self.handlers.role, self.term, self.root))

    # The root.

    def follow(self, root: NodeName) -> None:
        """Notes this term's root."""
        if self.root != root:
            assert self.root is None, f"{self.root} and {root} are both root in term {self.term}"
            self.root = root
            self.tell_role()
            self._root_known()
        self.promise(root)

    def _root_known(self) -> None:
        if self.succession is not None and self.root is not None:
            self.succession.elected(self.root)

    def promise(self, to: NodeName) -> None:
        """Promises to vote for no other broker for a while, so that the root that this broker follows can rely on its
        lease."""
        self.promised_to = to
        self.promise_until_ms = self.now_ms + self.settings.promise_ms

    def release_promise(self) -> None:
        self.promise_until_ms = self.now_ms
        self.promised_to = None

    # The log.

    def write(self, entries: Sequence[LogEntry]) -> None:
        """Appends entries to the log, in memory at once and on disk soon."""
        assert entries and not self.emptying and self.damaged_from is None
        index = self.tail.last_index
        first_index = index + 1
        record = self.record
        for entry in entries:
            index = LogIndex(index + 1)
            self.tail.append(entry)
            if is_own(entry.payload):
                record = self.with_own(record, index, entry)
        if record is not self.record:
            self.note(record)
        if len(entries) == 1:
            # A root's batch.
            self.outbox.put(WriteEntries(LogIndex(first_index), entries[0].term, (entries[0].payload,)))
            return
        for term, run in groupby(entries, lambda entry: entry.term):
            payloads = tuple(entry.payload for entry in run)
            self.outbox.put(WriteEntries(LogIndex(first_index), term, payloads))
            first_index += len(payloads)

    def with_own(self, record: Record, index: LogIndex, entry: LogEntry) -> Record:
        own = decode_entry(entry.payload)
        if not isinstance(own, EpochBegins | Members):
            return record
        changed = record
        # A snapshot may have brought newer members, which are committed, before the log gets there.
        if isinstance(own, EpochBegins) and index > record.epochs[-1].index:
            changed = changed.with_epoch(EpochStart(index, own.epoch, own.epoch_id))
        if not record.configs or index > record.configs[-1].index:
            changed = changed.with_config(Config(index, entry.term, own.membership))
        if changed is not record and self._config_unsaved is None:
            self._config_unsaved = index
        return changed

    @property
    def synced_index(self) -> LogIndex:
        """The index that this broker may report as synced: an entry that changes the members counts only when the
        record of it is on disk as well, since the broker looks for it there after a crash."""
        if self._config_unsaved is None:
            return self.tail.synced_index
        return LogIndex(min(self.tail.synced_index, self._config_unsaved - 1))

    def synced(self, index: LogIndex) -> None:
        if self.emptying:
            return
        if self.cutting is not None:
            # The disk may still report entries that were cut off, and whose indexes new entries have now.
            index = LogIndex(min(index, self.cutting - 1))
        self.tail.synced(index)
        self.forget_floor()

    def forget_floor(self) -> None:
        """Removes the floor for votes once the log is again as long as it was before it was damaged."""
        floor = self.record.floor
        if floor is not None and self.end_at(self.synced_index, self._synced_term()) >= floor:
            self.note(msgspec.structs.replace(self.record, floor=None))

    def _synced_term(self) -> Term:
        term = self.tail.term_at(self.synced_index)
        assert term is not None
        return term

    def cut(self, first_index: LogIndex, *, keep_aside: bool) -> None:
        assert first_index > self.commit_index, "what is committed stays"
        assert self.cutting is None
        self.cutting = first_index
        self.tail.cut(first_index)
        self.matched_index = LogIndex(min(self.matched_index, first_index - 1))
        self.outbox.put(Cut(first_index, keep_aside))
        record = self.record.cut(first_index)
        if record != self.record:
            self.note(record)

    def cut_damage(self) -> None:
        """Cuts the damaged part of the log; its known end becomes the floor for votes."""
        assert self.damaged_from is not None and self.cutting is None
        self.cutting = self.damaged_from
        self.outbox.put(Cut(self.damaged_from, keep_aside=True))

    def cut_done(self) -> None:
        self.cutting = None
        if self.damaged_from is not None:
            self.damaged_from = None
            text = "the damaged part of the log was cut off and is kept in a side file"
            self.alarm(AlarmKind.DAMAGED_LOG, raised=False, text=text)

    def set_aside(self, reason: str) -> None:
        """To be called when another epoch has replaced entries that this broker took for committed. The whole store is
        set aside, and the broker restarts with an empty log."""
        self.emptying = True
        self.outbox.put(SetAside(reason, encode_record(self._emptied_record())))

    def _emptied_record(self) -> Record:
        """Votes are not lost with the log, and in an epoch that has overtaken the log this broker has acknowledged
        nothing yet: so it is in no more doubt than before, and may help to elect the new epoch's root. In the epoch of
        the log itself other brokers may rely on the removed entries."""
        return Record(joining=self.record.joining or not self.is_overtaken(), claim=self.record.claim)

    def store_emptied(self) -> None:
        self.emptying = False
        self.cutting = None
        self.damaged_from = None
        record = self._emptied_record()
        self.commit_index = self.matched_index = LogIndex(0)
        self.tail.reset(LogIndex(0), Term(0))
        self.begin_life()
        self.note(record)

    def commit(self, index: LogIndex) -> None:
        if index <= self.commit_index:
            return
        assert index <= self.tail.last_index, "only what is in the log is committed"
        self.commit_index = index
        self.record = self.record.committed(index)
        self.outbox.put(Committed(index))

    # The cluster's time.

    def told_time(self, cluster_ms: int) -> None:
        """Another broker reports this time of the cluster. The newest greeting counts, unless it is far behind an
        earlier one: then its sender knows only an old entry, or the greeting was delayed for hours because brokers were
        suspended."""
        ahead_ms, before_ms = cluster_ms - self.now_ms, self.told_ahead_ms
        drift_ms = (self.now_ms - self._told_ms) * self.settings.drift_percent // 100
        if before_ms is None or ahead_ms >= before_ms - drift_ms - TOLD_SLACK_MS:
            self.told_ahead_ms, self._told_ms = ahead_ms, self.now_ms

    # Alarms for the operator.

    def alarm(self, kind: AlarmKind, *, raised: bool, text: str) -> None:
        """Reported when it changes."""
        if raised != (kind in self._alarms):
            self._alarms ^= {kind}
            self.outbox.put(Alarm(kind, raised, text))

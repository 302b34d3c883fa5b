"""The role in which a broker begins, depending on its store.

nothing, or in doubt           a learner, until a root admits it
a damaged log                  votes by the known end of its earlier log, and is never a candidate (D12)
a snapshot that was arriving   is there or not: the log shows it, and so whose members are in force
"""

from __future__ import annotations

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.core import NOBODY, Core
from pandomq.replica.effects import AlarmKind, MembersChanged
from pandomq.replica.log.snapshot_in import arrived
from pandomq.replica.protocol.position import Position
from pandomq.replica.record import Record, decode_record
from pandomq.replica.store_facts import StoreFacts


def begin(core: Core, facts: StoreFacts, now_ms: int) -> None:
    core.now_ms = core.started_ms = now_ms
    core.begin_life()
    last_index, last_term = core.port.last_index, core.port.last_term
    core.tail.reset(last_index, last_term)
    record = read_record(facts)
    record = settle_snapshot(record, LogIndex(facts.snapshot_index))
    if facts.damage is not None:
        damage = facts.damage
        core.damaged_from = LogIndex(damage.first_index)
        record = with_floor(record, Term(damage.known_term), LogIndex(damage.known_index))
        # The root will send lost changes of members and epochs again, if they still hold; until the log is as long as
        # it was this broker is no candidate, so it does not need them.
        record = record.cut(core.damaged_from)
        core.alarm(AlarmKind.DAMAGED_LOG, raised=True, text=f"the log is damaged from entry {damage.first_index} on")
    record = drop_unwritten(core, record)
    core.state, core.record = facts.state, record
    note_written(core, facts)
    core.membership = core.record.membership or NOBODY
    # An entry of a term proves that the term began, even if the record of it is not on disk; the same holds for an
    # epoch.
    newest = core.record.epochs[-1]
    if newest.epoch > facts.state.epoch:
        core.save(epoch=newest.epoch, epoch_id=newest.epoch_id, term=last_term, vote=None)
    elif last_term > facts.state.term and core.end.epoch >= facts.state.epoch:
        core.save(term=last_term, vote=None)
    core.save()
    core.commit_index = LogIndex(facts.snapshot_index)
    core.forget_match()
    if core.membership is not NOBODY:
        core.outbox.put(MembersChanged(core.membership))
    remember_promises(core)
    core.become_follower()


def read_record(facts: StoreFacts) -> Record:
    """An empty store is in doubt: an earlier store of this broker may have been lost (R21)."""
    if is_empty(facts):
        return Record(joining=True)
    record = decode_record(facts.state.membership)
    return msgspec.structs.replace(record, joining=True) if facts.doubtful else record


def is_empty(facts: StoreFacts) -> bool:
    return not facts.state.membership


def settle_snapshot(record: Record, snapshot_index: LogIndex) -> Record:
    """The broker stopped while a snapshot replaced its log."""
    if record.arriving is None:
        return record
    if snapshot_index >= record.arriving.index:
        return arrived(record)
    return msgspec.structs.replace(record, arriving=None)


def with_floor(record: Record, term: Term, index: LogIndex) -> Record:
    start = record.epoch_at(index)
    floor = Position(0 if start is None else start.epoch, term, index)
    # It may have been damaged before, and not be repaired yet.
    return msgspec.structs.replace(record, floor=max(floor, record.floor) if record.floor is not None else floor)


def drop_unwritten(core: Core, record: Record) -> Record:
    """Members are saved before their entry is written. If the entry is not on disk no other broker has received it."""
    for place, config in enumerate(record.configs[1:], start=1):
        term = core.tail.term_at(config.index)
        if config.index > core.tail.last_index or term not in (None, config.term):
            return record.cut(record.configs[place].index)
    return record


def note_written(core: Core, facts: StoreFacts) -> None:
    """Everything in the log is in force, even if the record of it was lost in a crash."""
    for index, entry in facts.own:
        if core.damaged_from is None or index < core.damaged_from:
            core.record = core.with_own(core.record, LogIndex(index), entry)


def remember_promises(core: Core) -> None:
    """Before it stopped it may have promised its vote to a root that still relies on it."""
    names: frozenset[NodeName] = core.membership.names
    # A broker whose store was set aside votes, too, and does not know of which root's voters it is one.
    has_others = bool(names - {core.name}) or not (names or core.record.joining)
    core.promise_until_ms = core.now_ms + (core.settings.promise_ms if has_others else 0)

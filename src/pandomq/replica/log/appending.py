"""How a broker appends entries from its root: only where they continue its own log, and without changes.

If the entry before the new ones is in the log, both logs are equal up to it (Raft's log matching). If it is not, the
reply contains the index to try next. An entry that conflicts with the root's was never committed, and is cut.
"""

from __future__ import annotations

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.core import Core
from pandomq.replica.protocol.entries import EpochBegins, LogEntry, decode_entry, is_own
from pandomq.replica.protocol.excerpts import excerpt_of, is_for
from pandomq.replica.protocol.messages import Append, Appended, AppendRejected


def receive(core: Core, root: NodeName, append: Append) -> None:
    if core.emptying or not is_for(core, excerpts=append.excerpts):
        return
    if is_installing(core):
        if append.prompt:
            acknowledge(core, append.round)
        return
    if not continues(core, append):
        if is_past_comparing(core, append):
            core.set_aside(f"this log diverges from epoch {append.epoch} in a part that was already deleted")
        else:
            refuse(core, root, append)
        return
    conflict, fresh = compare(core, append)
    if (conflict is not None or fresh) and not make_way(core, append, conflict):
        return
    if fresh:
        # A root that does not know yet that this is a secondary has sent whole entries.
        core.write([excerpt_of(core.excerpts, entry) for entry in fresh] if core.observer else fresh)
    reached = LogIndex(append.prev_index + len(append.entries))
    core.matched_index = max(core.matched_index, reached)
    core.commit(commit_limit(append, reached))
    if append.prompt or (append.entries and core.synced_index >= reached):
        acknowledge(core, append.round)


def is_installing(core: Core) -> bool:
    """A snapshot is replacing the log; the root sends entries again afterwards."""
    return core.incoming is not None and core.incoming.installing


def commit_limit(append: Append, reached: LogIndex) -> LogIndex:
    """Entries of this log behind those of an append may be another root's, whatever this root has committed there."""
    return min(append.commit_index, reached)


def continues(core: Core, append: Append) -> bool:
    """Whether the preceding entry is in this log: with the same term, and of the same epoch, since two sides of a split
    may have used a term's number twice."""
    index = append.prev_index
    if index == 0:
        return True
    start = core.record.epoch_at(index)
    if start is None or start.epoch_id != append.prev_epoch_id:
        return False
    term = core.tail.term_at(index)
    if term is None:
        # Reclaimed, so committed; and an entry that is committed in an epoch is in every log of that epoch.
        return index <= core.commit_index and not core.is_overtaken()
    return term == append.prev_term


def is_past_comparing(core: Core, append: Append) -> bool:
    """A newer epoch has no entry in common with the rest of this log: its snapshot does not belong to the new epoch, or
    that cannot be determined any more."""
    is_reclaimed = append.prev_index <= core.commit_index and core.tail.term_at(append.prev_index) is None
    return is_reclaimed and core.is_overtaken()


def compare(core: Core, append: Append) -> tuple[LogIndex | None, tuple[LogEntry, ...]]:
    """The first entry of this log that conflicts with the root's, if any, and the entries that are new here."""
    index = append.prev_index
    epoch_id = append.prev_epoch_id
    for place, entry in enumerate(append.entries):
        index = LogIndex(index + 1)
        if index > core.tail.last_index:
            return None, append.entries[place:]
        epoch_id = epoch_of(entry, epoch_id)
        if not is_same(core, index, entry.term, epoch_id):
            return index, append.entries[place:]
    return None, ()


def epoch_of(entry: LogEntry, epoch_id: str) -> str:
    """The epoch of an entry, given that of the one before."""
    own = decode_entry(entry.payload) if is_own(entry.payload) else None
    return own.epoch_id if isinstance(own, EpochBegins) else epoch_id


def is_same(core: Core, index: LogIndex, term: Term, epoch_id: str) -> bool:
    start = core.record.epoch_at(index)
    if start is None or start.epoch_id != epoch_id:
        return False
    own_term = core.tail.term_at(index)
    return own_term == term if own_term is not None else index <= core.commit_index


def make_way(core: Core, append: Append, conflict: LogIndex | None) -> bool:
    """Cuts what must be removed before the new entries can be written; False if they have to be sent again after
    that."""
    if core.damaged_from is not None:
        if core.cutting is None:
            core.cut_damage()
        return False
    if conflict is None:
        return True
    if core.cutting is not None:
        return False
    overtaken = core.is_overtaken()
    if conflict <= core.commit_index:
        # Within an epoch this is impossible: it would mean that a committed entry is lost. A forced promotion may do
        # it.
        assert overtaken, f"entry {conflict} is committed here, and {append.epoch}/{append.term} has another"
        core.set_aside(
            f"a forced promotion created epoch {append.epoch} without entry {conflict}, which is committed on this "
            "broker"
        )
        return False
    core.cut(conflict, keep_aside=overtaken)
    return True


def refuse(core: Core, root: NodeName, append: Append) -> None:
    """Replies with the index where the two logs may agree: not after this log's end, nor where its terms are newer than
    the root's."""
    index = LogIndex(min(append.prev_index - 1, core.tail.last_index))
    hint = core.tail.last_not_after(index, append.prev_term)
    term = core.tail.term_at(hint) or Term(0)
    message = AppendRejected(*core.header, append.round, core.life, core.record.joining, append.prev_index, hint, term)
    core.send(root, message)


def acknowledge(core: Core, round_: int = 0) -> None:
    """Acknowledges only what the disk has synced: the root commits on this basis."""
    if core.root is None:
        return
    synced_index = LogIndex(min(core.synced_index, core.matched_index))
    message = Appended(*core.header, round_, core.life, core.record.joining, core.matched_index, synced_index)
    core.send(core.root, message)

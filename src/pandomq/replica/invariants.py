"""The invariants of a replica between two inputs; one fact per assertion."""

from __future__ import annotations

from functools import lru_cache

from pandomq.replica.core import Core
from pandomq.replica.limits import MEMBERSHIPS_CACHED
from pandomq.replica.members import votes
from pandomq.replica.record import decode_record
from pandomq.replica.roles.root import Root
from pandomq.replica.roles.transitions import Role

# Checked after each step of a simulated broker, and rarely changed.
_joining = lru_cache(maxsize=MEMBERSHIPS_CACHED)(lambda record: decode_record(record).joining)


def check(core: Core) -> None:
    if core.handlers.role is Role.RECOVERING:
        return
    tail, record = core.tail, core.record
    assert core.commit_index <= tail.last_index, "only what is in the log is committed"
    assert tail.synced_index <= tail.last_index, "only what is in the log is synced"
    assert core.matched_index <= tail.last_index, "only what is in the log is the root's"
    assert tail.first_index <= tail.last_index + 1
    assert [config.index for config in record.configs] == sorted({config.index for config in record.configs}), record
    assert [start.index for start in record.epochs] == sorted({start.index for start in record.epochs})
    assert core.end.epoch <= core.state.epoch, "an entry of an epoch is proof of it"
    if core.end.epoch == core.state.epoch:
        assert tail.last_term <= core.state.term, "an entry of a term is proof of it"
    if core.state.membership:
        assert _joining(core.state.membership) == record.joining
    role = core.handlers.role
    if role in (Role.CANDIDATE, Role.ROOT):
        assert votes.may_vote(core), "who is in doubt does not stand"
        assert core.damaged_from is None, "who has a damaged log does not stand"
    if isinstance(core.handlers, Root):
        check_root(core, core.handlers)


def check_root(core: Core, root: Root) -> None:
    assert core.root == core.name
    assert core.state.vote == core.name, "a root has voted for itself"
    assert core.cutting is None, "a root never cuts its own log"
    assert root.ready or core.commit_index <= core.tail.last_index
    for peer in root.peers.values():
        assert peer.synced_index <= peer.received_index <= core.tail.last_index, (peer.name, "has what nobody wrote")
        assert peer.received_index < peer.next_index, (peer.name, "is not sent what it has")

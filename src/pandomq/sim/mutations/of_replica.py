"""Bugs of election and replication, as they were made elsewhere: each leaves out one of the rules that make it safe."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from pandomq.ids import LogIndex, NodeName
from pandomq.journal.effects import Ticket
from pandomq.journal.hard_state import HardState
from pandomq.journal.journal import Journal
from pandomq.replica import appending, commitment, dispatch, lease, quorum, snapshot_in, startup, votes
from pandomq.replica.core import Core
from pandomq.replica.entries import LogEntry
from pandomq.replica.hand_over import HandOver
from pandomq.replica.hard_state import StoreFacts
from pandomq.replica.membership import Membership
from pandomq.replica.messages import Append, Appended, Message, SnapshotPiece
from pandomq.replica.outbox import Outbox
from pandomq.replica.progress import Progress
from pandomq.replica.record import Record
from pandomq.replica.roles import root as root_module
from pandomq.sim.mutations.mutation import Mutation, Patch

NODES: Final = 0
"""Of any number."""


def _always(owner: Any, name: str, value: Any) -> Callable[[Patch], None]:
    """A rule whose answer is the same for everybody."""
    return lambda patch: patch.set(owner, name, lambda *arguments, **named: value)


def _forget_vote(patch: Patch) -> None:
    save_state = Journal.save_state

    def forgetful(journal: Journal, hard_state: HardState) -> Ticket:
        return save_state(journal, msgspec.structs.replace(hard_state, vote=None))

    patch.set(Journal, "save_state", forgetful)


def _forget_term(patch: Patch) -> None:
    save_state = Journal.save_state

    def forgetful(journal: Journal, hard_state: HardState) -> Ticket:
        old = journal.charter.state.hard
        return save_state(journal, msgspec.structs.replace(hard_state, term=old.term, vote=old.vote))

    patch.set(Journal, "save_state", forgetful)


def _ack_unsynced(patch: Patch) -> None:
    patch.set(Core, "synced_index", property(lambda core: core.tail.last_index))


def _count_received(patch: Patch) -> None:
    acknowledged = Progress.acknowledged

    def hasty(peer: Progress, received_index: LogIndex, synced_index: LogIndex, round_: int) -> None:
        acknowledged(peer, received_index, received_index, round_)

    patch.set(Progress, "acknowledged", hasty)


def _vote_twice(patch: Patch) -> None:
    def free(core: Core, candidate: NodeName, ask: Any) -> bool:
        return bool(ask.candidacy > core.term if ask.pre else ask.candidacy == core.term)

    patch.set(votes, "is_free", free)


def _old_set_only(patch: Patch) -> None:
    def elected(membership: Membership, granted: Collection[NodeName]) -> bool:
        names = membership.sets[0]
        return sum(name in granted for name in names) >= quorum.elect_need(len(names))

    def enough(core: Core, peers: Any, values: Any) -> int:
        names = core.membership.sets[0]
        need = commitment.copies_wanted(core, peers, names)
        return quorum.reached_by((values.get(name, -1) for name in names), need)

    patch.set(Membership, "has_elected", elected)
    patch.set(commitment, "enough_have", enough)


def _keep_conflict(patch: Patch) -> None:
    def blind(core: Core, append: Append) -> tuple[LogIndex | None, tuple[LogEntry, ...]]:
        known = max(0, core.tail.last_index - append.prev_index)
        return None, append.entries[known:]

    patch.set(appending, "compare", blind)


def _skip_match(patch: Patch) -> None:
    def believing(core: Core, append: Append) -> bool:
        return append.prev_index <= core.tail.last_index

    patch.set(appending, "continues", believing)


def _commit_all(patch: Patch) -> None:
    receive = appending.receive

    def hasty(core: Core, root: NodeName, append: Append) -> None:
        receive(core, root, append)
        core.commit(LogIndex(min(append.commit_index, core.tail.last_index)))

    patch.set(appending, "receive", hasty)


def _forget_damage(patch: Patch) -> None:
    def unchanged(record: Record, term: int, index: int) -> Record:
        return record

    patch.set(startup, "with_floor", unchanged)


def _trust_empty(patch: Patch) -> None:
    """An empty store takes itself for one that has forgotten nothing."""

    def trusting(core: Core) -> bool:
        return not core.observer and not core.emptying

    patch.set(votes, "may_vote", trusting)


def _trust_backup(patch: Patch) -> None:
    read_record = startup.read_record

    def trusting(facts: StoreFacts) -> Record:
        return read_record(msgspec.structs.replace(facts, doubtful=False))

    patch.set(startup, "read_record", trusting)


def _install_stale(patch: Patch) -> None:
    """What the log has come to hold meanwhile is not looked at once the last piece is there."""
    piece_taken, has_it_all = snapshot_in.piece_taken, snapshot_in.has_it_all

    def blind(core: Core, source: str, number: int, *, lacks: bool = False) -> None:
        setattr(snapshot_in, "has_it_all", lambda *arguments: False)  # noqa: B010
        try:
            piece_taken(core, source, number, lacks=lacks)
        finally:
            setattr(snapshot_in, "has_it_all", has_it_all)  # noqa: B010

    patch.set(snapshot_in, "piece_taken", blind)


def _hand_over_early(patch: Patch) -> None:
    def hasty(hand_over: HandOver) -> None:
        if not hand_over._preparing and hand_over._root.peers.get(hand_over.successor) is not None:
            hand_over._preparing = True
            hand_over.prepared(None)

    patch.set(HandOver, "advance", hasty)


def _heed_old_acks(patch: Patch) -> None:
    is_stale = dispatch.is_stale

    def lenient(message: Message, age: int) -> bool:
        return is_stale(message, age) and not isinstance(message, Appended)

    patch.set(dispatch, "is_stale", lenient)


def _confirm_at_the_end(patch: Patch) -> None:
    resign = root_module.Root.resign

    def hasty(root: root_module.Root, reason: str, *, successor: NodeName | None = None) -> None:
        root.core.commit(root.core.tail.last_index)
        resign(root, reason, successor=successor)

    patch.set(root_module.Root, "resign", hasty)


def _install_early(patch: Patch) -> None:
    receive = snapshot_in.receive

    def hasty(core: Core, root: NodeName, piece: SnapshotPiece) -> None:
        receive(core, root, msgspec.structs.replace(piece, last=piece.last or piece.number >= 2))

    patch.set(snapshot_in, "receive", hasty)


def _count_learners(patch: Patch) -> None:
    patch.set(lease, "counts", lambda peer: True)


def _in_logs(name: str, about: str, plant: Callable[[Patch], None], nodes: int = NODES) -> Mutation:
    return Mutation(name, about, plant, nodes, log=True)


MUTATIONS: Final = (
    _in_logs(
        "state-spoken-early",
        "messages go out before term and vote are saved",
        _always(Outbox, "must_wait", False),
        3,
    ),
    _in_logs("vote-not-persisted", "a vote is forgotten in a crash", _forget_vote, 5),
    _in_logs("term-not-persisted", "terms and votes are forgotten in a crash", _forget_term, 3),
    _in_logs("vote-twice", "a voter votes for two in one term", _vote_twice),
    _in_logs("ack-before-sync", "a backup acknowledges what is only in its memory", _ack_unsynced),
    _in_logs("received-is-synced", "a root takes what was received for synced", _count_received),
    _in_logs(
        "old-term-by-count",
        "entries of older terms are committed by counting",
        _always(commitment, "is_of_this_term", True),
        5,
    ),
    _in_logs("any-log-elected", "voters do not compare logs", _always(votes, "is_up_to_date", True)),
    _in_logs(
        "elected-by-half",
        "half of the votes elect",
        lambda patch: patch.set(quorum, "elect_need", lambda count: (count + 1) // 2),
        4,
    ),
    _in_logs("commit-alone", "the root's own copy is enough", _always(quorum, "commit_need", 1)),
    _in_logs(
        "commit-below-half",
        "one copy less than half commits",
        lambda patch: patch.set(quorum, "commit_need", lambda count, copies: max(1, count // 2 - 1)),
        5,
    ),
    _in_logs("old-set-only", "during a change of members the new set is not asked", _old_set_only, 5),
    _in_logs("conflict-kept", "entries of a deposed root stay in the log", _keep_conflict),
    _in_logs("match-not-checked", "entries are taken whatever comes before them", _skip_match, 3),
    _in_logs("commit-ahead", "a backup commits what the root never sent it", _commit_all),
    _in_logs(
        "promise-ignored", "voters help others into office while a lease runs", _always(votes, "is_open", True), 3
    ),
    _in_logs(
        "promise-forgotten", "a restart forgets the promise to a root", _always(startup, "remember_promises", None), 3
    ),
    _in_logs("lease-ignored", "a root stays without hearing from anybody", _always(lease, "holds", True)),
    _in_logs(
        "lease-ignores-disk", "a root stays although its disk does not answer", _always(votes, "disk_stalls", False), 3
    ),
    _in_logs("damage-forgotten", "a damaged log votes by what is left of it", _forget_damage, 3),
    _in_logs("empty-store-votes", "a broker that lost its disk votes at once", _trust_empty, 3),
    _in_logs("backup-votes", "a broker whose store was put back from a backup votes at once", _trust_backup, 3),
    _in_logs("learners-count", "copies of brokers in doubt count", _count_learners, 5),
    _in_logs(
        "admitted-at-once",
        "a learner is admitted before half have its welcome",
        _always(root_module, "may_admit", True),
        5,
    ),
    _in_logs("hand-over-early", "a root hands over before its log is whole elsewhere", _hand_over_early, 3),
    _in_logs(
        "epochs-unheeded",
        "whoever stands in an epoch need not have its first entry",
        _always(votes, "is_of_epoch", True),
        3,
    ),
    _in_logs("ack-without-term", "what was acknowledged in an older term counts", _heed_old_acks, 3),
    _in_logs("stale-root-confirms", "a root that gives up takes all it has for committed", _confirm_at_the_end, 3),
    _in_logs(
        "slowest-waited-for",
        "a commit needs a copy of everybody",
        lambda patch: patch.set(quorum, "commit_need", lambda count, copies: count),
        3,
    ),
    _in_logs("snapshot-stale", "a snapshot replaces a log that has outrun it", _install_stale, 3),
    _in_logs("snapshot-unfinished", "a snapshot counts as whole before its last piece", _install_early, 3),
)

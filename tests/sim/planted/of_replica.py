"""Bugs of election and replication that other implementations had: each leaves out one of the rules that make it
safe."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import LogIndex, NodeName
from pandomq.journal.effects import Ticket
from pandomq.journal.journal import Journal
from pandomq.replica import dispatch, lease, startup
from pandomq.replica.core import Core
from pandomq.replica.hand_over import HandOver
from pandomq.replica.log import appending, commitment, snapshot_in
from pandomq.replica.log.progress import Progress
from pandomq.replica.members import quorum, votes
from pandomq.replica.members.membership import Membership
from pandomq.replica.outbox import Outbox
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.protocol.messages import Append, Appended, ReplicaMessage, SnapshotPiece
from pandomq.replica.record import Record
from pandomq.replica.roles import root as root_module
from pandomq.replica.store_facts import StoreFacts
from tests.sim.planted.planted_bug import Patch, PlantedBug

NODES: Final = 0
"""Any number of brokers."""


def _always(owner: Any, name: str, value: Any) -> Callable[[Patch], None]:
    """Replaces a rule by a constant answer."""
    return lambda patch: patch.set(owner, name, lambda *arguments, **named: value)


def _forget_vote(patch: Patch) -> None:
    save_state = Journal.save_state

    def forgetful(journal: Journal, hard_state: HardState) -> Ticket:
        return save_state(journal, msgspec.structs.replace(hard_state, vote=None))

    patch.set(Journal, "save_state", forgetful)


def _forget_term(patch: Patch) -> None:
    save_state = Journal.save_state

    def forgetful(journal: Journal, hard_state: HardState) -> Ticket:
        old = journal.store_identity.state.hard
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
    """A machine with an empty store assumes that it has lost nothing."""

    def trusting(core: Core) -> bool:
        return not core.observer and not core.emptying

    patch.set(votes, "may_vote", trusting)


def _trust_backup(patch: Patch) -> None:
    read_record = startup.read_record

    def trusting(facts: StoreFacts) -> Record:
        return read_record(msgspec.structs.replace(facts, doubtful=False))

    patch.set(startup, "read_record", trusting)


def _install_stale(patch: Patch) -> None:
    """When the last piece has arrived, entries that the log has received meanwhile are ignored."""
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

    def lenient(message: ReplicaMessage, age: int) -> bool:
        return is_stale(message, age) and not isinstance(message, Appended)

    patch.set(dispatch, "is_stale", lenient)


def _confirm_at_the_end(patch: Patch) -> None:
    step_down = root_module.Root.step_down

    def hasty(root: root_module.Root, reason: str, *, successor: NodeName | None = None) -> None:
        root.core.commit(root.core.tail.last_index)
        step_down(root, reason, successor=successor)

    patch.set(root_module.Root, "step_down", hasty)


def _install_early(patch: Patch) -> None:
    receive = snapshot_in.receive

    def hasty(core: Core, root: NodeName, piece: SnapshotPiece) -> None:
        receive(core, root, msgspec.structs.replace(piece, last=piece.last or piece.number >= 2))

    patch.set(snapshot_in, "receive", hasty)


def _count_learners(patch: Patch) -> None:
    patch.set(lease, "counts", lambda peer: True)


def _in_logs(name: str, about: str, plant: Callable[[Patch], None], nodes: int = NODES) -> PlantedBug:
    return PlantedBug(name, about, plant, nodes, log=True)


PLANTED_BUGS: Final = (
    _in_logs(
        "state-spoken-early",
        "A broker sends messages before its term and vote are saved.",
        _always(Outbox, "must_wait", False),
        3,
    ),
    _in_logs("vote-not-persisted", "A crash makes a broker forget its vote.", _forget_vote, 5),
    _in_logs("term-not-persisted", "A crash makes a broker forget its term and its vote.", _forget_term, 3),
    _in_logs("vote-twice", "A voter votes for two candidates in one term.", _vote_twice),
    _in_logs("ack-before-sync", "A backup acknowledges entries that are only in its memory.", _ack_unsynced),
    _in_logs("received-is-synced", "A root counts received entries as synced.", _count_received),
    _in_logs(
        "old-term-by-count",
        "A root commits entries of older terms by counting copies.",
        _always(commitment, "is_of_this_term", True),
        5,
    ),
    _in_logs("any-log-elected", "Voters do not compare logs.", _always(votes, "is_up_to_date", True)),
    _in_logs(
        "elected-by-half",
        "Half of the votes elect a root.",
        lambda patch: patch.set(quorum, "elect_need", lambda count: (count + 1) // 2),
        4,
    ),
    _in_logs("commit-alone", "The root's own copy suffices for a commit.", _always(quorum, "commit_need", 1)),
    _in_logs(
        "commit-below-half",
        "One copy less than half suffices for a commit.",
        lambda patch: patch.set(quorum, "commit_need", lambda count, copies: max(1, count // 2 - 1)),
        5,
    ),
    _in_logs("old-set-only", "During a change of members the root does not ask the new set.", _old_set_only, 5),
    _in_logs("conflict-kept", "Entries of a deposed root stay in the log.", _keep_conflict),
    _in_logs("match-not-checked", "A backup accepts entries without checking the entry before them.", _skip_match, 3),
    _in_logs("commit-ahead", "A backup commits entries that the root never sent to it.", _commit_all),
    _in_logs(
        "promise-ignored",
        "Voters vote for another candidate while the lease of a root is valid.",
        _always(votes, "is_open", True),
        3,
    ),
    _in_logs(
        "promise-forgotten",
        "A restart makes a voter forget its promise to a root.",
        _always(startup, "remember_promises", None),
        3,
    ),
    _in_logs(
        "lease-ignored",
        "A root does not step down when it receives from no other broker.",
        _always(lease, "holds", True),
    ),
    _in_logs(
        "lease-ignores-disk",
        "A root does not step down when its disk does not respond.",
        _always(votes, "disk_stalls", False),
        3,
    ),
    _in_logs("damage-forgotten", "A broker with a damaged log votes by what remains of the log.", _forget_damage, 3),
    _in_logs("empty-store-votes", "A broker that has lost its disk votes at once.", _trust_empty, 3),
    _in_logs("backup-votes", "A broker whose store was restored from a backup votes at once.", _trust_backup, 3),
    _in_logs("learners-count", "Copies of brokers in doubt count for a commit.", _count_learners, 5),
    _in_logs(
        "admitted-at-once",
        "A root admits a learner before half of the primaries have the entry of welcome.",
        _always(root_module, "may_admit", True),
        5,
    ),
    _in_logs("hand-over-early", "A root hands over before its log is complete on other disks.", _hand_over_early, 3),
    _in_logs(
        "epochs-unheeded",
        "Voters vote for a candidate of an epoch that lacks the first entry of that epoch.",
        _always(votes, "is_of_epoch", True),
        3,
    ),
    _in_logs("ack-without-term", "A root counts acknowledgements of an older term.", _heed_old_acks, 3),
    _in_logs(
        "stale-root-confirms", "A root that steps down counts its whole log as committed.", _confirm_at_the_end, 3
    ),
    _in_logs(
        "slowest-waited-for",
        "A commit needs a copy on every primary.",
        lambda patch: patch.set(quorum, "commit_need", lambda count, copies: count),
        3,
    ),
    _in_logs("snapshot-stale", "A snapshot replaces a log that has become newer in the meantime.", _install_stale, 3),
    _in_logs("snapshot-unfinished", "A backup counts a snapshot as complete before its last piece.", _install_early, 3),
)

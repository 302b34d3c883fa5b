"""The root, which orders all changes: it writes entries, sends them to the other brokers, and decides when they are
committed.

It stays root as long as half of the voters answer it within a lease, its disk works, and it receives no newer term. The
safety of a commit depends on none of that, only on the count of synced copies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from pandomq.ids import LogIndex, NodeName
from pandomq.replica import lease
from pandomq.replica.completions import Fetched, HandOverPrepared, Missing, NoSnapshot, PieceRead
from pandomq.replica.core import Core
from pandomq.replica.effects import Received, Serve, SteppedDown
from pandomq.replica.hand_over import HandOver
from pandomq.replica.limits import LISTENERS_MAX, UNCOMMITTED_BYTES_MAX
from pandomq.replica.log import commitment, in_sync
from pandomq.replica.log.progress import Progress, ProgressState
from pandomq.replica.log.replication import LogReplicator
from pandomq.replica.members import quorum, votes
from pandomq.replica.members.change import MembershipChange
from pandomq.replica.protocol.entries import LearnerAdmitted, LogEntry, Members, TermBegins, encode_entry
from pandomq.replica.protocol.messages import (
    Admit,
    Append,
    Appended,
    AppendRejected,
    Greeting,
    ReleasePromise,
    SnapshotAnswer,
)
from pandomq.replica.roles.handlers import Handlers
from pandomq.replica.roles.transitions import Role


class Root(Handlers):
    role = Role.ROOT

    def __init__(self, core: Core, granted: Collection[NodeName], stood_ms: int, payload: bytes | None) -> None:
        super().__init__(core)
        self.peers: dict[NodeName, Progress] = {}
        self._replication = LogReplicator(core)
        self._granted = granted
        self._stood_ms = stood_ms
        self._payload = payload
        self._received_index = LogIndex(0)
        self._beat_ms = core.now_ms
        self._uncommitted: deque[tuple[LogIndex, int]] = deque()
        self._uncommitted_bytes = 0
        self.ready = False
        """An entry of this term is committed."""
        self.hand_over: HandOver | None = None
        self.change: MembershipChange | None = None

    def enter(self) -> None:
        core = self.core
        for name in core.others:
            peer = self._add(name)
            if name in self._granted:
                # A vote includes the promise, so the lease begins with the candidacy.
                peer.round = self._stood_ms
        first = [encode_entry(TermBegins(core.name))]
        if core.record.configs[-1].index == 0:
            # A cluster's first members are in no log yet; brokers that join later learn them from this entry.
            first.append(encode_entry(Members(core.membership)))
        self.write(first)
        for name, greeting in core.greetings.items():
            # Linked brokers without a vote need not wait for their next greeting.
            if name in core.links and (name not in self.peers or greeting.observer):
                self.on_greeting(name, greeting)
        self._beat()

    def _add(self, name: NodeName, *, observer: bool = False) -> Progress:
        peer = Progress(name, LogIndex(self.core.tail.last_index + 1), observer=observer)
        self.peers[name] = peer
        self._replication.news.counted(self.peers)
        return peer

    def leave(self) -> None:
        """Answers unfinished requests of the operator."""
        if self.change is not None:
            self.change.end(
                done=False, text="this broker is no longer root; the next root completes or abandons the change"
            )
        if self.hand_over is not None:
            self.hand_over.give_up("this broker is no longer root")

    # The log.

    def write(self, payloads: Sequence[bytes], *, prompt: bool = False) -> LogIndex:
        core = self.core
        core.write([LogEntry(core.term, payload) for payload in payloads])
        index = core.tail.last_index
        size_bytes = sum(map(len, payloads))
        self._uncommitted.append((index, size_bytes))
        self._uncommitted_bytes += size_bytes
        if prompt:
            self._replication.prompt_index = index
        for name in core.others:
            if name not in self.peers:
                self._add(name)
        self._replication.news.wrote(index, payloads)
        for peer in self.peers.values():
            self._replication.send(peer)
        return index

    def has_told(self, peer: Progress) -> bool:
        """A secondary that has everything it needs."""
        return self._replication.news.has_reached(peer)

    @property
    def halted(self) -> bool:
        """A hand-over is so far advanced that the root proposes nothing more."""
        return self.hand_over is not None and self.hand_over.halted

    @property
    def holds_back(self) -> bool:
        return self._uncommitted_bytes > UNCOMMITTED_BYTES_MAX

    def synced(self) -> None:
        self._advance()

    def _advance(self) -> None:
        """To be called when a broker has more of the log than before."""
        core = self.core
        if self._received_index < self._replication.prompt_index:
            self._advance_received()
        index = commitment.synced_by_enough(core, self.peers)
        if index > core.commit_index and commitment.is_of_this_term(core, index):
            self._committed(index)
        if self.hand_over is not None:
            self.hand_over.advance()

    def _advance_received(self) -> None:
        """The owner waits for entries to be in the memory of enough brokers."""
        core = self.core
        received = commitment.received_by_enough(core, self.peers)
        if received > self._received_index and commitment.is_of_this_term(core, received):
            self._received_index = received
            core.outbox.put(Received(received))

    def _committed(self, index: LogIndex) -> None:
        core = self.core
        core.commit(index)
        while self._uncommitted and self._uncommitted[0][0] <= index:
            self._uncommitted_bytes -= self._uncommitted.popleft()[1]
        for peer in self.peers.values():
            self._replication.tell_commit(peer)
        if not self.ready:
            self.ready = True
            core.outbox.put(Serve(core.term, index, self._payload))
            self._payload = None
        self._settle_members()

    def _settle_members(self) -> None:
        """The second half of a change follows when the first is committed, whichever root began it."""
        core = self.core
        if core.handlers is not self or core.record.configs[-1].index > core.commit_index:
            return
        if core.membership.joint:
            self.write([encode_entry(Members(core.membership.settled()))])
            # It is in force as soon as it is written; removed members stay until it is committed.
            return
        if self.change is not None and self.change.is_done():
            self.change.end(done=True, text="the list of primaries was changed")
        if not core.is_voter():
            self.step_down("this broker is no longer among the primaries")

    # Replies.

    def _heard(self, message: Appended | AppendRejected | SnapshotAnswer, sender: NodeName) -> Progress | None:
        peer = self.peers.get(sender)
        if peer is None or message.life == peer.past_life:
            return None
        peer.begins_life(message.life, self.core.tail.last_index, joining=message.joining)
        peer.heard_ms = self.core.now_ms
        peer.round = max(peer.round, message.round)
        peer.answered(message.round, self.core.now_ms, self.core.settings.delay_ms)
        return peer

    def on_appended(self, sender: NodeName, message: Appended) -> None:
        core, peer = self.core, self._heard(message, sender)
        if peer is None:
            return
        peer.acknowledged(message.received_index, message.synced_index, message.round)
        peer.in_sync = in_sync.is_in_sync(core, peer)
        self._welcome(peer)
        self._advance()
        if core.handlers is self:
            self._replication.send(peer)
            self._replication.tell_commit(peer)

    def on_refused(self, sender: NodeName, message: AppendRejected) -> None:
        peer = self._heard(message, sender)
        if peer is not None:
            self._replication.refused(peer, message)

    def on_snapshot_answer(self, sender: NodeName, message: SnapshotAnswer) -> None:
        peer = self._heard(message, sender)
        if peer is not None:
            self._replication.snapshot_answered(peer, message)

    def on_append(self, sender: NodeName, message: Append) -> None:
        raise AssertionError(f"{sender} and {self.core.name} are both root in term {message.term}")

    def fetched(self, completion: Fetched) -> None:
        if completion.peer in self.peers:
            self._replication.fetched(self.peers[completion.peer], completion)

    def missing(self, completion: Missing) -> None:
        if completion.peer in self.peers:
            self._replication.missing(self.peers[completion.peer], completion)

    def piece_read(self, completion: PieceRead) -> None:
        if completion.peer in self.peers:
            self._replication.piece_read(self.peers[completion.peer], completion)

    def no_snapshot(self, completion: NoSnapshot) -> None:
        if completion.peer in self.peers:
            self._replication.no_snapshot(self.peers[completion.peer], completion)

    def hand_over_prepared(self, completion: HandOverPrepared) -> None:
        if self.hand_over is not None:
            self.hand_over.prepared(completion.payload)

    # Brokers that connect.

    def on_greeting(self, sender: NodeName, message: Greeting) -> None:
        peer = self.peers.get(sender)
        if peer is None:
            if len(self.peers) >= LISTENERS_MAX + len(self.core.membership.names):
                return
            peer = self._add(sender, observer=message.observer)
        if message.life == peer.past_life:
            return
        peer.begins_life(message.life, self.core.tail.last_index, joining=message.joining)
        if peer.observer is not message.observer:
            # A primary that was started as a secondary, or the other way round.
            peer.observer = message.observer
            peer.probe(LogIndex(self.core.tail.last_index + 1))
            self._replication.news.counted(self.peers)
        if peer.phase is ProgressState.PROBING:
            self._replication.beat(peer)

    def _welcome(self, peer: Progress) -> None:
        """Writes an entry for a learner in doubt: once half of the other voters have it on disk, and the learner as
        well, the learner may vote and count again."""
        core = self.core
        if not peer.joining or peer.observer or peer.life is None:
            return
        if peer.welcome_index is None:
            if is_caught_up(peer, core):
                peer.welcome_index = self.write([encode_entry(LearnerAdmitted(peer.name, peer.life))])
        elif may_admit(core, peer, self.peers):
            core.send(peer.name, Admit(*core.header, peer.life))

    def connected(self, peer: NodeName) -> None:
        """Messages on an older link may be lost."""
        progress = self.peers.get(peer)
        if progress is None:
            return
        if progress.life is not None:
            progress.probe_from_received()
        self._replication.beat(progress)

    def disconnected(self, peer: NodeName, *, by_peer: bool) -> None:
        progress = self.peers.get(peer)
        if progress is None:
            return
        # It may vote for another broker from now on, since it takes the end of the link for the end of this broker.
        progress.round = -1
        progress.in_sync = False
        if peer not in self.core.membership.names:
            del self.peers[peer]
            self._replication.news.counted(self.peers)
        self._check_office()

    # Time.

    def tick(self) -> None:
        core = self.core
        self._check_office()
        if core.handlers is not self:
            return
        if core.now_ms - self._beat_ms >= core.settings.heartbeat_ms:
            self._beat()
        if self.hand_over is not None:
            self.hand_over.tick()
        if self.change is not None:
            self.change.tick()

    def deadline_ms(self) -> int:
        beat_ms = self._beat_ms + self.core.settings.heartbeat_ms
        handed_over_ms = beat_ms if self.hand_over is None else self.hand_over.next_tick_ms
        return min(beat_ms, lease.until_ms(self.core, self.peers), handed_over_ms)

    def _check_office(self) -> None:
        core = self.core
        if not lease.holds(core, self.peers):
            self.step_down("no contact to a quorum of the primaries within the lease")
        elif votes.disk_stalls(core):
            self.step_down("its disk does not respond")

    def _beat(self) -> None:
        core = self.core
        self._beat_ms = core.now_ms
        for peer in list(self.peers.values()):
            peer.in_sync = in_sync.is_in_sync(core, peer)
            self._replication.beat(peer)
        if core.now_ms - self._stood_ms >= core.settings.lease_ms:
            # Before that no voter has had the time to answer.
            in_sync.update_alarms(core, self.peers)
        # With `last_man_standing` the only missing copy may have been that of a missing backup.
        self._advance()

    # The end.

    def step_down(self, reason: str, *, successor: NodeName | None = None) -> None:
        """Steps down at once, and tells the other brokers, so that they need not wait. If there is a successor, they
        wait for it."""
        core = self.core
        if successor is None:
            for peer in self.peers:
                core.send(peer, ReleasePromise(*core.header))
        core.outbox.put(SteppedDown(reason, successor))
        core.root = None
        core.forget_match()
        core.become_follower()
        if successor is None:
            core.release_promise()
        else:
            core.promise(successor)


def is_caught_up(peer: Progress, core: Core) -> bool:
    return peer.phase is ProgressState.STREAMING and peer.received_index >= core.commit_index


def may_admit(core: Core, peer: Progress, peers: Mapping[NodeName, Progress]) -> bool:
    """Whether at least half of the voters hold the welcome entry, without the learner's help; `min_copies` does not
    apply, since with two brokers none would be left to make the second copy."""
    index = peer.welcome_index
    if index is None or peer.synced_index < index:
        return False
    values = commitment.synced_values(core, peers)
    return core.membership.reached(values, quorum.half) >= index

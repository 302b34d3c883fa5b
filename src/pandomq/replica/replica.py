"""Elects a root and replicates one log.

    replica = Replica(name, settings, log, chance)
    replica.recovered(facts, now_ms)                 the store is open
    replica.tick(now_ms)                             before anything else that happens at that time
    replica.connected(peer) / disconnected(peer)
    replica.step(sender, message)
    replica.propose(payloads)                        on a root
    replica.completed(completion)
    for effect in replica.take_effects(): …          after any of these, to be carried out in order

Pure: time arrives as tick(), peers as step(), chance is injected, the disk answers through completed().
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from pandomq.ids import LogIndex, NodeName
from pandomq.replica import dispatch, hand_over, lease, startup
from pandomq.replica.completions import (
    Completion,
    CutDone,
    Fetched,
    HandOverPrepared,
    Missing,
    NoSnapshot,
    PieceRead,
    PieceTaken,
    SnapshotBad,
    SnapshotInstalled,
    StateSaved,
    StoreEmptied,
    Synced,
)
from pandomq.replica.core import Core
from pandomq.replica.effects import ChangeEnded, Effect, RequestNumber
from pandomq.replica.invariants import check
from pandomq.replica.limits import GREETING_MS
from pandomq.replica.log import catching_up, snapshot_in
from pandomq.replica.log.catching_up import LaggingPeer
from pandomq.replica.members import change
from pandomq.replica.members.membership import Member, Membership
from pandomq.replica.members.promotion import Promotion
from pandomq.replica.ports import Chance, LogPort
from pandomq.replica.protocol.excerpts import Excerpts, FullExcerpts
from pandomq.replica.protocol.messages import AskVote, Greeting, Probe, ProbeAnswer, ReplicaMessage
from pandomq.replica.protocol.position import START
from pandomq.replica.record import first_state
from pandomq.replica.roles import choice
from pandomq.replica.roles.recovering import Recovering
from pandomq.replica.roles.root import Root
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.replica.store_facts import StoreFacts
from pandomq.replica.view import ReplicaView, lease_left_ms, view_of

__all__ = ["NotRoot", "Replica", "first_state"]


class NotRoot(Exception):
    """Raised by a broker that accepts no proposals: it is not the root, or it is at the end of a hand-over."""


class Replica:
    def __init__(
        self,
        name: NodeName,
        settings: ReplicaSettings,
        log: LogPort,
        chance: Chance,
        excerpts: Excerpts | None = None,
        *,
        observer: bool = False,
    ) -> None:
        """Begins as recovering: it answers no message. `log` is not used before `recovered`."""
        self._core = core = Core(name, settings, log, chance, excerpts or FullExcerpts(), observer=observer)
        core.new_follower = choice.new_follower
        core.new_root = Root
        core.handlers = Recovering(core)
        self._promotion: Promotion | None = None
        self._requests = 0
        self._greeted_ms = 0
        self._greeted_as = self._standing

    def recovered(self, facts: StoreFacts, now_ms: int) -> None:
        """The store is open, and everything in it is synced."""
        assert self.role is Role.RECOVERING
        startup.begin(self._core, facts, now_ms)
        self._greet(sorted(self._core.links))
        self._core.handlers.tick()

    # Inputs.

    def tick(self, now_ms: int) -> None:
        """Sets the time, by a clock that never goes back. Must be called before any input of that time, and about ten
        times within a lease: a root whose lease ran out while it was suspended steps down here, before it does anything
        else."""
        core = self._core
        assert now_ms >= core.now_ms, "the clock went back"
        paused_ms, core.now_ms = now_ms - core.now_ms, now_ms
        if self.role is Role.RECOVERING:
            return
        if paused_ms > core.settings.lease_ms and self.role is Role.BACKUP and core.others:
            # This broker was suspended: missing messages of the root prove nothing, since those that arrived meanwhile
            # come now.
            core.promise_until_ms = max(core.promise_until_ms, now_ms + core.settings.heartbeat_ms)
        core.handlers.tick()
        if self._promotion is not None and self._promotion.is_over():
            self._promotion = None
        if core.succession is not None:
            core.succession.tick()
        if now_ms - self._greeted_ms >= GREETING_MS:
            self._greet(sorted(core.links))
        self._settle()

    def know_time(self, ahead_ms: int | None) -> None:
        """Sets how much the cluster's time is ahead of this broker's clock, for other brokers; None if that is
        unknown."""
        self._core.cluster_ahead_ms = ahead_ms

    @property
    def told_ahead_ms(self) -> int | None:
        """The difference between the cluster's time and the steady clock as other brokers reported it; None if none
        has."""
        return self._core.told_ahead_ms

    def connected(self, peer: NodeName) -> None:
        """To be called when there is a link to this broker, also again when the link was replaced."""
        self._core.links.add(peer)
        self._core.greetings.pop(peer, None)
        if self._promotion is not None:
            self._promotion.connected(peer)
        if self.role is not Role.RECOVERING:
            self._greet([peer])
            self._core.handlers.connected(peer)

    def disconnected(self, peer: NodeName, *, by_peer: bool) -> None:
        """`by_peer`: the other end closed it, as a system does for a process that died; False if this broker closed it.
        A root that closes links counts them as lost at once, so a closed link also ends the promise to it."""
        self._core.links.discard(peer)
        self._core.born_ms.pop(peer, None)
        self._core.greetings.pop(peer, None)
        self._core.handlers.disconnected(peer, by_peer=by_peer)

    def step(self, sender: NodeName, message: ReplicaMessage) -> None:
        """Takes a message of a peer. It may be old, duplicated, or from another epoch."""
        if self.role is not Role.RECOVERING:
            if isinstance(message, AskVote) and self._core.cluster_ahead_ms is not None:
                # A possible next root must know the cluster's time, and may have started after the last report.
                self._introduce([sender])
            dispatch.dispatch(self._core, self._promotion, sender, message)
            self._settle()
        elif isinstance(message, Probe):
            # The reply contains nothing about its store, which it does not know yet, but shows that it is running.
            self._core.send(sender, ProbeAnswer(*self._core.header, message.number, START, None, recovering=True))

    def _settle(self) -> None:
        choice.settle(self._core)
        if self._greeted_as != self._standing:
            self._greet(sorted(self._core.links))

    @property
    def _standing(self) -> tuple[int, bool]:
        """The part of the state that a root must learn at once when it changes."""
        return self._core.life, self._core.record.joining

    def _greet(self, peers: Sequence[NodeName]) -> None:
        self._greeted_ms = self._core.now_ms
        self._greeted_as = self._standing
        self._introduce(peers)

    def _introduce(self, peers: Sequence[NodeName]) -> None:
        core = self._core
        age_ms = core.now_ms - core.started_ms
        ahead_ms, joining = core.cluster_ahead_ms, core.record.joining
        cluster_ms = 0 if ahead_ms is None else core.now_ms + ahead_ms
        greeting = Greeting(*core.header, core.life, age_ms, joining, core.observer, core.end, cluster_ms)
        for peer in peers:
            core.send(peer, greeting)

    def completed(self, completion: Completion) -> None:
        core = self._core
        match completion:
            case StateSaved(number):
                core.state_saved(number)
                core.handlers.state_saved()
                core.handlers.synced()
            case Synced(index):
                core.synced(index)
                core.handlers.synced()
            case CutDone():
                core.cut_done()
            case StoreEmptied():
                core.store_emptied()
            case Fetched():
                core.handlers.fetched(completion)
            case Missing():
                core.handlers.missing(completion)
            case PieceRead():
                core.handlers.piece_read(completion)
            case NoSnapshot():
                core.handlers.no_snapshot(completion)
            case PieceTaken(source, number, lacks):
                snapshot_in.piece_taken(core, source, number, lacks=lacks)
            case SnapshotInstalled(source):
                snapshot_in.installed(core, source)
            case SnapshotBad(source, reason):
                snapshot_in.bad(core, source, reason)
            case HandOverPrepared():
                core.handlers.hand_over_prepared(completion)
            case _:
                assert_never(completion)
        self._settle()

    def propose(self, payloads: Sequence[bytes], *, prompt: bool = False) -> LogIndex:
        """Appends entries to the log; returns the index of the last. `prompt` requests `Received` before they are
        committed. Raises NotRoot."""
        root = self._core.handlers
        if not isinstance(root, Root) or root.halted:
            raise NotRoot
        return root.write(payloads, prompt=prompt)

    def take_effects(self) -> list[Effect]:
        return self._core.outbox.take()

    # Requests of the operator. Each returns the number with which ChangeEnded answers it, at once if it is impossible.

    def _next_request(self) -> RequestNumber:
        self._requests += 1
        return RequestNumber(self._requests)

    def change_members(self, members: Sequence[Member]) -> RequestNumber:
        """On a root: makes these members the voters. New ones must be linked; they catch up first."""
        root, request = self._core.handlers, self._next_request()
        wanted = tuple(sorted(members, key=lambda member: member.name))
        reason = change.refusal(root, wanted) if isinstance(root, Root) else "this broker is not the root"
        if reason is None and isinstance(root, Root):
            root.change = change.MembershipChange(root, request, wanted)
            root.change.tick()
        else:
            self._core.outbox.put(ChangeEnded(request, False, str(reason)))
        return request

    def hand_over(self, successor: NodeName | None = None) -> RequestNumber:
        """On a root: makes another voter, or the one with the longest log, root, and reports deliveries to it."""
        root, request = self._core.handlers, self._next_request()
        chosen = hand_over.choose_successor(root, successor) if isinstance(root, Root) else None
        if isinstance(root, Root) and chosen is not None and root.ready and root.hand_over is None:
            root.hand_over = hand_over.HandOver(root, request, successor, chosen)
            root.hand_over.begin()
        else:
            reason = "this broker is not the root, or no backup is in sync"
            if isinstance(root, Root) and root.hand_over is not None:
                reason = f"this broker is already handing over to {root.hand_over.successor}"
            self._core.outbox.put(ChangeEnded(request, False, reason))
        return request

    def step_down(self, reason: str) -> None:
        """On a root: steps down at once, in favour of no particular broker."""
        if isinstance(self._core.handlers, Root):
            self._core.handlers.step_down(reason)

    def promote(self, dead: Sequence[NodeName], epoch_id: str) -> RequestNumber:
        """By force: this broker begins a new epoch without the dead. Entries that only they have are lost to the
        cluster. It is rejected if one of them answers, if another primary does not, or if another primary has a newer
        log, follows a root, or is being promoted itself."""
        request = self._next_request()
        if self._promotion is not None:
            self._core.outbox.put(ChangeEnded(request, False, "another promotion is in progress"))
            return request
        self._promotion = Promotion(self._core, request, dead, epoch_id)
        if self._promotion.refusal is not None:
            self._promotion.is_over()
            self._promotion = None
        return request

    # The state for other modules.

    @property
    def role(self) -> Role:
        return self._core.handlers.role

    @property
    def root(self) -> NodeName | None:
        """The root, as far as this broker knows; None if it knows of none within the promise."""
        return self._core.root

    @property
    def commit_index(self) -> LogIndex:
        return self._core.commit_index

    @property
    def serving(self) -> bool:
        """A root that has committed an entry of its term, whose lease holds, and that accepts proposals."""
        root = self._core.handlers
        if not isinstance(root, Root) or not root.ready or root.halted:
            return False
        return lease.holds(self._core, root.peers)

    @property
    def hands_over(self) -> bool:
        """A root that tries to hand over to another broker."""
        root = self._core.handlers
        return isinstance(root, Root) and root.hand_over is not None

    @property
    def lease_left_ms(self) -> int | None:
        """For a root; None if it needs no other broker."""
        return lease_left_ms(self._core)

    @property
    def membership(self) -> Membership | None:
        """The members, as far as this broker knows."""
        return self._core.record.membership

    @property
    def next_tick_ms(self) -> int:
        """The time at which a tick has something to do. The tick may come earlier, and should not come much later:
        seniority counts in steps of CANDIDACY_STEP_MS."""
        deadlines = [self._greeted_ms + GREETING_MS, self._core.handlers.deadline_ms()]
        if self._promotion is not None:
            deadlines.append(self._promotion.next_tick_ms)
        return max(min(deadlines), self._core.now_ms)

    @property
    def holds_back(self) -> bool:
        """Publishers must wait: proposals are not committed fast enough, or not at all."""
        root = self._core.handlers
        return isinstance(root, Root) and root.holds_back

    @property
    def needed_from(self) -> LogIndex:
        """Backups that are in sync need the entries from here on; the log must not be reclaimed past it."""
        root = self._core.handlers
        peers = root.peers.values() if isinstance(root, Root) else ()
        last_index = self._core.tail.last_index
        return LogIndex(min((peer.received_index for peer in peers if peer.in_sync), default=last_index) + 1)

    @property
    def lagging_peers(self) -> list[LaggingPeer]:
        """For a root: brokers that are not in sync but catching up."""
        root = self._core.handlers
        return catching_up.lagging_peers(self._core, root.peers.values()) if isinstance(root, Root) else []

    def view(self) -> ReplicaView:
        return view_of(self._core)

    def check(self) -> None:
        """Checks the invariants; raises AssertionError. The simulator calls it after every step."""
        check(self._core)

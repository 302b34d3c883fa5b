"""The cluster as one broker sees it: carries out the replica's effects with the broker and the peers.

The meaning of a committed entry depends on the state of the broker (`node.broker_state`): while the broker follows, the
entry goes to the applier; once it has taken over, the commit releases what waited; after a hand-over it means nothing.

This module reports elections and replaced stores to `node.transitions`, which changes that state. A broker that has
taken over may hold changes that were never committed, so it restarts: from then on nothing is written, sent or
released, as if it had crashed, and the owner starts another node with what is on the disk.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, assert_never

from pandomq.broker.log.hand_over import encode_delivered
from pandomq.cluster.peer_messages import EncodedSends
from pandomq.ids import LogIndex, NodeName
from pandomq.node.log.excerpts import Commands
from pandomq.node.log.replicated_log import ReplicatedLog
from pandomq.node.views.cluster_knowledge import ClusterKnowledge, OnEnded
from pandomq.node.views.cluster_view import OWN_ROLES
from pandomq.replica.completions import HandOverPrepared
from pandomq.replica.effects import (
    Alarm,
    AlarmKind,
    ChangeEnded,
    Committed,
    MembersChanged,
    PrepareHandOver,
    Received,
    RequestNumber,
    RoleChanged,
    Send,
    Serve,
    SteppedDown,
)
from pandomq.replica.members.membership import Member, Membership
from pandomq.replica.protocol.messages import decode
from pandomq.replica.replica import Replica
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from pandomq.broker.broker import Broker
    from pandomq.ids import Term
    from pandomq.journal.events import EntriesRead
    from pandomq.journal.journal import Journal
    from pandomq.node.broker_state import BrokerLife
    from pandomq.node.log.applier import Applier
    from pandomq.node.log.replicated_log import Told
    from pandomq.node.settings import NodeSettings
    from pandomq.node.transitions import Transitions

log = logging.getLogger("pandomq")

TICKS_PER_LEASE: Final = 20
_FOLLOWING: Final = (Role.BACKUP, Role.OBSERVER)


class Replication:
    def __init__(
        self, node: NodeSettings, journal: Journal, broker: Broker, applier: Applier, random: Random, life: BrokerLife
    ) -> None:
        self.life, settings = life, node.cluster
        self.transitions: Transitions
        """Takes reports of what the replica and the store do; set by its constructor."""
        self.seal_removals: Callable[[], None] = lambda: None
        """Called before the replica may stop proposing in order to hand over: the log gets what is missing in it."""
        self._name, self._settings = NodeName(node.name), settings
        others = any(one.name != node.name for one in settings.primaries)
        self._is_told_of_peers = settings.observer or bool(settings.join) or others
        self._broker, self._applier = broker, applier
        self._ticked_ms = 0
        self.replica = Replica(self._name, settings.replica, journal, random, Commands(), observer=settings.observer)
        founds = not settings.observer and (settings.founding or not settings.primaries)
        founders = (settings.primaries or (Member(self._name),)) if founds else ()
        self.log = ReplicatedLog(node.name, self.replica, journal, life, self, founders)
        self.linked = self.log.linked
        self.sends = EncodedSends()
        self.knowledge = ClusterKnowledge(broker.tracing.note)

    # Events.

    def tick(self, monotonic_ms: int) -> None:
        """To be called before anything else of that time."""
        if monotonic_ms == self.log.now_ms:
            return
        self.log.now_ms = monotonic_ms
        self.log.journal.note_time(monotonic_ms)
        # To a root that is alone time means little: it has no lease, and no other broker to step down for.
        is_alone = self.life.took_over and not self.replicated and not self.linked
        if self.life.runs_replica and not (is_alone and monotonic_ms < self._ticked_ms + self.tick_ms):
            self._ticked_ms = monotonic_ms
            if self.replica.hands_over and self.serving:
                self.seal_removals()
            self.replica.tick(monotonic_ms)
            self.log.carry_out()
        wait = self.life.handover_wait
        if wait is not None:
            wait.tick(monotonic_ms, linked=bool(self.linked))
            if wait.over:
                self.transitions.waited_for_successor()

    def received(self, peer: str, data: bytes) -> None:
        """Raises BadMessage."""
        message = decode(data)
        if self.life.runs_replica and peer in self.linked:
            self.replica.step(NodeName(peer), message)
            self.log.carry_out()
            self.knowledge.heard(peer, message)

    # Requests of an operator. Each is answered once, perhaps at once.

    def change_members(self, members: Sequence[Member], on_ended: OnEnded) -> None:
        self._ask(on_ended, lambda: self.replica.change_members(members))

    def hand_over(self, successor: str | None, on_ended: OnEnded) -> None:
        """Hands over to this backup, or to the one with the longest log."""
        chosen = None if successor is None else NodeName(successor)
        if self.serving:
            self.seal_removals()
        self._ask(on_ended, lambda: self.replica.hand_over(chosen))

    def promote(self, dead: Sequence[str], epoch_id: str, on_ended: OnEnded) -> None:
        """Forced promotion, without these."""
        self._ask(on_ended, lambda: self.replica.promote([NodeName(name) for name in dead], epoch_id))

    def _ask(self, on_ended: OnEnded, ask: Callable[[], RequestNumber]) -> None:
        if not self.life.runs_replica:
            on_ended(False, "this broker is not ready")
            return
        self.knowledge.ask(ask(), on_ended)
        self.log.carry_out()

    @property
    def has_peers(self) -> bool:
        """Whether there are other brokers, or should be."""
        return bool(self.linked) or self._is_told_of_peers or bool(self.knowledge.membership.names - {self._name})

    @property
    def replicated(self) -> bool:
        """Whether more than one broker keeps the log."""
        return self._broker.engine.replicated

    def _tell_levels(self) -> None:
        self._broker.engine.replicated = len(self.knowledge.membership.names) > 1
        self._broker.lacks_copies = AlarmKind.LAST_MAN_STANDING in self.knowledge.alarms

    @property
    def tick_ms(self) -> int:
        """How often the replica needs the time."""
        return max(1, self.lease_ms // TICKS_PER_LEASE)

    @property
    def lease_ms(self) -> int:
        return self._settings.replica.lease_ms

    @property
    def serving(self) -> bool:
        """Whether this broker serves as root. That depends on its state, and on the replica: the lease is valid, and
        the replica does not prepare a hand-over."""
        return self.life.proposes and self.replica.serving

    @property
    def own_role(self) -> str:
        return OWN_ROLES[self.replica.role]

    @property
    def in_step(self) -> bool:
        """The broker follows a root, and has everything that the root has reported as committed."""
        knowledge = self.knowledge
        if knowledge.root is None or self.replica.role not in _FOLLOWING:
            return False
        return self.replica.commit_index >= knowledge.committed_elsewhere

    # Reports of the log.

    def found(self, membership: Membership | None) -> None:
        self.knowledge.membership = membership or Membership(())
        self._tell_levels()

    def begins(self) -> None:
        self.transitions.follow()

    def wrote(self, first_index: LogIndex, term: Term, payloads: Sequence[bytes]) -> None:
        if self.life.handover_wait is not None:
            self.life.handover_wait.wrote(first_index, payloads)
        elif not self.life.took_over:
            self._applier.written(first_index, term, payloads)

    def cut(self, first_index: LogIndex) -> None:
        self._applier.cut(first_index)

    def read(self, event: EntriesRead) -> None:
        """Raises CorruptFault."""
        self._applier.read(event)

    def replaced(self, reason: str) -> None:
        self.transitions.restart(reason)

    def told(self, effect: Told) -> None:
        match effect:
            case Committed(index):
                self._applier.commit_index = index
                if self.life.handover_wait is not None:
                    self.life.handover_wait.committed(index)
                elif self.life.took_over:
                    self._broker.committed(index)
            case Send(peer, message):
                if peer in self.linked:
                    self.sends.say(peer, message)
            case Received(index):
                if self.life.took_over:
                    self._broker.received(index)
            case RoleChanged(role, term, root):
                self.knowledge.role_changed(self._name, role, term, root)
                self.transitions.role_changed(role, term, self.log.now_ms)
            case Serve():
                self.transitions.elected(effect)
            case SteppedDown(reason, successor):
                self.knowledge.step_down_reason, self.knowledge.successor = reason, successor
                log.warning("this broker steps down as root: %s", reason)
            case PrepareHandOver():
                self.replica.completed(HandOverPrepared(encode_delivered(self._broker)))
            case Alarm() | MembersChanged() | ChangeEnded():
                self.knowledge.take(effect)
                self._tell_levels()
            case _:
                assert_never(effect)

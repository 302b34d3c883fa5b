"""Enters the states of a broker (`node.broker_state`), and carries out what each of them needs.

    founding       `store_read`         a store that belongs to no cluster yet waits for one (`log.foundation`)
    following      `follow`             the replica begins; committed entries go to the applier
    elected        `elected`            the applier goes on until it has all that was committed before the broker's term
    taking over    `take_over_if_due`   the state gets the effects of a new root, and the first entry has them
    serving        `_serve`             that entry is committed; clients are served while the lease is valid
    handed over    `role_changed`       clients are disconnected, and the broker stays until its successor serves
    restarting     `restart`, `end`     all links get the reason, and the owner starts another node

`log.opening` and `log.replication` report at any time what the store and the replica do. Changes that clients notice
wait for the beginning of a step: `take_over_if_due`, `disconnect_clients` and `end`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.broker.log.commands import StartBroker
from pandomq.node.broker_state import BrokerState
from pandomq.node.log.handover_wait import HandoverWait
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.node.broker_state import BrokerLife
    from pandomq.node.clients.logins import Logins
    from pandomq.node.disconnection import Disconnection
    from pandomq.node.log.disk_log import DiskLog
    from pandomq.node.outbound import Outbound
    from pandomq.node.output import Output, Writes
    from pandomq.node.peers.links import PeerLinks
    from pandomq.node.pending_commands import PendingCommands
    from pandomq.replica.effects import Serve


def serve_from_memory(life: BrokerLife, logins: Logins, now_ms: int) -> None:
    """A broker whose log is in memory is alone, and serves at once."""
    logins.make_first_user(now_ms)
    life.enter(BrokerState.SERVING)


class Transitions:
    """The transitions of a broker whose log is on disk."""

    __slots__ = (
        "_broker",
        "_disconnection",
        "_disk",
        "_has_clients",
        "_life",
        "_logins",
        "_outbound",
        "_peer_links",
        "_pending_commands",
        "_replication",
    )

    def __init__(
        self,
        life: BrokerLife,
        broker: Broker,
        disk: DiskLog,
        peer_links: PeerLinks | None,
        logins: Logins,
        disconnection: Disconnection,
        pending_commands: PendingCommands,
        outbound: Outbound,
    ) -> None:
        self._life = life
        self._broker = broker
        self._disk = disk
        self._replication = disk.replication
        self._peer_links = peer_links
        self._logins = logins
        self._disconnection = disconnection
        self._pending_commands = pending_commands
        self._outbound = outbound
        self._has_clients = False
        """Whether the broker has handed over, and its clients are to be disconnected with the next step."""
        # From its takeover the broker writes the events of brokers; until then the root does.
        broker.tracing.writes = False
        self._replication.transitions = self

    # The store, and the replica.

    def store_read(self) -> None:
        self._life.enter(BrokerState.FOUNDING)

    def follow(self) -> None:
        """The store belongs to a cluster, and names its members: the replica begins."""
        self._life.enter(BrokerState.FOLLOWING)

    def elected(self, serve: Serve) -> None:
        """An entry of this broker's term is committed, and so is everything before it. A broker that has handed over
        may be elected again, and does not serve again before it has restarted."""
        if self._life.state is BrokerState.FOLLOWING:
            self._life.enter(BrokerState.ELECTED, elected=serve)

    def role_changed(self, role: Role, term: int, monotonic_ms: int) -> None:
        """A broker that has taken over does not follow again: it hands over, if it has a successor, or restarts."""
        life = self._life
        if role is Role.ROOT:
            return
        if life.state is BrokerState.ELECTED:
            life.enter(BrokerState.FOLLOWING)
        elif role is Role.BACKUP and self._replication.knowledge.successor is not None:
            if life.proposes:
                self._has_clients = life.state is BrokerState.SERVING
                wait = HandoverWait(monotonic_ms, self._replication.lease_ms)
                life.enter(BrokerState.HANDED_OVER, handover_wait=wait)
        elif life.took_over:
            self._step_down(f"another root was elected in term {term}")

    def waited_for_successor(self) -> None:
        """The successor serves, or has taken too long."""
        self._step_down("this broker has handed over to another root")

    def _step_down(self, reason: str) -> None:
        self.restart(self._replication.knowledge.step_down_reason or reason)

    def restart(self, reason: str) -> None:
        """From now on nothing is written, sent or released. The next step is the last one (`end`). The first reason
        counts."""
        if not self._life.is_over:
            self._life.enter(BrokerState.RESTARTING, restart_reason=reason)

    # In a step.

    @property
    def may_take_over(self) -> bool:
        """The broker was elected, and has all that was committed before its term."""
        serve = self._life.elected
        return serve is not None and self._disk.applier.has_applied(serve.index)

    def take_over_if_due(self, now_ms: int) -> None:
        """To be called before the batch of the step is handled; what happens here is part of that."""
        serve = self._life.elected
        if serve is not None and self.may_take_over and self._replication.replica.serving:
            self._take_over(serve, now_ms)

    def _take_over(self, serve: Serve, now_ms: int) -> None:
        broker, knowledge = self._broker, self._replication.knowledge
        self._life.enter(BrokerState.TAKING_OVER)
        broker.tracing.writes = True
        broker.engine.term = serve.term
        broker.held.replayed(serve.index)
        broker.committed(serve.index)
        # The changes that follow are in the first entry of this root.
        self._disk.revive(serve.handed_over, now_ms)
        knowledge.took_over(broker.node_name, serve.term, handed_over=serve.handed_over is not None)
        if self._peer_links is not None:
            self._peer_links.took_over()
        self._logins.make_first_user(now_ms)
        broker.issue(StartBroker(broker.node_name))
        broker.held.call_when_committed(self._serve)

    def _serve(self) -> None:
        self._life.enter(BrokerState.SERVING)

    def disconnect_clients(self, writes: Writes, now_ms: int) -> None:
        """After a hand-over the broker disconnects its clients, once."""
        if self._has_clients:
            self._has_clients = False
            self._disconnect(str(self._replication.knowledge.step_down_reason), writes, now_ms)

    def end(self, reason: str, writes: Writes, now_ms: int) -> Output:
        """Sends the reason to everybody; returns the last output of this node."""
        self.restart(reason)
        self._disconnect(reason, writes, now_ms)
        return self._outbound.collect_last(writes, reason)

    def _disconnect(self, reason: str, writes: Writes, now_ms: int) -> None:
        self._pending_commands.refuse(self._disconnection.close_all(reason, writes, now_ms))

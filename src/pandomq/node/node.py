"""One broker without its sockets: connections, the broker proper, and the log.

The runtime reports events: `tick`, and those of connections (`accept` or `dialed`, then `receive`, `pause`, `resume`,
`lost`), which go to the owner of the connection. The node gathers them, and `step` handles them as one batch: one call
of the broker, at most one log entry, one write each.

The order inside a step makes it correct: first the node checks that this broker may still serve; the batch is handled,
its entry goes to the log, the log's commit releases the replies and confirms that waited for it, and only then are the
sessions' bytes taken for writing. A broker that is not the root follows the log, and serves no clients.

Times are `now_ms`, the cluster's, which may be set forward once when a node begins to serve (`last_ms`), and
`monotonic_ms`, which may not: leases use it. A caller that sets no clock passes only the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from pandomq.broker.broker import BatchOutcome, Broker
from pandomq.errors import connection_forced
from pandomq.ids import LogIndex
from pandomq.node.broker_state import BrokerLife, BrokerState
from pandomq.node.clients.acceptor import ClientAcceptor
from pandomq.node.clients.client_links import ClientLinks
from pandomq.node.clients.closing import ClosingConnections, for_client
from pandomq.node.clients.incomplete import IncompleteMessages
from pandomq.node.clients.input_router import InputRouter
from pandomq.node.clients.local_client import LocalClients
from pandomq.node.clients.logins import Secrets
from pandomq.node.containment import Guard, contained
from pandomq.node.data.services import DataServices
from pandomq.node.data.sessions import DataSessions
from pandomq.node.disconnection import Disconnection
from pandomq.node.dispatcher import Dispatcher
from pandomq.node.front.front_service import front_service
from pandomq.node.graceful_stop import GracefulStop
from pandomq.node.log.alone import Alone
from pandomq.node.log.archive_warnings import warn_of_archives
from pandomq.node.log.disk_log import DiskLog
from pandomq.node.log.log import Log, MemoryLog
from pandomq.node.outbound import Outbound
from pandomq.node.output import AnyLink, Output, Writes
from pandomq.node.peers.acceptor import PeerAcceptor
from pandomq.node.peers.links import linked_to_others
from pandomq.node.pending_commands import PendingCommands
from pandomq.node.pressure import Pressure
from pandomq.node.service_state import ServiceState
from pandomq.node.settings import NodeSettings, broker_limits
from pandomq.node.transitions import Transitions, serve_from_memory
from pandomq.node.views.views import Views
from pandomq.wire.codec import encode_frame, encode_method

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pandomq.broker.administration.administration import OnDone
    from pandomq.broker.client import Client
    from pandomq.broker.log.commands import AdministrativeCommand
    from pandomq.cluster.dialed_connection import Dialed
    from pandomq.journal.effects import Completion
    from pandomq.journal.journal import Journal
    from pandomq.node.clients.acceptor import ClientOrigin
    from pandomq.node.clients.attempts import LoginAttempt, LoginRequester
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.logins import PasswordCheck
    from pandomq.node.log.replication import Replication
    from pandomq.wire.inputs import Login


class Node:
    def __init__(self, settings: NodeSettings, random: Random, now_ms: int, journal: Journal | None = None) -> None:
        """Without a journal its state is in memory, and it is `ready` at once."""
        limits = broker_limits(settings)
        self.broker = self._broker = Broker(
            node_name=settings.name, encode=encode_frame, encode_payload=encode_method, random=random, limits=limits
        )
        self._life = BrokerLife()
        self._disk = None if journal is None else DiskLog(journal, self._broker, settings, random, self._life)
        replication = Alone(self._life) if self._disk is None else self._disk.replication
        self.graceful_stop = GracefulStop(replication)
        self._log: Log = MemoryLog(self._broker.committed) if self._disk is None else self._disk
        self._links = ClientLinks(IncompleteMessages(settings), now_ms)
        foundation = None if self._disk is None else self._disk.foundation
        self.service_state = ServiceState(self._life, replication, foundation, settings.cluster)
        self.peer_links = None if self._disk is None else linked_to_others(settings, self._links, self._disk, random)
        self.peer_requests = None if self.peer_links is None else self.peer_links.requests
        peers, secrets, state = self.peer_links, Secrets.draw(random), self.service_state
        peer_acceptor = None if peers is None else PeerAcceptor(self._links, peers, settings.message_bytes_max)
        self._acceptor = ClientAcceptor(settings, self._broker, self._links, secrets, state, peer_acceptor, now_ms)
        self.logins = self._acceptor.logins
        self._pressure = Pressure(settings.memory_bytes_max, self._broker, self._links, self._log)
        self._dispatcher = Dispatcher(self._broker, self._links)
        self._front_service = front_service(settings, self._broker, self._disk, self._links, peers, random, now_ms)
        self._pending_commands = commands = PendingCommands()
        self._closing = ClosingConnections(self._links, self._may_release)
        self._input_router = InputRouter(self._acceptor, self._links, self._closing, self._pressure, peer_acceptor)
        self.turns = self._input_router.turns
        if self._front_service is not None:
            self._front_service.attend(self._input_router, self._closing)
            self.service_state.proxy = self._front_service.host
            self.service_state.proxy_has_lease = self._front_service.has_lease
            self._pressure.brokers.append(self._front_service.front)
        self.local_clients = LocalClients(self._broker, self.service_state)
        services = DataServices(
            self._broker,
            self.service_state,
            replication,
            self.local_clients,
            self.log_in,
            self._pending_commands.add,
            lambda: self._pressure.reason,
            lambda: self._acceptor.mechanisms,
            lambda: self._acceptor.trusted_proxies,
        )
        self.data = DataSessions(services, now_ms)
        self._pressure.data = self.data
        self._outbound = Outbound(self._links, self._disk, self.peer_links, self._front_service, self.data)
        self._disconnection = Disconnection(self._links, self._closing, self.local_clients, state, self.data)
        brokers = [self._broker] if self._front_service is None else [self._broker, self._front_service.front]
        self.guard = Guard(brokers, self._links, self._closing, self.local_clients)
        self.data.guard = self.local_clients.guard = self.guard
        drawn, alarm = f"{random.getrandbits(128):032x}", self._pressure.alarm
        self.views = Views(settings, self._broker, self._links, peers, self._log, alarm, self.data, drawn, now_ms)
        self._transitions: Transitions | None = None
        if self._disk is None:
            serve_from_memory(self._life, self.logins, now_ms)
        else:
            self._transitions = Transitions(
                self._life, self._broker, self._disk, peers, self.logins, self._disconnection, commands, self._outbound
            )

    @property
    def ready(self) -> bool:
        """Whether this broker has its former state and has begun to serve; its lease may have expired since."""
        return self._life.state is BrokerState.SERVING

    @property
    def following(self) -> bool:
        """Whether this broker has the state of its store, and serves or redirects clients: it is `ready`, or there are
        other brokers to follow or to wait for."""
        if self.ready or self._disk is None:
            return self.ready
        has_others = self._disk.replication.has_peers or self._disk.foundation.waiting is not None
        return self._life.store_is_read and has_others

    @property
    def link_count(self) -> int:
        return len(self._links.present)

    @contained
    def change_settings(self, settings: NodeSettings) -> None:
        """Changes the offers and limits for connections from now on; the name and the first user stay."""
        self._acceptor.change_settings(settings)
        self._broker.limits = broker_limits(settings)
        if self._front_service is not None:
            self._front_service.front.limits = self._broker.limits
        if self._disk is not None:
            self._disk.paging.set_limit(settings.paging_bytes)
        self._pressure.alarm.set_mark(settings.memory_bytes_max)
        self._links.incomplete.change_settings(settings)

    # Calls and reports of the runtime.

    def has_room(self, coming: int) -> bool:
        """Whether one more client may be accepted while so many are logging in."""
        return self._acceptor.has_room(coming)

    @property
    def handshake_room(self) -> int:
        """How many more may begin a handshake; without room clients wait outside."""
        return self._links.handshakes.room

    @property
    def handshake_ms_max(self) -> int:
        return self._acceptor.handshake_ms_max

    def accept(self, socket: object, peer: tuple[str, int], now_ms: int, **arrival: Unpack[ClientOrigin]) -> ClientLink:
        link = self._acceptor.accept(socket, peer, now_ms, **arrival)
        link.owner = self._input_router
        return link

    @contained
    def dialed(self, dialed: Dialed, now_ms: int) -> None:
        if not dialed.gone:
            dialed.owner.dialed(dialed, now_ms)

    @contained
    def not_dialed(self, dialed: Dialed, reason: str, now_ms: int) -> None:
        if not dialed.gone:
            dialed.owner.not_dialed(dialed, reason, now_ms)

    def receive(self, link: AnyLink, data: memoryview, now_ms: int) -> None:
        if not link.gone:
            self.guard.read(link, data, now_ms)

    @contained
    def verified(self, attempt: LoginAttempt, question: PasswordCheck, *, fits: bool, now_ms: int) -> None:
        """The runtime's answer to VerifyPassword."""
        self._input_router.gather_ahead(self._acceptor.verified(attempt, question, fits=fits, now_ms=now_ms), now_ms)

    @contained
    def log_in(self, caller: LoginRequester, login: Login, peer: tuple[str, int], now_ms: int) -> None:
        """A login without a connection; the answer may come now or later. Wants a step."""
        self._input_router.gather_ahead(self._acceptor.call(caller, login, peer, now_ms), now_ms)

    @contained
    def pause(self, link: AnyLink) -> None:
        """The socket accepts no more for now."""
        link.pause()

    @contained
    def resume(self, link: AnyLink) -> None:
        if not link.gone:
            link.owner.resume(link)

    @contained
    def disconnected(self, link: AnyLink, now_ms: int) -> None:
        """The socket is closed, whichever side closed it."""
        if not link.gone:
            link.owner.disconnected(link, now_ms)

    @contained
    def tick(self, now_ms: int, monotonic_ms: int | None = None) -> None:
        self._acceptor.tick(now_ms)
        self._links.tick(now_ms)
        self.data.tick(now_ms)
        warn_of_archives(self._broker)
        monotonic_ms = now_ms if monotonic_ms is None else monotonic_ms
        self._log.tick(now_ms, monotonic_ms)
        self.graceful_stop.tick(monotonic_ms)
        if self.peer_links is not None and self._life.store_is_read:
            self.peer_links.tick(now_ms)

    @property
    def tick_deadline_ms(self) -> int:
        """The time at which `tick` is needed before the step."""
        deadline_ms = min(self._links.next_deadline_ms, self.data.next_deadline_ms, self._log.next_deadline_ms)
        if self._front_service is None or not self._life.store_is_read:
            # While the store is read a front has no steps, and would always be due.
            return deadline_ms
        return min(deadline_ms, self._front_service.next_deadline_ms)

    @property
    def next_deadline_ms(self) -> int:
        """The time at which a step is needed, with or without a tick."""
        tick_ms, own_ms = self.tick_deadline_ms, self._broker.next_deadline_ms
        return own_ms if own_ms < tick_ms and self.service_state.serves else tick_ms

    @contained
    def shut_down(self, now_ms: int) -> None:
        """Notifies every client; they disconnect as they answer."""
        self._disconnection.shut_down(now_ms)

    # The disk, and other brokers. Each wants a step.

    @contained
    def disk_completed(self, completions: Sequence[Completion], now_ms: int) -> None:
        """The results of `Output.disk`. Raises StoreFault if the broker cannot continue; nothing more may be sent."""
        assert self._disk is not None
        self._disk.completed(completions, now_ms)
        self.views.cluster_id = self._disk.replication.knowledge.cluster_id or self.views.cluster_id

    @property
    def peers(self) -> Replication:
        """The part that takes administrators' requests about the cluster."""
        assert self._disk is not None, "a broker without a store has no peers"
        return self._disk.replication

    @property
    def last_ms(self) -> int:
        """The time before which no batch may be; 0 if there is none."""
        return 0 if self._disk is None else self._disk.revival.last_ms

    @contained
    def close(self) -> None:
        """After `shut_down`, when the clients have disconnected: finishes the log, and then is `closed`."""
        if self._disk is not None:
            self._disk.snapshots.close()

    @property
    def closed(self) -> bool:
        return self._log.closed

    # Requests of administrators. Both want a step.

    def administer(self, command: AdministrativeCommand, on_done: OnDone) -> None:
        """Carried out with the next step; `on_done` is called from within one."""
        self._pending_commands.add(command, on_done)

    def close_connection(self, name: str, reason: str) -> bool:
        """False if there is no such connection."""
        link = self.views.find_link(name)
        if link is not None:
            self._closing.add(link, for_client(link, connection_forced(reason)))
        return link is not None

    # The step.

    def step(self, now_ms: int, monotonic_ms: int | None = None, *, amid_pass: bool = False) -> Output:
        """Handles what was gathered since the last step, which may be `amid_pass`. Raises StoreFault, and LifeOver."""
        self.turns.amid_pass = amid_pass
        end = None if self._transitions is None else self._transitions.end
        return self.guard.run(self._step, end, now_ms, monotonic_ms)

    def _step(self, now_ms: int, monotonic_ms: int | None) -> Output:
        disk, transitions = self._disk, self._transitions
        if disk is not None and transitions is not None:
            monotonic_ms = now_ms if monotonic_ms is None else monotonic_ms
            disk.note_time(now_ms, monotonic_ms)
            self._broker.tracing.note_time(now_ms)
            if self.peer_links is not None:
                self.peer_links.tell(now_ms, monotonic_ms)
            if not self._life.store_is_read:
                return Output([], [], False, disk.journal.take_requests())
            now_ms = max(now_ms, self.last_ms)
            if not self._may_serve(disk, transitions, now_ms):
                return self._stand_by(disk, transitions, now_ms)
        more = self.data.step(now_ms)
        more = self._input_router.go_on(now_ms) or more
        if self._broker.next_deadline_ms <= now_ms:
            self._commit(self._broker.tick(now_ms))
        self._pending_commands.submit(self._broker, now_ms)
        gathered = [*self._input_router.take_batch(self._broker), *self.local_clients.take_batch()]
        if self._dispatcher.has_work(gathered):
            self._commit(self._dispatcher.handle(gathered, now_ms))
        more = self._step_front(now_ms) or more
        writes: Writes = []
        if self._closing:
            self._closing.carry_out(writes, now_ms)
            self._commit(self._broker.handle((), now_ms))
        more = self._log.work() or more
        for client in self._links.take_writes(self._broker.take_dirty(), writes):
            self.local_clients.wrote(client)
        self._pressure.watch()
        self.guard.look()
        return self._outbound.collect(writes, more=more or self._dispatcher.ready or self._closing.ready)

    def _may_serve(self, disk: DiskLog, transitions: Transitions, now_ms: int) -> bool:
        announced = self.service_state.server_properties()
        if announced is not None:
            self._acceptor.announce(announced)
        transitions.take_over_if_due(now_ms)
        serving = disk.replication.serving
        if self._life.took_over:
            # During a hand-over no client is served; what clients send waits in their sockets.
            self._links.rest(resting=not serving)
        return serving

    def _stand_by(self, disk: DiskLog, transitions: Transitions, now_ms: int) -> Output:
        """No client is served: the log is followed, and clients that connect are redirected."""
        writes: Writes = []
        if self._life.is_over:
            return transitions.end(str(self._life.restart_reason), writes, now_ms)
        transitions.disconnect_clients(writes, now_ms)
        # A root without a valid lease may serve again, and does then what was requested.
        may_serve_again = self._life.proposes
        if not may_serve_again and self._pending_commands:
            self._pending_commands.refuse(self.service_state.refusal())
        more = self.data.step(now_ms)
        more = self._input_router.go_on(now_ms) or more
        more = disk.follow() or more
        more = self._step_front(now_ms) or more
        if not may_serve_again:
            self._closing.carry_out(writes, now_ms)
            more = more or self._closing.ready
        self._links.take_writes(self._broker.take_dirty(), writes)
        self.guard.look()
        more = disk.work() or more or transitions.may_take_over
        return self._outbound.collect(writes, more=more)

    def _step_front(self, now_ms: int) -> bool:
        if self._front_service is not None:
            return self._front_service.step(now_ms)
        if self.peer_links is not None:
            self.peer_links.serving.turn(None)
        return False

    def _may_release(self, client: Client) -> bool:
        if self._front_service is not None and client.broker is self._front_service.front:
            return self._front_service.may_release(client)
        return client not in self._dispatcher.backlog

    def _commit(self, outcome: BatchOutcome) -> None:
        index = LogIndex(0) if outcome.proposal is None else self._log.append(outcome.proposal, prompt=outcome.prompt)
        # Named before it can be committed: whatever waits must know for which index.
        self._broker.sealed(index)
        if self._front_service is not None:
            self._front_service.feed.sealed(index)
        if isinstance(self._log, MemoryLog):
            self._log.commit()
        for client, fault in outcome.closing:
            link = self._links.of_client.get(client)
            if link is not None:
                self._closing.add_first(link, for_client(link, fault))
            else:
                self.local_clients.failed(client, fault)

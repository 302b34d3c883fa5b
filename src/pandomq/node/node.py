"""One broker without its sockets: connections, the broker proper, and the log.

The runtime reports what happened (`accept`, `receive`, `pause`, `resume`, `lost`, `tick`, `peer_…`); this gathers
it, and `step` handles what was gathered as one batch: one call of the broker, at most one log entry, one write each.

The order inside a step is what makes it correct: first it is made sure that this broker may still serve; the batch is
handled, its entry goes to the log, replies and confirms that waited for it are released by the log's commit, and only
then are the sessions' bytes taken for writing. A broker that is not the root follows the log, and serves nobody.

Times are `now_ms`, the cluster's, which may be set forward once when a node begins to serve (`last_ms`), and
`monotonic_ms`, which may not: leases are kept by it. Who sets no clock says only the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from pandomq.broker.broker import Broker, Outcome
from pandomq.broker.commands import StartBroker
from pandomq.errors import connection_forced
from pandomq.ids import LogIndex
from pandomq.node.administered import Administered
from pandomq.node.archive_warnings import warn_of_archives
from pandomq.node.data.desk import DataDesk
from pandomq.node.data.services import Services
from pandomq.node.desk import Desk
from pandomq.node.disk_log import DiskLog
from pandomq.node.endings import Endings, for_client
from pandomq.node.front_desk import front_desk
from pandomq.node.incomplete import IncompleteMessages
from pandomq.node.intake import Intake
from pandomq.node.links import Links, Writes
from pandomq.node.local_client import LocalClients
from pandomq.node.log import Log, MemoryLog
from pandomq.node.logins import Secrets
from pandomq.node.office import Office
from pandomq.node.outbound import Outbound
from pandomq.node.output import Output
from pandomq.node.parting import Parting
from pandomq.node.peer_door import PeerDoor
from pandomq.node.peer_links import linked_to_others
from pandomq.node.pressure import Pressure
from pandomq.node.reception import Reception
from pandomq.node.retirement import Retirement
from pandomq.node.settings import NodeSettings, broker_limits
from pandomq.node.views import Views
from pandomq.wire.codec import encode_frame, encode_method

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pandomq.broker.administration import OnDone
    from pandomq.broker.client import Client
    from pandomq.broker.commands import AdministrativeCommand
    from pandomq.journal.effects import Completion
    from pandomq.journal.journal import Journal
    from pandomq.node.attempts import Attempt, Caller
    from pandomq.node.foundation import Foundation
    from pandomq.node.link import Link
    from pandomq.node.logins import Logins, Question
    from pandomq.node.reception import Arrival
    from pandomq.node.replication import Replication
    from pandomq.wire.inputs import Login


class Node:
    def __init__(self, settings: NodeSettings, random: Random, now_ms: int, journal: Journal | None = None) -> None:
        """Without a journal its state is in memory, and it is `ready` at once."""
        self._broker = Broker(
            node_name=settings.name,
            encode=encode_frame,
            encode_payload=encode_method,
            random=random,
            limits=broker_limits(settings),
        )
        self._disk = None if journal is None else DiskLog(journal, self._broker, settings, random)
        self.retirement = Retirement(None if self._disk is None else self._disk.replication)
        self._set_paging(settings)
        self._log: Log = MemoryLog(self._broker.committed) if self._disk is None else self._disk
        self._links = Links(IncompleteMessages(settings), now_ms)
        self.office = Office(self._disk, settings.cluster)
        self.peer_links = None if self._disk is None else linked_to_others(settings, self._links, self._disk, random)
        door = None if self.peer_links is None else PeerDoor(self._links, self.peer_links, settings.message_bytes_max)
        self._reception = Reception(
            settings, self._broker, self._links, Secrets.draw(random), self.office, door, now_ms
        )
        self._pressure = Pressure(settings.memory_bytes_max, self._broker, self._links, self._log)
        self._desk = Desk(self._broker, self._links)
        self._front_desk = front_desk(settings, self._broker, self._disk, self._links, self.peer_links, random, now_ms)
        self._administered = Administered()
        self._endings = Endings(self._links, self._may_part)
        self._intake = Intake(self._reception, self._links, self._endings, self._pressure, door)
        if self._front_desk is not None:
            self._front_desk.attend(self._intake, self._endings)
            self.office.proxy = self._front_desk.host
            self._pressure.engines.append(self._front_desk.front.engine)
        self.local_clients = LocalClients(self._broker, self.office)
        replication = None if self._disk is None else self._disk.replication
        services = Services(
            self._broker,
            self.office,
            replication,
            self.local_clients,
            self.log_in,
            self._administered.add,
            lambda: self._pressure.reason,
            lambda: self._reception.mechanisms,
        )
        self.data = DataDesk(services, now_ms)
        self._outbound = Outbound(self._links, self._disk, self.peer_links, self._front_desk, self.data)
        self._parting = Parting(self._links, self._endings, self.local_clients, self.office, self.data)
        self.views = Views(
            settings,
            self._broker,
            self._links,
            self.peer_links,
            self._log,
            self._pressure.alarm,
            self.data,
            f"{random.getrandbits(128):032x}",
            now_ms,
        )
        self._name = settings.name
        if self._disk is None:
            self.logins.make_first_user(now_ms)
            self.office.opened = True

    @property
    def ready(self) -> bool:
        """It has all that it had before, and serves."""
        return self.office.opened

    @property
    def following(self) -> bool:
        """It has what its store had, and serves or says who does."""
        return self.office.opened or (self._disk is not None and self._disk.following)

    @property
    def link_count(self) -> int:
        return len(self._links.present)

    @property
    def broker(self) -> Broker:
        return self._broker

    @property
    def logins(self) -> Logins:
        return self._reception.logins

    def change_settings(self, settings: NodeSettings) -> None:
        """What is offered, and the limits, for connections from now on; the name and the first user stay."""
        self._reception.change_settings(settings)
        self._broker.limits = broker_limits(settings)
        if self._front_desk is not None:
            self._front_desk.front.limits = self._broker.limits
        self._set_paging(settings)
        self._pressure.alarm.set_mark(settings.memory_bytes_max)
        self._links.incomplete.change_settings(settings)

    def _set_paging(self, settings: NodeSettings) -> None:
        # Without a disk there is nowhere to page to.
        if self._disk is not None:
            self._disk.set_paging(settings.paging_bytes)

    # What the runtime asks and reports.

    def has_room(self, coming: int) -> bool:
        """Whether one more client may come while so many are on their way in."""
        return self._reception.has_room(coming)

    @property
    def handshake_room(self) -> int:
        """How many more may begin a handshake; who comes when there is no room is to wait outside."""
        return self._links.handshakes.room

    @property
    def handshake_ms_max(self) -> int:
        return self._reception.handshake_ms_max

    def accept(self, socket: object, peer: tuple[str, int], now_ms: int, **arrival: Unpack[Arrival]) -> Link:
        return self._reception.accept(socket, peer, now_ms, **arrival)

    def receive(self, link: Link, data: memoryview, now_ms: int) -> None:
        if link.gone or link.ended:
            return
        link.count_received(len(data))
        self._intake.receive(link, data, now_ms)

    def verified(self, attempt: Attempt, question: Question, *, fits: bool, now_ms: int) -> None:
        """The runtime's answer to VerifyPassword."""
        self._intake.gather_ahead(self._reception.verified(attempt, question, fits=fits, now_ms=now_ms), now_ms)

    def log_in(self, caller: Caller, login: Login, peer: tuple[str, int], now_ms: int) -> None:
        """Somebody without a connection; the answer may come now or later. Wants a step."""
        self._intake.gather_ahead(self._reception.call(caller, login, peer, now_ms), now_ms)

    def pause(self, link: Link) -> None:
        """The socket takes no more for now."""
        self._links.pause(link)

    def resume(self, link: Link) -> None:
        self._links.resume(link)

    def lost(self, link: Link, now_ms: int) -> None:
        """The socket is closed, whoever closed it."""
        self._intake.lost(link, now_ms)

    def tick(self, now_ms: int, monotonic_ms: int | None = None) -> None:
        self._reception.tick(now_ms)
        self._links.tick(now_ms)
        self.data.tick(now_ms)
        warn_of_archives(self._broker)
        if self._disk is not None:
            self._disk.tick(now_ms, now_ms if monotonic_ms is None else monotonic_ms)
            self.retirement.tick(now_ms if monotonic_ms is None else monotonic_ms)
            if self.peer_links is not None and self._disk.open:
                self.peer_links.tick(now_ms)

    @property
    def next_deadline_ms(self) -> int:
        deadline_ms = min(self._links.next_deadline_ms, self.data.next_deadline_ms)
        if self.ready and (self._disk is None or self._disk.replication.serving):
            deadline_ms = min(deadline_ms, self._broker.next_deadline_ms)
        if self._front_desk is not None and self._disk is not None and self._disk.open:
            # While the store is read it has no steps, and would be due all the time.
            deadline_ms = min(deadline_ms, self._front_desk.next_deadline_ms)
        return deadline_ms if self._disk is None else min(deadline_ms, self._disk.next_deadline_ms)

    def shut_down(self, now_ms: int) -> None:
        """Tells every client; they go as they answer."""
        self._parting.shut_down(now_ms)

    # The disk, and other brokers. Each wants a step.

    def disk_completed(self, completions: Sequence[Completion], now_ms: int) -> None:
        """What became of `Output.disk`. Raises StoreFault if the broker cannot go on: then nothing more may be sent."""
        assert self._disk is not None
        self._disk.completed(completions, now_ms)
        self.views.cluster_id = self._disk.cluster_id or self.views.cluster_id

    def peer_connected(self, name: str) -> None:
        """There is a link to this broker now, or another one than before."""
        self.peers.connected(name)
        self.foundation.connected(name)

    def peer_lost(self, name: str, *, by_peer: bool) -> None:
        """`by_peer`: the other end closed it, as a system does for a process that died."""
        self.peers.disconnected(name, by_peer=by_peer)
        self.foundation.disconnected(name)

    def peer_received(self, name: str, data: bytes, monotonic_ms: int) -> None:
        """One whole message. Raises BadMessage: then the link is to be closed."""
        self.peers.tick(monotonic_ms)
        self.peers.received(name, data)

    @property
    def foundation(self) -> Foundation:
        """How the cluster began, or begins."""
        assert self._disk is not None, "a broker without a store is in no cluster"
        return self._disk.foundation

    @property
    def peers(self) -> Replication:
        """What administrators ask of the cluster is asked there."""
        assert self._disk is not None, "a broker without a store has no peers"
        return self._disk.replication

    def _take_office(self, disk: DiskLog, now_ms: int) -> None:
        disk.take_office(now_ms)
        if self.peer_links is not None:
            self.peer_links.took_office()
        self.logins.make_first_user(now_ms)
        self._broker.issue(StartBroker(self._name))
        self._broker.held.call_when_committed(self.office.open)

    @property
    def last_ms(self) -> int:
        """The time before which no batch may be; 0 if there is no such."""
        return 0 if self._disk is None else self._disk.last_ms

    def close(self) -> None:
        """After `shut_down`, when the clients have gone: puts the log in order, and then is `closed`."""
        if self._disk is not None:
            self._disk.close()

    @property
    def closed(self) -> bool:
        return self._disk is None or self._disk.closed

    # What administrators ask for. Both want a step.

    def administer(self, command: AdministrativeCommand, on_done: OnDone) -> None:
        """Carried out with the next step; `on_done` is called from within one."""
        self._administered.add(command, on_done)

    def close_connection(self, name: str, reason: str) -> bool:
        """False if there is no such connection."""
        link = self.views.find_link(name)
        if link is not None:
            self._endings.add(link, for_client(link, connection_forced(reason)))
        return link is not None

    # The step.

    def step(self, now_ms: int, monotonic_ms: int | None = None) -> Output:
        """Handles what was gathered since the last step."""
        disk = self._disk
        if disk is not None:
            monotonic_ms = now_ms if monotonic_ms is None else monotonic_ms
            disk.note_time(monotonic_ms)
            self._broker.tracing.note_time(now_ms)
            if self.peer_links is not None:
                self.peer_links.tell(now_ms, monotonic_ms)
            if not disk.open:
                return Output([], [], False, disk.take_requests())
            now_ms = max(now_ms, disk.last_ms)
            if not self._may_serve(disk, now_ms):
                return self._stand_by(disk, now_ms)
        more = self.data.step(now_ms)
        more = self._intake.go_on(now_ms) or more
        if self._broker.next_deadline_ms <= now_ms:
            self._commit(self._broker.tick(now_ms))
        self._administered.submit(self._broker.administration, now_ms)
        gathered = [*self._intake.take_batch(self._broker), *self.local_clients.take_batch()]
        if self._desk.has_work(gathered):
            self._commit(self._desk.handle(gathered, now_ms))
        more = self._step_front(now_ms) or more
        writes: Writes = []
        if self._endings:
            self._endings.carry_out(writes, now_ms)
            self._commit(self._broker.handle((), now_ms))
        more = (self._disk is not None and self._disk.work()) or more
        for client in self._links.take_writes(self._broker.take_dirty(), writes):
            self.local_clients.wrote(client)
        self._pressure.watch()
        return self._outbound.collect(writes, more=more or self._desk.ready or self._endings.ready)

    def _may_serve(self, disk: DiskLog, now_ms: int) -> bool:
        replication = disk.replication
        announced = self.office.server_properties()
        if announced is not None:
            self._reception.announce(announced)
        if replication.elected is not None and replication.replica.serving:
            self._take_office(disk, now_ms)
        serving = replication.serving
        if replication.in_office:
            # While the office is handed over nobody is served; what clients send waits in their sockets.
            self._links.rest(resting=not serving)
        return serving

    def _stand_by(self, disk: DiskLog, now_ms: int) -> Output:
        """Nobody is served: the log is followed, and who comes is told where to go."""
        writes: Writes = []
        if disk.replication.restart is not None:
            reason = disk.replication.restart
            self._administered.refuse(self._parting.leave(reason, writes, now_ms))
            return self._outbound.collect_last(writes, reason)
        if disk.replication.lingering is not None and self.office.opened:
            self._administered.refuse(self._parting.leave(str(disk.replication.notices.resignation), writes, now_ms))
        has_left = disk.replication.lingering is not None or not disk.replication.in_office
        if has_left and self._administered:
            self._administered.refuse(self.office.refusal())
        more = self.data.step(now_ms)
        more = self._intake.go_on(now_ms) or more
        more = disk.follow() or more
        more = self._step_front(now_ms) or more
        if has_left:
            self._endings.carry_out(writes, now_ms)
            more = more or self._endings.ready
        self._links.take_writes(self._broker.take_dirty(), writes)
        more = disk.work() or more or disk.replication.elected is not None
        return self._outbound.collect(writes, more=more)

    def _step_front(self, now_ms: int) -> bool:
        if self._front_desk is not None:
            return self._front_desk.step(now_ms)
        if self.peer_links is not None:
            self.peer_links.serving.turn(None)
        return False

    def _may_part(self, client: Client) -> bool:
        if self._front_desk is not None and client.broker is self._front_desk.front:
            return self._front_desk.may_part(client)
        return client not in self._desk.backlog

    def _commit(self, outcome: Outcome) -> None:
        index = LogIndex(0) if outcome.proposal is None else self._log.append(outcome.proposal, prompt=outcome.prompt)
        # Named before it can be committed: what waits must know for which index.
        self._broker.sealed(index)
        if self._front_desk is not None:
            self._front_desk.feed.sealed(index)
        self._log.sync()
        for client, fault in outcome.closing:
            link = self._links.of_client.get(client)
            if link is not None:
                self._endings.add_first(link, for_client(link, fault))
            else:
                self.local_clients.failed(client, fault)

"""One broker without its sockets: connections, the broker proper, and the log.

The runtime reports what happened (`accept`, `receive`, `pause`, `resume`, `lost`, `tick`); this gathers it, and `step`
handles what was gathered as one batch: one call of the broker, at most one log entry, one write a client.

The order inside a step is what makes it correct: the batch is handled, its entry goes to the log, replies and confirms
that waited for it are released by the log's commit, and only then are the sessions' bytes taken for writing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from pandomq.broker.broker import Broker, Outcome
from pandomq.broker.commands import StartBroker
from pandomq.errors import ConnectionFault, connection_forced
from pandomq.ids import LogIndex
from pandomq.kernel import PublishRun, SettleRun
from pandomq.methods import ConnectionUpdateSecretOk, MethodInput
from pandomq.node.backlog import Backlog, Batch
from pandomq.node.disk_log import DiskLog
from pandomq.node.links import Links, Writes
from pandomq.node.local_client import LocalClients
from pandomq.node.log import Log, MemoryLog
from pandomq.node.logins import Secrets
from pandomq.node.output import Abort, Output
from pandomq.node.pressure import Pressure
from pandomq.node.proxy_header import NotAProxyHeader
from pandomq.node.reception import Ahead, Reception
from pandomq.node.settings import NodeSettings, broker_limits
from pandomq.node.views import Views
from pandomq.wire.codec import encode_frame, encode_method
from pandomq.wire.handshake import language
from pandomq.wire.inputs import Faulted, Input, Login, Misgreeted, OpenVhost, PeerClosed, UpdateSecret
from pandomq.wire.states import HANDSHAKE, State

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pandomq.broker.administration import OnDone
    from pandomq.broker.client import Client
    from pandomq.broker.commands import AdministrativeCommand
    from pandomq.journal.effects import Completion
    from pandomq.journal.journal import Journal
    from pandomq.node.attempts import Attempt, Caller
    from pandomq.node.link import Link
    from pandomq.node.logins import Logins, Question

log = logging.getLogger("pandomq")


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
        self._disk = None if journal is None else DiskLog(journal, self._broker, self._opened)
        self._set_paging(settings)
        self._log: Log = MemoryLog(self._broker.committed) if self._disk is None else self._disk
        self._links = Links(self._broker, now_ms)
        self._reception = Reception(settings, self._broker, self._links, Secrets.draw(random), now_ms)
        self._pressure = Pressure(settings.memory_bytes_max, self._broker.engine, self._links, self._log)
        self._batch: Batch = []
        self._backlog = Backlog(self._may_go_on)
        self._administered: list[tuple[AdministrativeCommand, OnDone]] = []
        self._ends: list[tuple[Link, ConnectionFault | None]] = []
        """Connections that end after this batch: with a fault of theirs or ours, or because the client said so."""
        self.local_clients = LocalClients(self._broker)
        self.views = Views(
            settings,
            self._broker,
            self._links.present,
            self._links.of_client,
            self._log,
            self._pressure.alarm,
            f"{random.getrandbits(128):032x}",
            now_ms,
        )
        self._name = settings.name
        self._now_ms = now_ms
        self.ready = False
        """It has all that it had before, and may serve."""
        if self._disk is None:
            self.logins.make_first_user(now_ms)
            self.ready = True

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
        self._set_paging(settings)
        self._pressure.alarm.set_mark(settings.memory_bytes_max)

    def _set_paging(self, settings: NodeSettings) -> None:
        # Without a disk there is nowhere to page to.
        if self._disk is not None:
            self._disk.set_paging(settings.paging_bytes)

    # What the runtime asks and reports.

    def has_room(self, coming: int) -> bool:
        """Whether one more client may come while so many are on their way in."""
        return self._reception.has_room(coming)

    @property
    def handshake_ms_max(self) -> int:
        return self._reception.handshake_ms_max

    def accept(
        self,
        socket: object,
        peer: tuple[str, int],
        now_ms: int,
        *,
        local: tuple[str, int] = ("", 0),
        tls: bool = False,
        certificate_name: str | None = None,
        through_proxy: bool = False,
    ) -> Link:
        return self._reception.accept(
            socket,
            peer,
            now_ms,
            local=local,
            tls=tls,
            certificate_name=certificate_name,
            through_proxy=through_proxy,
        )

    def receive(self, link: Link, data: memoryview, now_ms: int) -> None:
        if link.gone or link.ended:
            return
        link.count_received(len(data))
        if link.before is not None:
            try:
                data = link.behind_proxy(data)
            except NotAProxyHeader:
                self._links.drop(link, "it does not begin with a PROXY header", now_ms)
                return
            if not data:
                return
        self._gather_all(link, link.connection.receive(data), now_ms)
        if link.connection.state is not State.RUNNING:
            self._links.talk(link)

    def verified(self, attempt: Attempt, question: Question, *, fits: bool, now_ms: int) -> None:
        """The runtime's answer to VerifyPassword."""
        self._gather_ahead(self._reception.verified(attempt, question, fits=fits, now_ms=now_ms), now_ms)

    def log_in(self, caller: Caller, login: Login, peer: tuple[str, int], now_ms: int) -> None:
        """Somebody without a connection; the answer may come now or later. Wants a step."""
        self._gather_ahead(self._reception.call(caller, login, peer, now_ms), now_ms)

    def pause(self, link: Link) -> None:
        """The socket takes no more for now."""
        self._links.pause(link)

    def resume(self, link: Link) -> None:
        self._links.resume(link)

    def lost(self, link: Link, now_ms: int) -> None:
        """The socket is closed, whoever closed it."""
        if link.gone:
            return
        if link.connection.state is State.RUNNING:
            log.warning("connection %s ended without a close", link.peer_name)
        elif link.connection.state in HANDSHAKE:
            log.warning("connection %s ended in the middle of the handshake", link.peer_name)
        self._links.forget(link, now_ms)

    def tick(self, now_ms: int) -> None:
        self._gather_ahead(self._reception.tick(now_ms), now_ms)
        self._links.tick(now_ms)
        if self._disk is not None:
            self._disk.tick(now_ms)

    @property
    def next_deadline_ms(self) -> int:
        return min(self._broker.next_deadline_ms, self._links.next_deadline_ms)

    def shut_down(self, now_ms: int) -> None:
        """Tells every client; they go as they answer."""
        for link in list(self._links.present):
            if link.connection.state is State.RUNNING:
                fault = connection_forced("broker forced connection closure with reason 'shutdown'")
                self._ends.append((link, fault))
            else:
                self._links.controls.append(Abort(link))
                self._links.forget(link, now_ms)

    # The disk. Each wants a step.

    def disk_completed(self, completions: Sequence[Completion], now_ms: int) -> None:
        """What became of `Output.disk`. Raises StoreFault if the broker cannot go on: then nothing more may be sent."""
        assert self._disk is not None
        self._now_ms = now_ms
        self._disk.completed(completions)

    def _opened(self) -> None:
        assert self._disk is not None
        now_ms = max(self._now_ms, self._disk.last_ms)
        self._disk.finish_opening(now_ms)
        self.views.cluster_id = self._disk.cluster_id
        self.logins.make_first_user(now_ms)
        self._broker.issue(StartBroker(self._name))
        self._broker.held.call_when_committed(self._start)

    def _start(self) -> None:
        self.ready = True

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
        self._administered.append((command, on_done))

    def close_connection(self, name: str, reason: str) -> bool:
        """False if there is no such connection."""
        link = self.views.find_link(name)
        if link is not None:
            self._ends.append((link, connection_forced(reason)))
        return link is not None

    # The step.

    def step(self, now_ms: int) -> Output:
        """Handles what was gathered since the last step."""
        if self._disk is not None and not self._disk.open:
            return Output([], [], False, self._disk.take_requests())
        writes: Writes = []
        if self._broker.next_deadline_ms <= now_ms:
            self._commit(self._broker.tick(now_ms))
        if self._administered:
            administered, self._administered = self._administered, []
            for command, on_done in administered:
                self._broker.administration.submit(command, on_done, now_ms)
        gathered, self._batch = self._batch + self.local_clients.take_batch(), []
        self._handle(gathered, now_ms)
        if self._ends:
            self._end_connections(writes, now_ms)
            self._commit(self._broker.handle((), now_ms))
        more = self._disk is not None and self._disk.work()
        self._pressure.watch()
        for client in self._links.take_writes(writes):
            self.local_clients.wrote(client)
        controls, self._links.controls = self._links.controls, []
        more = more or self._broker.active or self._backlog.ready or self._has_ends
        return Output(writes, controls, more, () if self._disk is None else self._disk.take_requests())

    def _handle(self, gathered: Batch, now_ms: int) -> None:
        waited = self._backlog.clients()
        outcome = self._broker.handle(self._backlog.join(gathered), now_ms)
        self._backlog.add(outcome.rest)
        self._commit(outcome)
        for client, _ in outcome.rest:
            link = self._links.of_client.get(client)
            if link is not None:
                self._links.fall_behind(link)
        for client in waited:
            link = self._links.of_client.get(client)
            if link is not None and client not in self._backlog:
                self._links.catch_up(link)

    def _may_go_on(self, client: Client) -> bool:
        link = self._links.of_client.get(client)
        if client.gone or client.waits or link is None:
            return client.gone or not client.waits
        return not link.writing_paused and client.unwritten_bytes <= self._broker.limits.outgoing_bytes_max

    @property
    def _has_ends(self) -> bool:
        return any(not self._waits_for_answers(link, fault) for link, fault in self._ends)

    def _waits_for_answers(self, link: Link, fault: ConnectionFault | None) -> bool:
        """Who says good-bye has yet to hear what it asked for before; who goes wrong does not."""
        return fault is None and link.client in self._backlog

    def _commit(self, outcome: Outcome) -> None:
        index = LogIndex(0) if outcome.proposal is None else self._log.append(outcome.proposal)
        # Named before it can be committed: what waits must know for which index.
        self._broker.sealed(index)
        self._log.sync()
        for client, fault in outcome.closing:
            link = self._links.of_client.get(client)
            if link is not None:
                self._ends.insert(0, (link, fault))  # before what the same read brought after it
            else:
                self.local_clients.failed(client, fault)

    def _end_connections(self, writes: Writes, now_ms: int) -> None:
        ends, self._ends = self._ends, []
        for link, fault in ends:
            if link.gone:
                continue
            if self._waits_for_answers(link, fault):
                self._ends.append((link, fault))
                continue
            if link.client is not None:
                # What the client asked for before it said good-bye, or went wrong, is answered.
                self._links.take(link, link.client, writes)
                self._links.let_go(link, now_ms)
            if fault is not None:
                log.warning("connection %s closed: %s", link.peer_name, fault)
                link.connection.close(fault, now_ms)
                self._links.watch(link)
            elif link.connection.state is State.ENDING:
                # Else something it said before its good-bye was at fault, and its close was answered with that.
                link.connection.confirm_close()
            self._links.talk(link)

    # Inputs.

    def _gather_ahead(self, let_in: Sequence[Ahead], now_ms: int) -> None:
        for link, inputs in let_in:
            self._gather_all(link, inputs, now_ms)

    def _gather_all(self, link: Link, inputs: Sequence[Input], now_ms: int) -> None:
        while inputs:
            inputs = self._gather(link, inputs, now_ms)

    def _gather(self, link: Link, inputs: Sequence[Input], now_ms: int) -> list[Input]:
        """Puts the broker's work into the batch and answers the rest; returns what a client had sent ahead."""
        work: list[PublishRun | SettleRun | MethodInput] = []
        ahead: list[Input] = []
        for item in inputs:
            match item:
                case PublishRun():
                    work.append(item)
                    reason = self._pressure.reason
                    if reason is not None and not link.blocked:
                        self._links.block(link, reason)
                case SettleRun() | MethodInput():
                    work.append(item)
                case Misgreeted(greeting):
                    log.warning("connection %s refused: it speaks %s", link.peer_name, language(greeting))
                case Login():
                    self._gather_ahead(self._reception.log_in(link, item, now_ms), now_ms)
                case OpenVhost():
                    ahead = self._reception.open(link, item, now_ms)
                case UpdateSecret():
                    link.connection.send(0, ConnectionUpdateSecretOk())
                    self._links.talk(link)
                case PeerClosed():
                    self._ends.append((link, None))
                case Faulted(fault):
                    self._ends.append((link, fault))
                case _:
                    assert_never(item)
        if work and link.client is not None:
            self._batch.append((link.client, work))
        return ahead

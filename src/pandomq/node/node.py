"""One broker without its sockets: connections, the broker proper, and the log.

The runtime reports what happened (`accept`, `receive`, `pause`, `resume`, `lost`, `tick`); this gathers it, and `step`
handles what was gathered as one batch: one call of the broker, at most one log entry, one write a client.

The order inside a step is what makes it correct: the batch is handled, its entry goes to the log, replies and confirms
that waited for it are released by the log's commit, and only then are the sessions' bytes taken for writing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from pandomq import limits
from pandomq.broker.broker import Broker, Outcome
from pandomq.broker.client import Client
from pandomq.broker.limits import BrokerLimits
from pandomq.errors import ConnectionFault, connection_forced
from pandomq.ids import LogIndex
from pandomq.kernel import PublishRun, Scanner, SettleRun
from pandomq.methods import ConnectionUpdateSecretOk, MethodInput
from pandomq.node.alarms import MemoryAlarm
from pandomq.node.deadlines import Deadlines
from pandomq.node.link import Link
from pandomq.node.local_client import LocalClients
from pandomq.node.log import MemoryLog
from pandomq.node.login import login_refusal
from pandomq.node.offers import make_offer
from pandomq.node.output import Abort, Close, Control, Output, PauseReading, ResumeReading
from pandomq.node.proxy_header import NotAProxyHeader
from pandomq.node.settings import NodeSettings
from pandomq.node.views import Views
from pandomq.wire.codec import encode_frame, encode_method
from pandomq.wire.connection import NEVER_MS, Connection, Tick
from pandomq.wire.inputs import Faulted, Input, Login, OpenVhost, PeerClosed, UpdateSecret
from pandomq.wire.sasl import EXTERNAL, MECHANISMS
from pandomq.wire.states import State

if TYPE_CHECKING:
    from random import Random

log = logging.getLogger("pandomq")


class Node:
    def __init__(self, settings: NodeSettings, random: Random, now_ms: int) -> None:
        self._settings = settings
        self._broker = Broker(
            node_name=settings.name,
            encode=encode_frame,
            encode_payload=encode_method,
            random=random,
            limits=BrokerLimits(
                consumer_timeout_ms=settings.consumer_timeout_ms, message_bytes_max=settings.message_bytes_max
            ),
        )
        self._log = MemoryLog(self._broker.committed)
        self._offer = make_offer(settings, MECHANISMS)
        self._certified_offer = make_offer(settings, (*MECHANISMS, EXTERNAL))
        self._links: dict[Link, None] = {}
        self._link_of: dict[Client, Link] = {}
        self._batch: list[tuple[Client, list[PublishRun | SettleRun | MethodInput]]] = []
        self._ends: list[tuple[Link, ConnectionFault | None]] = []
        """Connections that end after this batch: with a fault of theirs or ours, or because the client said so."""
        self._talking: dict[Link, None] = {}
        """Links whose connection itself has something to send, beside what the broker sends."""
        self._resumed: list[Link] = []
        self._controls: list[Control] = []
        self._deadlines: Deadlines[Link] = Deadlines(now_ms)
        self._alarm = MemoryAlarm(settings.memory_bytes_max)
        self.local_clients = LocalClients(self._broker)
        cluster_id = f"{random.getrandbits(128):032x}"
        self.views = Views(
            settings, self._broker, self._links, self._link_of, self._log, self._alarm, cluster_id, now_ms
        )

    @property
    def link_count(self) -> int:
        return len(self._links)

    @property
    def broker(self) -> Broker:
        return self._broker

    def change_settings(self, settings: NodeSettings) -> None:
        """What is offered, and the limits, for connections from now on; the name and the first user stay."""
        self._settings = settings
        self._offer = make_offer(settings, MECHANISMS)
        self._certified_offer = make_offer(settings, (*MECHANISMS, EXTERNAL))
        self._alarm.set_mark(settings.memory_bytes_max)

    # What the runtime reports.

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
        offer = self._offer if certificate_name is None else self._certified_offer
        link = Link(socket, peer, Connection(offer, Scanner, now_ms))
        link.local, link.tls, link.certificate_name = local, tls, certificate_name
        if through_proxy:
            link.before = b""
        if len(self._links) >= self._settings.connections_max:
            log.warning("refused %s: %d connections are open, which is the limit", link.peer_name, len(self._links))
            link.gone = True
            self._controls.append(Abort(link))
            return link
        self._links[link] = None
        self._deadlines.put(link, link.connection.due_ms)
        return link

    def receive(self, link: Link, data: memoryview, now_ms: int) -> None:
        if link.gone or link.ended:
            return
        link.count_received(len(data))
        if link.before is not None:
            try:
                data = link.behind_proxy(data)
            except NotAProxyHeader:
                self._drop(link, "it does not begin with a PROXY header", now_ms)
                return
            if not data:
                return
        inputs = link.connection.receive(data)
        while inputs:
            inputs = self._gather(link, inputs, now_ms)
        if link.connection.state is not State.RUNNING:
            self._talking[link] = None

    def pause(self, link: Link) -> None:
        """The socket takes no more for now."""
        link.writing_paused = True
        if link.client is not None:
            link.client.session.pause()

    def resume(self, link: Link) -> None:
        link.writing_paused = False
        if link.client is not None:
            link.client.session.resume()
            self._resumed.append(link)

    def lost(self, link: Link, now_ms: int) -> None:
        """The socket is closed, whoever closed it."""
        if link.gone:
            return
        if link.client is not None and link.connection.state is State.RUNNING:
            log.warning("connection %s ended without a close", link.peer_name)
        self._forget(link, now_ms)

    def tick(self, now_ms: int) -> None:
        for link in self._deadlines.take_due(now_ms):
            if link.gone or link.ended:
                continue
            if link.reading_paused:
                # Its heartbeats wait unread in the socket, because we asked for it.
                link.connection.excuse()
            if link.connection.tick(now_ms) is Tick.DROP:
                self._drop(link, "no sign of life in time", now_ms)
                continue
            self._talking[link] = None
            self._watch(link)

    @property
    def next_deadline_ms(self) -> int:
        return min(self._broker.next_deadline_ms, self._deadlines.next_ms)

    def shut_down(self, now_ms: int) -> None:
        """Tells every client; they go as they answer."""
        for link in list(self._links):
            if link.connection.state is State.RUNNING:
                fault = connection_forced("broker forced connection closure with reason 'shutdown'")
                self._ends.append((link, fault))
            else:
                self._controls.append(Abort(link))
                self._forget(link, now_ms)

    def close_connection(self, name: str, reason: str) -> bool:
        """An administrator's wish; False if there is no such connection. Wants a step."""
        link = self.views.find_link(name)
        if link is not None:
            self._ends.append((link, connection_forced(reason)))
        return link is not None

    # The step.

    def step(self, now_ms: int) -> Output:
        """Handles what was gathered since the last step."""
        writes: list[tuple[Link, bytes]] = []
        if self._broker.next_deadline_ms <= now_ms:
            self._commit(self._broker.tick(now_ms))
        batch, self._batch = self._batch + self.local_clients.take_batch(), []
        self._commit(self._broker.handle(batch, now_ms))
        if self._ends:
            self._end_connections(writes, now_ms)
            self._commit(self._broker.handle((), now_ms))
        self._watch_memory()
        self._take_writes(writes)
        controls, self._controls = self._controls, []
        return Output(writes, controls, self._broker.active or bool(self._ends))

    def _commit(self, outcome: Outcome) -> None:
        index = LogIndex(0) if outcome.proposal is None else self._log.append(outcome.proposal)
        # Named before it can be committed: what waits must know for which index.
        self._broker.sealed(index)
        self._log.sync()
        for client, fault in outcome.closing:
            link = self._link_of.get(client)
            if link is not None:
                self._ends.append((link, fault))
            else:
                self.local_clients.failed(client, fault)

    def _end_connections(self, writes: list[tuple[Link, bytes]], now_ms: int) -> None:
        ends, self._ends = self._ends, []
        for link, fault in ends:
            if link.gone:
                continue
            if link.client is not None:
                # What the client asked for before it said good-bye, or went wrong, is answered.
                self._take(link, link.client, writes)
                self._let_go(link, now_ms)
            if fault is None:
                link.connection.confirm_close()
            else:
                log.warning("connection %s closed: %s", link.peer_name, fault)
                link.connection.close(fault, now_ms)
                self._watch(link)
            self._talking[link] = None

    def _take_writes(self, writes: list[tuple[Link, bytes]]) -> None:
        for client in self._broker.take_dirty():
            link = self._link_of.get(client)
            if link is not None:
                self._take(link, client, writes)
            else:
                self.local_clients.wrote(client)
        if self._resumed:
            for link in self._resumed:
                if link.client is not None:
                    self._take(link, link.client, writes)
            self._resumed.clear()
        if self._talking:
            for link in self._talking:
                if not link.ended:
                    self._take_own(link, writes)
            self._talking.clear()

    def _take(self, link: Link, client: Client, writes: list[tuple[Link, bytes]]) -> None:
        if link.writing_paused:
            # Its replies wait in the session. Who asks on without reading the answers is not read from either.
            if client.session.pending_bytes > limits.OUTGOING_HIGH_BYTES:
                self._set_reading(link, paused=True)
            return
        data = client.session.take()
        if data:
            link.connection.wrote()
            link.count_sent(len(data))
            writes.append((link, data))
        if link.reading_paused and not link.blocked:
            self._set_reading(link, paused=False)

    def _take_own(self, link: Link, writes: list[tuple[Link, bytes]]) -> None:
        data = link.connection.data_to_send()
        if data and not link.gone:
            writes.append((link, data))
        if link.connection.state is State.CLOSED and not link.gone:
            link.ended = True
            self._controls.append(Close(link))

    # Inputs.

    def _gather(self, link: Link, inputs: Sequence[Input], now_ms: int) -> list[Input]:
        """Puts the broker's work into the batch and answers the rest; returns what a client had sent ahead."""
        work: list[PublishRun | SettleRun | MethodInput] = []
        ahead: list[Input] = []
        for item in inputs:
            match item:
                case PublishRun():
                    work.append(item)
                    if self._alarm.raised and not link.blocked:
                        self._block(link)
                case SettleRun() | MethodInput():
                    work.append(item)
                case Login():
                    ahead = self._log_in(link, item, now_ms)
                case OpenVhost():
                    ahead = self._open(link, item, now_ms)
                case UpdateSecret():
                    link.connection.send(0, ConnectionUpdateSecretOk())
                    self._talking[link] = None
                case PeerClosed():
                    self._ends.append((link, None))
                case Faulted(fault):
                    self._ends.append((link, fault))
                case _:
                    assert_never(item)
        if work and link.client is not None:
            self._batch.append((link.client, work))
        return ahead

    def _log_in(self, link: Link, login: Login, now_ms: int) -> list[Input]:
        refusal = login_refusal(self._settings, login, from_loopback=link.from_loopback)
        if refusal is None:
            link.login = login
            return link.connection.accept_login()
        log.warning("login from %s refused: %s", link.peer_name, refusal)
        link.connection.refuse_login(login, now_ms)
        self._watch(link)
        return []

    def _open(self, link: Link, request: OpenVhost, now_ms: int) -> list[Input]:
        connection, login = link.connection, link.login
        assert login is not None
        link.login, link.mechanism = None, login.mechanism
        try:
            link.client = self._broker.connect(
                user=login.user,
                vhost=request.vhost,
                peer=link.name,
                client_properties=login.client_properties,
                frame_max=connection.agreed.frame_max,
                channel_max=connection.agreed.channel_max,
                now_ms=now_ms,
            )
        except ConnectionFault as fault:
            log.warning("connection %s refused: %s", link.peer_name, fault)
            connection.close(fault, now_ms)
            self._watch(link)
            return []
        self._link_of[link.client] = link
        ahead = connection.accept_vhost(now_ms)
        # Through the session from here on: the handshake's last words precede the answers to what was sent ahead.
        link.client.session.write(connection.data_to_send())
        self._watch(link)
        return ahead

    # Links.

    def _watch(self, link: Link) -> None:
        if link.connection.due_ms != NEVER_MS:
            self._deadlines.put(link, link.connection.due_ms)

    def _let_go(self, link: Link, now_ms: int) -> None:
        assert link.client is not None
        self._broker.disconnect(link.client, now_ms)
        del self._link_of[link.client]
        link.client = None

    def _drop(self, link: Link, why: str, now_ms: int) -> None:
        log.warning("connection %s dropped: %s", link.peer_name, why)
        self._controls.append(Abort(link))
        self._forget(link, now_ms)

    def _forget(self, link: Link, now_ms: int) -> None:
        link.gone = True
        if link.client is not None:
            self._let_go(link, now_ms)
        self._links.pop(link, None)
        self._talking.pop(link, None)

    # Memory.

    def _watch_memory(self) -> None:
        engine = self._broker.engine
        if not self._alarm.update(engine.held_bytes, engine.held_messages):
            return
        if self._alarm.raised:
            log.warning("memory alarm: messages take %d bytes; publishers are held back", engine.held_bytes)
            return
        log.info("memory alarm cleared")
        for link in self._links:
            if link.blocked:
                self._unblock(link)

    def _block(self, link: Link) -> None:
        link.blocked = True
        link.connection.block("low on memory")
        self._talking[link] = None
        self._set_reading(link, paused=True)

    def _unblock(self, link: Link) -> None:
        link.blocked = False
        link.connection.unblock()
        self._talking[link] = None
        self._set_reading(link, paused=False)

    def _set_reading(self, link: Link, *, paused: bool) -> None:
        if link.reading_paused is not paused:
            link.reading_paused = paused
            self._controls.append(PauseReading(link) if paused else ResumeReading(link))

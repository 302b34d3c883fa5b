"""The event loop around one node: accepts, reads, writes, and passes it the time.

Reads and completions of the disk in one turn of the loop form one batch: the first one schedules a step, which runs
when the loop has read from everything readable. A large batch is handled at once, so that unhandled input is bounded.

A node may request its replacement (`Output.restart`), after it has informed its clients; when the disk has completed
its requests, another node is created on the same directory, and starts as a process does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pandomq import limits
from pandomq.cluster.dialed_connection import Dialed
from pandomq.cluster.limits import BROKERS_COMING_MAX
from pandomq.journal.faults import StoreFault
from pandomq.node.clients.attempts import LoginAttempt
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.clients.logins import PasswordCheck
from pandomq.node.clients.offers import AddressKind
from pandomq.node.containment import LifeOver
from pandomq.node.data.effects import carry_out as carry_out_data
from pandomq.node.data.sessions import DataSessions
from pandomq.node.node import Node
from pandomq.node.output import AnyLink, Output, carry_out
from pandomq.node.views.records import ListenerView
from pandomq.runtime.clock import Clock
from pandomq.runtime.connection_socket import ConnectionSocket, address_of
from pandomq.runtime.deadline_timer import DeadlineTimer
from pandomq.runtime.dial import SocketDialer
from pandomq.runtime.disk.disk import Disk
from pandomq.runtime.disk.sync_times import SyncTimes
from pandomq.runtime.listen import ListenAddress, Listener, Renewal, listening_sockets
from pandomq.runtime.passes import Passes
from pandomq.runtime.password_thread import PasswordThread
from pandomq.runtime.restart_delay import RestartDelay
from pandomq.runtime.socket_acceptor import SocketOwner
from pandomq.runtime.tls import TlsFiles, certificate_name

log = logging.getLogger("pandomq")

GATHERED_BYTES_MAX: Final = 4 * limits.READ_CHUNK_BYTES
"""Bytes that are read before they are handled."""
REPLICATED_BYTES_MAX: Final = limits.READ_CHUNK_BYTES
"""Bytes that are read before they are handled, if batches are replicated: heartbeats wait behind each of them."""
DRAIN_S_MAX: Final = 2.0
"""How long a shutdown waits for clients to answer connection.close."""


class Server:
    def __init__(self, make_node: Callable[[], Node], clock: Clock, data: Path | None = None) -> None:
        """`data` is the directory of the log of a node with a journal. Raises StoreFault."""
        self._make_node = make_node
        self.node = make_node()
        self.on_renewed: Callable[[Node], None] = lambda node: None
        """Called with each node that replaced another one."""
        self._renewal: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._parted = False
        self._restart_delay = RestartDelay()
        self._socket_count = 0
        """Open sockets of clients and other brokers, including those that the node has released."""
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self.read_buffer = memoryview(bytearray(limits.READ_CHUNK_BYTES))
        self.handshake_buffer = self.read_buffer[: limits.HANDSHAKE_READ_BYTES]
        self._gathered_bytes = 0
        self._step_asked = False
        self._timer = DeadlineTimer(lambda: self.node.next_deadline_ms, clock.now_ms, self._tick, self._failed)
        self._listeners: list[Listener] = []
        self._dialing = SocketDialer(self)
        self._data = data
        self._sync_times = SyncTimes()
        self.node.views.sync_times = self._sync_times.view
        self._passes = Passes()
        self.node.views.passes = self._passes.view
        self._disk = None if data is None else self._open_disk(data)
        self._changed = asyncio.Event()
        """The node has made a step: the effect of a completion may show only after the next one."""
        self.failure: asyncio.Future[None] = self._loop.create_future()
        """Holds a StoreFault once the broker cannot continue; nothing is handled or sent from then on."""
        self._passwords = PasswordThread()

    async def listen(
        self,
        address: ListenAddress,
        tls: TlsFiles | None = None,
        *,
        through_proxy: bool = False,
        place: AddressKind = AddressKind.BOTH,
    ) -> list[ListenAddress]:
        """Accepts clients and other brokers there; returns the actual addresses (port 0 means any)."""

        def begin(socket: ConnectionSocket, transport: asyncio.Transport) -> ClientLink | None:
            return self._accepted(socket, transport, through_proxy=through_proxy, place=place)

        owner = SocketOwner(
            lambda: ConnectionSocket(self, begin),
            lambda: self.node.handshake_ms_max / 1000,
            lambda coming: self._renewal is None and self.node.has_room(coming),
            "connections_max",
            # Where only brokers connect, clients cannot use up their connections.
            lambda: BROKERS_COMING_MAX if place is AddressKind.BROKERS else self.node.handshake_room,
        )
        opened = [Listener(sock, owner, tls) for sock in listening_sockets(address)]
        for listener in opened:
            listener.start()
        self._listeners += opened
        protocol = ("cluster" if place is AddressKind.BROKERS else "amqp") + ("" if tls is None else "/ssl")
        self.node.views.listeners += [ListenerView(protocol, *listener.address) for listener in opened]
        self._timer.set()
        return [listener.address for listener in opened]

    def dial_with(self, tls: TlsFiles) -> None:
        """Connections to other brokers use TLS. Raises OSError if the files are unusable."""
        self._dialing.tls = tls
        self._dialing.use(self._dialing.read_tls_files())

    def read_certificates(self) -> Renewal:
        """Reads the TLS files again, for connections from then on. Raises OSError if they are unusable."""
        return Renewal([*self._listeners, self._dialing])

    @property
    def data_sessions(self) -> DataSessions | None:
        """None between the end of one node and the start of the next."""
        return self.node.data if self._renewal is None and not self._parted else None

    def wake(self) -> None:
        """Code inside the process has added work for the node."""
        self._ask_step()

    async def open(self) -> None:
        """Waits until the node has its earlier state. Raises StoreFault."""
        self._step()
        self._timer.set()
        await self._until(lambda: self.node.following)

    async def _until(self, fulfilled: Callable[[], bool]) -> None:
        while not fulfilled():
            self._changed.clear()
            waiting = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((waiting, self.failure), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self.failure.done():
                self.failure.result()

    def _open_disk(self, data: Path) -> Disk:
        disk = Disk(data, self._sync_times)
        self._loop.add_reader(disk.fd, self._completed, disk)
        return disk

    def _completed(self, disk: Disk) -> None:
        if self.failure.done() or self._renewal is not None:
            self._loop.remove_reader(disk.fd)
            return
        try:
            self.node.disk_completed(disk.take_completions(), self._exactly_now_ms())
        except StoreFault as fault:
            self._fail(fault)
            return
        self._ask_step()

    # Connections, accepted and dialed, and the events of their sockets.

    def _accepted(
        self, socket: ConnectionSocket, transport: asyncio.Transport, *, through_proxy: bool, place: AddressKind
    ) -> ClientLink | None:
        """None: the node failed, and the socket is closed."""
        link: ClientLink | None = None
        tls = transport.get_extra_info("ssl_object")
        try:
            link = self.node.accept(
                socket,
                address_of(transport, "peername"),
                self._clock.now_ms(),
                local=address_of(transport, "sockname"),
                tls=tls is not None,
                certificate_name=certificate_name(tls),
                through_proxy=through_proxy,
                place=place,
            )
            self._socket_count += 1
        except Exception as error:
            self.node.guard.doubt(error)
        if self._renewal is not None or link is None:
            socket.abort()
        self._ask_step()
        return link

    def dialed(self, dialed: Dialed) -> None:
        self._socket_count += 1
        if dialed.gone:
            # A node that has ended has released its own.
            dialed.socket.abort()
            return
        self.node.dialed(dialed, self._clock.now_ms())
        self._ask_step()

    def not_dialed(self, dialed: Dialed, reason: str) -> None:
        self.node.not_dialed(dialed, reason, self._clock.now_ms())
        self._ask_step()

    def received(self, link: AnyLink, nbytes: int) -> None:
        self.node.receive(link, self.read_buffer[:nbytes], self._clock.now_ms())
        if isinstance(link, Dialed):
            # Its owner pauses the reading when too much has come; the limit below is for the requests of clients.
            self._ask_step()
            return
        self._gathered_bytes += nbytes
        most = REPLICATED_BYTES_MAX if self.node.broker.replicated else GATHERED_BYTES_MAX
        if self._gathered_bytes >= most or self.node.turns.urgent:
            self._step()
        else:
            self._ask_step()

    def paused(self, link: AnyLink) -> None:
        self.node.pause(link)

    def resumed(self, link: AnyLink) -> None:
        self.node.resume(link)
        self._ask_step()

    def disconnected(self, link: AnyLink) -> None:
        self._socket_count -= 1
        self.node.disconnected(link, self._clock.now_ms())
        self._ask_step()

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        self._loop.call_later(delay_ms / 1000, call)

    # The step.

    def _ask_step(self) -> None:
        if not self._step_asked:
            self._step_asked = True
            self._passes.begin()
            self._loop.call_soon(self._asked_step)

    def _asked_step(self) -> None:
        self._step_asked = False
        began_s = self._passes.began_s
        self._step(amid_pass=False)
        self._passes.end(began_s)

    def _step(self, *, amid_pass: bool = True) -> None:
        if self.failure.done() or self._renewal is not None or self._parted:
            return
        self._gathered_bytes = 0
        node, clock = self.node, self._clock
        if not node.ready:
            # Before its first batch: otherwise its entry would set the log's time back, if this clock is behind.
            clock.go_on_from(node.last_ms)
        try:
            output = node.step(self._exactly_now_ms(), clock.monotonic_ms(), amid_pass=amid_pass)
        except (StoreFault, LifeOver) as fault:
            self._fail(fault)
            return
        try:
            self._carry_out(output)
            if node.next_deadline_ms < self._timer.due_ms:
                self._timer.set()
        except Exception as error:
            # Part of the output is lost, which the node counts as sent.
            self._failed(error)
        self._changed.set()

    def _fail(self, fault: Exception) -> None:
        if not self.failure.done():
            self.failure.set_exception(fault)

    def _exactly_now_ms(self) -> int:
        return self.node.broker.tracing.in_ms(self._clock.now_us())

    def _carry_out(self, output: Output) -> None:
        if self._disk is not None and output.disk:
            self._disk.submit(list(output.disk))
        for link, data in output.writes:
            link.socket.write(data)
        for control in output.controls:
            carry_out(control, self._dialing.dial, self._verify)
        for effect in output.data:
            carry_out_data(effect)
        if output.restart is not None and self._stopping.is_set():
            # It stepped down while it was ending, and has closed its connections: nothing is left to do.
            self._parted = True
            self._changed.set()
        elif output.restart is not None:
            log.warning("restarting broker state from disk: %s", output.restart)
            pause_s = self._restart_delay.pause_s(self._loop.time()) if self.node.guard.in_doubt else 0
            self._renewal = self._loop.create_task(self._renew(pause_s))
        elif output.more:
            self._ask_step()

    async def _renew(self, pause_s: float) -> None:
        """The old node has ended. A disk that does not answer delays the new one, and nothing else."""
        assert self._disk is not None and self._data is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), pause_s)
            # The clients have been informed, and the log is complete: the process need not wait for another node.
            self._parted = True
            self._changed.set()
            return
        views = self.node.views
        try:
            self._loop.remove_reader(self._disk.fd)
            await asyncio.to_thread(self._disk.close)
            # The next node must not count failed requests as done.
            self.node.disk_completed(self._disk.take_completions(), self._exactly_now_ms())
            self._disk = self._open_disk(self._data)
            self.node = self._make_node()
            self.node.views.inherit(views)
            self._renewal = None
            self.on_renewed(self.node)
            self._step()
            self._timer.set()
        except StoreFault as fault:
            self._fail(fault)
        except Exception as error:
            log.exception("the broker cannot restart its state, and exits")
            self._fail(LifeOver(f"the broker's state cannot be restarted: {error!r}"))

    def _verify(self, attempt: LoginAttempt, question: PasswordCheck) -> None:
        node = self.node

        def answered(fits: bool) -> None:
            node.verified(attempt, question, fits=fits, now_ms=self._clock.now_ms())
            self._ask_step()

        self._passwords.ask(question, answered)

    def _tick(self) -> None:
        node, now_ms = self.node, self._clock.now_ms()
        if node.tick_deadline_ms <= now_ms:
            node.tick(now_ms, self._clock.monotonic_ms())
        elif node.next_deadline_ms > now_ms:
            # An earlier step has done the work for which the timer was set.
            return
        self._step()

    def _failed(self, error: Exception) -> None:
        """The node failed, outside of a step."""
        self.node.guard.doubt(error)
        self._ask_step()

    # The end.

    async def shut_down(self) -> None:
        """Stops accepting, closes the clients' connections, waits briefly for their answers, and ends."""
        for listener in self._listeners:
            await listener.close()
        self._dialing.close()
        self._stopping.set()
        if self._renewal is not None:
            await self._renewal
        self.node.graceful_stop.begin()
        self._step()
        while not (self._parted or self.node.graceful_stop.over or self.failure.done()):
            await asyncio.sleep(0.01)
        if not self._parted:
            self.node.shut_down(self._clock.now_ms())
            self._step()
        deadline_s = self._loop.time() + DRAIN_S_MAX
        while (self._socket_count if self._parted else self.node.link_count) and self._loop.time() < deadline_s:
            await asyncio.sleep(0.01)
        if not self._parted:
            self.node.close()
            self._step()
        await self._until(lambda: self.node.closed or self._parted)
        # Other brokers may still send: nothing more is handled, because the disk takes no more requests.
        self._parted = True
        self._timer.cancel()
        if self._disk is not None:
            self._loop.remove_reader(self._disk.fd)
            # A disk that does not answer must not keep the loop from ending the process.
            await asyncio.to_thread(self._disk.close)
        self._passwords.close()
        if self.node.link_count:
            log.info("closed %d connections whose clients did not answer connection.close", self.node.link_count)

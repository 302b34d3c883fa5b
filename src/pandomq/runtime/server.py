"""The event loop around one node: accepts, reads, writes, and tells the time.

Reads of one turn of the loop are gathered into one batch: the first asks for a step, which runs when the loop has
read from every socket that had something. A batch that grew large is handled at once, so that what waits to be
handled stays bounded.

A node may ask to be replaced (`Output.restart`). Then its clients have been told; when the disk has done what it was
asked for, another node is made, on the same directory, and goes through what a start goes through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from ssl import SSLObject
from typing import Final

from pandomq import limits
from pandomq.cluster.limits import BROKERS_COMING_MAX
from pandomq.journal.faults import StoreFault
from pandomq.node.attempts import Attempt
from pandomq.node.data.desk import DataDesk
from pandomq.node.data.effects import carry_out as carry_out_data
from pandomq.node.dialed import Dialed
from pandomq.node.link import Link
from pandomq.node.logins import Question
from pandomq.node.node import Node
from pandomq.node.offers import Place
from pandomq.node.output import Output, carry_out
from pandomq.node.view_records import ListenerView
from pandomq.runtime.client_socket import ClientSocket
from pandomq.runtime.clock import Clock
from pandomq.runtime.dial import Dialing
from pandomq.runtime.disk import Disk
from pandomq.runtime.door import House
from pandomq.runtime.listen import Address, Listener, Renewal, listening_sockets
from pandomq.runtime.passes import Passes
from pandomq.runtime.password_thread import PasswordThread
from pandomq.runtime.sync_times import SyncTimes
from pandomq.runtime.tls import TlsFiles, certificate_name

log = logging.getLogger("pandomq")

GATHERED_BYTES_MAX: Final = 4 * limits.READ_CHUNK_BYTES
"""What is read before it is handled."""
REPLICATED_BYTES_MAX: Final = limits.READ_CHUNK_BYTES
"""The same where batches travel to other brokers: heartbeats wait behind each of them."""
DRAIN_S_MAX: Final = 2.0
"""How long a shutdown waits for clients to answer connection.close."""


class Server:
    def __init__(self, make_node: Callable[[], Node], clock: Clock, data: Path | None = None) -> None:
        """`data` is where a node with a journal has its log. Raises StoreFault."""
        self._make_node = make_node
        self.node = make_node()
        self.on_renewed: Callable[[Node], None] = lambda node: None
        """Is told of another node that took the place of the one before it."""
        self._renewal: asyncio.Task[None] | None = None
        self._stopping = self._parted = False
        self._socket_count = 0
        """Open ones, of clients and other brokers, whether or not the node still knows of them."""
        """The process is to end; the node has ended before that."""
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self.read_buffer = memoryview(bytearray(limits.READ_CHUNK_BYTES))
        self.handshake_buffer = self.read_buffer[: limits.HANDSHAKE_READ_BYTES]
        self._gathered_bytes = 0
        self._step_asked = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._listeners: list[Listener] = []
        self._dialing = Dialing(self)
        self._data = data
        self._sync_times = SyncTimes()
        self.node.views.sync_times = self._sync_times.view
        self._passes = Passes()
        self.node.views.passes = self._passes.view
        self._disk = None if data is None else Disk(data, self._tell_completed, self._sync_times)
        self._changed = asyncio.Event()
        """The disk has done something."""
        self.failure: asyncio.Future[None] = self._loop.create_future()
        """Has a StoreFault once the broker cannot go on; nothing is handled or sent from then on."""
        self._passwords = PasswordThread()

    async def listen(
        self,
        address: Address,
        tls: TlsFiles | None = None,
        *,
        through_proxy: bool = False,
        place: Place = Place.BOTH,
    ) -> list[Address]:
        """Accepts clients and other brokers there; says where it really listens (port 0 means any)."""
        house = House(
            lambda: ClientSocket(self, through_proxy=through_proxy, place=place),
            lambda: self.node.handshake_ms_max / 1000,
            lambda coming: self._renewal is None and self.node.has_room(coming),
            # Where only brokers come, clients cannot take their room.
            lambda: BROKERS_COMING_MAX if place is Place.BROKERS else self.node.handshake_room,
        )
        opened = [Listener(sock, house, tls) for sock in listening_sockets(address)]
        for listener in opened:
            listener.start()
        self._listeners += opened
        protocol = ("cluster" if place is Place.BROKERS else "amqp") + ("" if tls is None else "/ssl")
        self.node.views.listeners += [ListenerView(protocol, *listener.address) for listener in opened]
        self._set_timer()
        return [listener.address for listener in opened]

    def dial_with(self, tls: TlsFiles) -> None:
        """Connections to other brokers are by TLS. Raises OSError if the files are no good."""
        self._dialing.tls = tls
        self._dialing.use(self._dialing.read_tls_files())

    def read_certificates(self) -> Renewal:
        """The TLS files as they are now, for connections from then on. Raises OSError if they are no good."""
        return Renewal([*self._listeners, self._dialing])

    @property
    def data_desk(self) -> DataDesk | None:
        """None: one node is gone, and the next is not there yet."""
        return self.node.data if self._renewal is None and not self._parted else None

    def wake(self) -> None:
        """Somebody inside the process has gathered work for the node."""
        self._ask_step()

    # The disk.

    async def open(self) -> None:
        """Until the node has what it had before. Raises StoreFault."""
        self._step()
        self._set_timer()
        await self._until(lambda: self.node.following)

    async def _until(self, fulfilled: Callable[[], bool]) -> None:
        while not fulfilled():
            self._changed.clear()
            waiting = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((waiting, self.failure), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self.failure.done():
                self.failure.result()

    def _tell_completed(self) -> None:
        """In the disk's threads."""
        try:
            self._loop.call_soon_threadsafe(self._completed)
        except RuntimeError:
            # The loop is closed: the process is ending for another reason.
            return

    def _completed(self) -> None:
        if self.failure.done() or self._disk is None or self._renewal is not None:
            return
        try:
            self.node.disk_completed(self._disk.take_completions(), self._exactly_now_ms())
        except StoreFault as fault:
            self.failure.set_exception(fault)
            return
        self._changed.set()
        # At once: confirms have waited long enough, and the disk waits for what comes next.
        self._step()

    # What the sockets report.

    def connected(
        self,
        socket: ClientSocket,
        peer: tuple[str, int],
        local: tuple[str, int],
        tls: SSLObject | None,
        *,
        through_proxy: bool,
        place: Place,
    ) -> Link:
        link = self.node.accept(
            socket,
            peer,
            self._clock.now_ms(),
            local=local,
            tls=tls is not None,
            certificate_name=certificate_name(tls),
            through_proxy=through_proxy,
            place=place,
        )
        self._socket_count += 1
        if self._renewal is not None:
            socket.abort()
        self._ask_step()
        return link

    def received(self, link: Link, nbytes: int) -> None:
        self.node.receive(link, self.read_buffer[:nbytes], self._clock.now_ms())
        self._gathered_bytes += nbytes
        if self._gathered_bytes >= (REPLICATED_BYTES_MAX if self.node.broker.replicated else GATHERED_BYTES_MAX):
            self._step()
        else:
            self._ask_step()

    def paused(self, link: Link) -> None:
        self.node.pause(link)

    def resumed(self, link: Link) -> None:
        self.node.resume(link)
        self._ask_step()

    def lost(self, link: Link) -> None:
        self._socket_count -= 1
        self.node.lost(link, self._clock.now_ms())
        self._ask_step()

    # What the sockets report that were dialed. A node that is gone has given up its own.

    def dialed(self, dialed: Dialed) -> None:
        self._socket_count += 1
        if dialed.gone:
            dialed.socket.abort()
            return
        dialed.owner.dialed(dialed, self._clock.now_ms())
        self._ask_step()

    def not_dialed(self, dialed: Dialed, reason: str) -> None:
        if not dialed.gone:
            dialed.owner.not_dialed(dialed, reason, self._clock.now_ms())

    def dialed_received(self, dialed: Dialed, nbytes: int) -> None:
        if not dialed.gone:
            dialed.owner.receive(dialed, self.read_buffer[:nbytes], self._clock.now_ms())
            self._ask_step()

    def dialed_paused(self, dialed: Dialed) -> None:
        dialed.writing_paused = True

    def dialed_resumed(self, dialed: Dialed) -> None:
        if not dialed.gone:
            dialed.owner.resume(dialed)
            self._ask_step()

    def dialed_lost(self, dialed: Dialed) -> None:
        self._socket_count -= 1
        if not dialed.gone:
            dialed.owner.lost(dialed, self._clock.now_ms())
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
        self._step()
        self._passes.end(began_s)

    def _step(self) -> None:
        if self.failure.done() or self._renewal is not None or self._parted:
            return
        self._gathered_bytes = 0
        node, clock = self.node, self._clock
        if not node.ready:
            # Before its first batch: its entry would take the log's time back, if this clock is behind.
            clock.go_on_from(node.last_ms)
        self._carry_out(node.step(self._exactly_now_ms(), clock.monotonic_ms()))
        if node.next_deadline_ms < self._timer_ms:
            self._set_timer()

    def _exactly_now_ms(self) -> int:
        return self.node.broker.tracing.in_ms(self._clock.now_us())

    def _carry_out(self, output: Output) -> None:
        if self._disk is not None and output.disk:
            self._disk.submit(list(output.disk))
        for link, data in output.writes:
            link.socket.write(data)
        if output.peer_writes:
            self._write_to_peers(output.peer_writes)
        for control in (*output.controls, *output.peer_controls):
            carry_out(control, self._dialing.dial, self._verify)
        for effect in output.data:
            carry_out_data(effect)
        if output.restart is not None and self._stopping:
            # It lost its office on the way out, and has said good-bye: nothing is left to be put in order.
            self._parted = True
            self._changed.set()
        elif output.restart is not None:
            log.warning("beginning again: %s", output.restart)
            self._renewal = self._loop.create_task(self._renew())
        elif output.more:
            self._ask_step()

    def _write_to_peers(self, writes: Sequence[tuple[Dialed, bytes | memoryview]]) -> None:
        # Each write may be a packet of its own: what goes to one broker goes at once.
        together: dict[Dialed, list[bytes | memoryview]] = {}
        for dialed, octets in writes:
            together.setdefault(dialed, []).append(octets)
        for dialed, parts in together.items():
            dialed.socket.write_all(parts)

    async def _renew(self) -> None:
        """The old node is gone. A disk that does not answer keeps the new one waiting, and nobody else."""
        assert self._disk is not None and self._data is not None
        await asyncio.to_thread(self._disk.close)
        views = self.node.views
        try:
            # Nobody waits for it any more, but what failed must not be taken for done by who comes next.
            self.node.disk_completed(self._disk.take_completions(), self._exactly_now_ms())
            self._disk = Disk(self._data, self._tell_completed, self._sync_times)
        except StoreFault as fault:
            self.failure.set_exception(fault)
            return
        self.node = self._make_node()
        self.node.views.inherit(views)
        self._renewal = None
        self.on_renewed(self.node)
        self._step()
        self._set_timer()

    def _verify(self, attempt: Attempt, question: Question) -> None:
        node = self.node

        def answered(fits: bool) -> None:
            node.verified(attempt, question, fits=fits, now_ms=self._clock.now_ms())
            self._ask_step()

        self._passwords.ask(question, answered)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = self.node.next_deadline_ms
        delay_s = max(0, self._timer_ms - self._clock.now_ms()) / 1000
        self._timer = self._loop.call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self.node.tick(self._clock.now_ms(), self._clock.monotonic_ms())
        self._step()
        self._set_timer()

    # The end.

    async def shut_down(self) -> None:
        """Stops accepting, tells the clients, waits a little for their answers, and closes."""
        for listener in self._listeners:
            await listener.close()
        self._dialing.close()
        if self._renewal is not None:
            await self._renewal
        self._stopping = True
        self.node.retirement.begin()
        self._step()
        while not (self._parted or self.node.retirement.over or self.failure.done()):
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
        if self._disk is not None:
            self._disk.close()
        if self._timer is not None:
            self._timer.cancel()
        self._passwords.close()
        if self.node.link_count:
            log.info("closed %d connections whose clients did not answer", self.node.link_count)

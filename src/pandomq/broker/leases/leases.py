"""What the root does about leases: gives them, takes what is done, ends them when nobody has asked for too long.

Asks come outside of batches; the next batch, which may be empty, writes what they change to the log, and they are
answered once that is committed. Time-outs are the root's own: each ask counts anew, and a new root counts from when it
began to serve (`ending`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker.commands import (
    DeclareQueue,
    LeaseCommand,
    LeaseMessages,
    PutLease,
    ReleaseLeased,
    ReturnLeased,
)
from pandomq.broker.leases.asks import LeaseAsk, LeaseEnds, check_ask, queue_refusal
from pandomq.broker.leases.ending import Endings
from pandomq.broker.leases.giving_back import reinstate
from pandomq.broker.leases.lease import Lease, LeaseView, stream_name
from pandomq.broker.leases.moving import Mover
from pandomq.errors import not_found, precondition_failed
from pandomq.fieldtable import encode_table
from pandomq.limits import LEASE_MOVE_BYTES_MAX, LEASE_MOVE_MESSAGES_MAX, LEASES_MAX

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.queue import Queue
    from pandomq.broker.streams.stream import Stream
    from pandomq.broker.vhost import Vhost

STREAM_ARGUMENTS: Final = encode_table({"x-queue-type": "stream"})
OFFSETS_PER_MS: Final = 1_000_000
"""The stream of a lease begins at an offset that its time gives: so what a lease of the same name had before it ended
is never taken for what this one has."""


OnLease = Callable[[LeaseView], None]


class Leases:
    __slots__ = ("_acks", "_awaited", "_broker", "_mover", "_table", "endings")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._table = broker.state.leases
        self._mover = Mover(broker.engine)
        self.endings = Endings(broker)
        self._awaited: dict[tuple[str, str, str], tuple[LeaseAsk, kernel.Queue]] = {}
        """The last asks of leases that got nothing because what comes next is on the disk."""
        self._acks: dict[kernel.Queue, int] = {}
        """How many more messages of a queue are acknowledged than the kernel says, since this broker is root; fewer, if
        it is negative: to the kernel they are when they are leased."""

    # Asks.

    def lease(self, ask: LeaseAsk, on_lease: OnLease, now_ms: int) -> None:
        """A new one, or more for one that is there. Raises Fault (404, 405, 406, 540) or LeaseEnds."""
        broker = self._broker
        broker.now_ms = now_ms - broker.clock_ahead_ms
        check_ask(ask)
        vhost, queue = self._find_queue(ask.vhost, ask.queue)
        lease = self._table.find(ask.vhost, ask.queue, ask.name)
        if lease is None:
            lease = self._begin(ask, vhost, queue)
        elif lease.ending:
            raise LeaseEnds(f"lease '{ask.name}' of {queue.resource} is ending")
        elif lease.timeout_ms != ask.timeout_ms:
            broker.log(PutLease(ask.vhost, ask.queue, ask.name, lease.first_offset, ask.timeout_ms))
        self._move(ask, lease, queue)
        self.endings.renewed(lease)
        queue.used_ms = broker.now_ms
        has_room = lease.message_count < ask.messages_max and lease.size_bytes < ask.bytes_max
        view = lease.view(more=has_room and queue.kernel.ready_count > 0)
        broker.held.call_when_committed(lambda: on_lease(view))

    def release(self, vhost: str, queue: str, name: str, offset: int, on_lease: OnLease, now_ms: int) -> None:
        """What was leased before this offset is done with. Raises Fault (404, 406) or LeaseEnds."""
        broker = self._broker
        broker.now_ms = now_ms - broker.clock_ahead_ms
        lease = self._find(vhost, queue, name)
        if lease.ending:
            raise LeaseEnds(f"lease '{name}' of queue '{queue}' is ending")
        if offset > lease.end_offset:
            raise precondition_failed(f"lease '{name}' of queue '{queue}' ends at {lease.end_offset}, not at {offset}")
        if offset > lease.first_offset:
            self._count(broker.state.vhosts[vhost].queues[queue].kernel, offset - lease.first_offset)
            broker.log(ReleaseLeased(vhost, queue, name, offset))
        self.endings.renewed(lease)
        view = lease.view()
        broker.held.call_when_committed(lambda: on_lease(view))

    def end(self, vhost: str, queue: str, name: str, on_lease: OnLease, now_ms: int) -> None:
        """What it still has goes back to the queue. Raises Fault (404)."""
        broker = self._broker
        broker.now_ms = now_ms - broker.clock_ahead_ms
        lease = self._find(vhost, queue, name)
        self.endings.end(lease)
        view = lease.view()
        broker.held.call_when_committed(lambda: on_lease(view))

    def renew(self, vhost: str, stream: str, now_ms: int) -> None:
        """Somebody reads the stream of a lease."""
        lease = self._table.of_stream(vhost, stream)
        if lease is not None:
            self.endings.read(lease, now_ms - self._broker.clock_ahead_ms)

    def queue_of(self, vhost: str, stream: str) -> str | None:
        """The queue that has to be readable for who reads this stream of a lease; None if it is none."""
        lease = self._table.of_stream(vhost, stream)
        return None if lease is None else lease.queue

    def _find(self, vhost: str, queue: str, name: str) -> Lease:
        lease = self._table.find(vhost, queue, name)
        if lease is None:
            raise not_found(f"no lease '{name}' of queue '{queue}' in vhost '{vhost}'")
        return lease

    def _find_queue(self, vhost: str, name: str) -> "tuple[Vhost, Queue]":
        home = self._broker.state.vhosts.get(vhost)
        if home is None:
            raise not_found(f"no vhost '{vhost}'")
        queue = home.queue(name)
        refusal = queue_refusal(queue)
        if refusal is not None:
            raise refusal
        return home, queue

    def _begin(self, ask: LeaseAsk, vhost: "Vhost", queue: "Queue") -> Lease:
        if len(self._table) >= LEASES_MAX:
            raise precondition_failed(f"there are {LEASES_MAX} leases already")
        broker = self._broker
        first_offset = broker.now_ms * OFFSETS_PER_MS
        stream, queue_id = stream_name(queue.name, ask.name), broker.state.next_queue_id
        broker.issue(
            DeclareQueue(vhost.name, stream, queue_id, True, False, STREAM_ARGUMENTS, ask.user, broker.now_ms, True)
        )
        broker.log(PutLease(vhost.name, queue.name, ask.name, first_offset, ask.timeout_ms))
        lease = self._table.find(ask.vhost, ask.queue, ask.name)
        assert lease is not None
        return lease

    def _move(self, ask: LeaseAsk, lease: Lease, queue: "Queue") -> None:
        if self._broker.held.publishes_wait:
            # Other brokers may know of acks that died with the last root. Who leases hears that there is more.
            return
        messages_max = min(ask.messages_max - lease.message_count, LEASE_MOVE_MESSAGES_MAX)
        bytes_max = min(ask.bytes_max - lease.size_bytes, LEASE_MOVE_BYTES_MAX)
        stream = self._stream(lease.vhost, lease.stream).queue
        runs = self._mover.move(queue.kernel, stream, messages_max, bytes_max, self._broker.now_ms)
        if not runs and queue.kernel.head_missing:
            # Until somebody asks again it might have left memory once more.
            self._awaited[ask.vhost, ask.queue, ask.name] = (ask, queue.kernel)
        if runs:
            self._count(queue.kernel, -sum(run.messages for run in runs))
            command = LeaseMessages(lease.vhost, lease.queue, lease.name, list(runs))
            self._broker.log(command)

    @property
    def is_waiting(self) -> bool:
        """`go_on` would do something."""
        return bool(self.endings.waiting) or any(not queue.head_missing for _, queue in self._awaited.values())

    def go_on(self) -> None:
        """In a batch: what is to go back does so, and what was fetched from the disk is moved."""
        if self.endings.waiting:
            self.endings.go_on()
        for key, (ask, source) in list(self._awaited.items()):
            if source.head_missing:
                continue
            del self._awaited[key]
            lease = self._table.find(*key)
            if lease is not None and not lease.ending and not source.deleted:
                self._move(ask, lease, self._broker.state.vhosts[ask.vhost].queues[ask.queue])

    def _count(self, queue: kernel.Queue, acks: int) -> None:
        self._acks[queue] = self._acks.get(queue, 0) + acks

    def _stream(self, vhost: str, name: str) -> "Stream":
        stream = self._broker.state.vhosts[vhost].inner_queues[name].stream
        assert stream is not None
        return stream

    # What commands mean, on every broker.

    def apply(self, command: LeaseCommand) -> None:
        is_new = isinstance(command, PutLease) and self._table.find(command.vhost, command.queue, command.name) is None
        self._broker.state.apply(command)
        stream = stream_name(command.queue, command.name)
        if isinstance(command, ReturnLeased):
            vhost = self._broker.state.vhosts[command.vhost]
            reinstate(self._broker.engine, vhost.queues[command.queue].kernel, command)
        if isinstance(command, ReturnLeased | ReleaseLeased):
            self._stream(command.vhost, stream).drop_before(command.offset)
        elif isinstance(command, PutLease) and is_new:
            # What a snapshot says of the stream itself follows, and holds.
            self._stream(command.vhost, stream).begin_at(command.first_offset)

    def queue_leaves(self, queue: "Queue") -> None:
        """It is about to be deleted, and so is what was leased of it."""
        self._acks.pop(queue.kernel, None)
        for lease in self._table.of_queue(queue.vhost.name, queue.name):
            self.endings.forget(lease)

    # What there is.

    def of_queue(self, queue: "Queue") -> list[LeaseView]:
        return [lease.view() for lease in self._table.of_queue(queue.vhost.name, queue.name)]

    def leased_count(self, queue: "Queue") -> int:
        return sum(lease.message_count for lease in self._table.of_queue(queue.vhost.name, queue.name))

    def acked_count(self, queue: "Queue") -> int:
        """To be added to what the kernel says."""
        return self._acks.get(queue.kernel, 0)

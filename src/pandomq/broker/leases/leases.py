"""The root's handling of leases: it grants them, takes releases, and ends those without requests for too long.

Requests come outside of batches; the next batch, which may be empty, writes their changes to the log, and they are
answered once that is committed. Time-outs are the root's own: each request counts anew, and a new root counts from when
it began to serve (`ending`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker.leases.asks import LeaseAsk, LeaseEnds, check_ask, queue_refusal
from pandomq.broker.leases.expiry import LeaseExpiry
from pandomq.broker.leases.giving_back import reinstate
from pandomq.broker.leases.lease import Lease, LeaseView, stream_name
from pandomq.broker.leases.moving import Mover
from pandomq.broker.log.commands import (
    DeclareQueue,
    LeaseCommand,
    LeaseMessages,
    PutLease,
    ReleaseLeased,
    ReturnLeased,
)
from pandomq.errors import not_found, precondition_failed
from pandomq.fieldtable import encode_table
from pandomq.limits import LEASE_MOVE_BYTES_MAX, LEASE_MOVE_MESSAGES_MAX, LEASES_MAX

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.streams.stream import Stream
    from pandomq.broker.vhost import Vhost

STREAM_ARGUMENTS: Final = encode_table({"x-queue-type": "stream"})
OFFSETS_PER_MS: Final = 1_000_000
"""The stream of a lease begins at an offset derived from its time: so messages of an earlier lease of the same name are
never mistaken for those of this one."""


OnLease = Callable[[LeaseView], None]


class Leases:
    __slots__ = ("_acks", "_awaited", "_broker", "_mover", "_table", "expiry")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._table = broker.state.leases
        self._mover = Mover(broker.engine)
        self.expiry = LeaseExpiry(broker)
        self._awaited: dict[tuple[str, str, str], tuple[LeaseAsk, kernel.Queue]] = {}
        """The last requests that got nothing because the next message is on the disk."""
        self._acks: dict[kernel.Queue, int] = {}
        """How many more messages of a queue are acknowledged than the kernel counts, since this broker is root; fewer,
        if it is negative: the kernel counts them as acknowledged when they are leased."""

    # Requests.

    def lease(self, ask: LeaseAsk, on_lease: OnLease, now_ms: int) -> None:
        """A new lease, or more messages for an existing one. Raises Fault (404, 405, 406, 540) or LeaseEnds."""
        broker = self._broker
        broker.now_ms = now_ms - broker.clock_ahead_ms
        check_ask(ask)
        vhost, queue = self._find_queue(ask.vhost, ask.queue)
        lease = self._table.find(ask.vhost, ask.queue, ask.name)
        if lease is None:
            lease = self._begin(ask, vhost, queue)
        elif lease.ending:
            raise LeaseEnds(f"lease '{ask.name}' of {queue.resource} is ending: try again in a moment")
        elif lease.timeout_ms != ask.timeout_ms:
            broker.log(PutLease(ask.vhost, ask.queue, ask.name, lease.first_offset, ask.timeout_ms))
        self._move(ask, lease, queue)
        self.expiry.renewed(lease)
        queue.used_ms = broker.now_ms
        has_room = lease.message_count < ask.messages_max and lease.size_bytes < ask.bytes_max
        view = lease.view(more=has_room and queue.kernel.ready_count > 0)
        broker.held.call_when_committed(lambda: on_lease(view))

    def release(self, vhost: str, queue: str, name: str, offset: int, on_lease: OnLease, now_ms: int) -> None:
        """Messages leased before this offset are released. Raises Fault (404, 406) or LeaseEnds."""
        broker = self._broker
        broker.now_ms = now_ms - broker.clock_ahead_ms
        lease = self._find(vhost, queue, name)
        if lease.ending:
            raise LeaseEnds(f"lease '{name}' of queue '{queue}' is ending: try again in a moment")
        if offset > lease.end_offset:
            raise precondition_failed(
                f"lease '{name}' of queue '{queue}' ends at offset {lease.end_offset}, not at {offset}"
            )
        if offset > lease.first_offset:
            released = offset - lease.first_offset
            broker.log(ReleaseLeased(vhost, queue, name, offset))
            self._count(broker.state.vhosts[vhost].queues[queue].kernel, released)
        self.expiry.renewed(lease)
        view = lease.view()
        broker.held.call_when_committed(lambda: on_lease(view))

    def end(self, vhost: str, queue: str, name: str, on_lease: OnLease, now_ms: int) -> None:
        """The lease's remaining messages go back to the queue. Raises Fault (404)."""
        broker = self._broker
        broker.now_ms = now_ms - broker.clock_ahead_ms
        lease = self._find(vhost, queue, name)
        self.expiry.end(lease)
        view = lease.view()
        broker.held.call_when_committed(lambda: on_lease(view))

    def renew(self, vhost: str, stream: str, now_ms: int) -> None:
        """A client reads the stream of a lease."""
        lease = self._table.of_stream(vhost, stream)
        if lease is not None:
            self.expiry.read(lease, now_ms - self._broker.clock_ahead_ms)

    def queue_of(self, vhost: str, stream: str) -> str | None:
        """The queue that the reader of this lease's stream must be allowed to read; None if it is no such stream."""
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
            raise precondition_failed(f"the maximum number of leases ({LEASES_MAX}) is reached: end a lease first")
        broker = self._broker
        of_user_max = broker.limits.leases_per_user_max
        if self.count_of(ask.user) >= of_user_max > 0:
            raise precondition_failed(
                f"user '{ask.user}' has {of_user_max} leases, so leases_per_user_max is reached: end a lease first"
            )
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
            # Other brokers may know of acks that were lost with the last root. The client learns that there are more
            # messages.
            return
        messages_max = min(ask.messages_max - lease.message_count, LEASE_MOVE_MESSAGES_MAX)
        bytes_max = min(ask.bytes_max - lease.size_bytes, LEASE_MOVE_BYTES_MAX)
        stream = self._stream(lease.vhost, lease.stream).queue
        runs = self._mover.move(queue.kernel, stream, messages_max, bytes_max, self._broker.now_ms)
        if not runs and queue.kernel.head_missing:
            # By the next request it might have left memory once more.
            self._awaited[ask.vhost, ask.queue, ask.name] = (ask, queue.kernel)
        if runs:
            self._count(queue.kernel, -sum(run.messages for run in runs))
            command = LeaseMessages(lease.vhost, lease.queue, lease.name, list(runs))
            self._broker.log(command)

    @property
    def is_waiting(self) -> bool:
        """`go_on` would have an effect."""
        if self.expiry.waiting:
            return True
        return bool(self._awaited) and any(not queue.head_missing for _, queue in self._awaited.values())

    def go_on(self) -> None:
        """Within a batch: due messages go back, and messages that were fetched from the disk are moved."""
        if self.expiry.waiting:
            self.expiry.go_on()
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

    # The effects of commands, on every broker.

    def apply(self, command: LeaseCommand) -> None:
        is_new = isinstance(command, PutLease) and self._table.find(command.vhost, command.queue, command.name) is None
        self._broker.state.apply(command)
        stream = stream_name(command.queue, command.name)
        if isinstance(command, ReturnLeased):
            vhost = self._broker.state.vhosts[command.vhost]
            reinstate(self._broker.engine, vhost.queues[command.queue].kernel, command)
        if isinstance(command, LeaseMessages):
            # The log of a single broker does not have messages that are not persistent until they are leased. They may
            # come back to the queue under their numbers, which therefore must not be given to others.
            source = self._broker.state.vhosts[command.vhost].queues[command.queue].kernel
            for sequence, count, *_ in command.runs:
                source.next_sequence = max(source.next_sequence, sequence + count)
        if isinstance(command, ReturnLeased | ReleaseLeased):
            self._stream(command.vhost, stream).drop_before(command.offset)
        elif isinstance(command, PutLease) and is_new:
            # The snapshot's own data about the stream follows, and takes precedence.
            self._stream(command.vhost, stream).begin_at(command.first_offset)

    def queue_leaves(self, queue: "Queue") -> None:
        """The queue is about to be deleted, and so are its leased messages."""
        self._acks.pop(queue.kernel, None)
        for lease in self._table.of_queue(queue.vhost.name, queue.name):
            self.expiry.forget(lease)

    # Views.

    def of_queue(self, queue: "Queue") -> list[LeaseView]:
        return [lease.view() for lease in self._table.of_queue(queue.vhost.name, queue.name)]

    def leased_count(self, queue: "Queue") -> int:
        return sum(lease.message_count for lease in self._table.of_queue(queue.vhost.name, queue.name))

    def count_of(self, user: str) -> int:
        """Leases that this user began."""
        vhosts = self._broker.state.vhosts
        streams = (vhosts[lease.vhost].inner_queues[lease.stream] for lease in self._table)
        return sum(stream.user == user for stream in streams)

    def acked_count(self, queue: "Queue") -> int:
        """To be added to the kernel's count."""
        return self._acks.get(queue.kernel, 0)

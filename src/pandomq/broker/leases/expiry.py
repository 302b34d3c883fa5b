"""Ends leases, and returns their remaining messages to the queues: read from their streams, one chunk per batch.

The log has the end before anything goes back, and with each chunk the progress: if a root crashes in between, the next
one does the rest. Only what is committed can be read, so the first chunk is requested when the end is.
"""

from typing import TYPE_CHECKING

from pandomq.broker.leases.giving_back import give_back
from pandomq.broker.log.commands import EndLease, ForgetLease
from pandomq.broker.queues.removal import delete_queue
from pandomq.limits import LEASE_RETRY_MS

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.leases.lease import Lease


class LeaseExpiry:
    __slots__ = ("_broker", "_came", "_due_ms", "_table")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._table = broker.state.leases
        self._due_ms: dict[Lease, int] = {}
        """The time at which each lease ends without a request, or is checked again if it is ending. Only the root
        judges that."""
        self._came: list[tuple[Lease, bytes | None]] = []
        """Chunks that were requested, for the next batch; None: there is none."""

    # Time.

    def begin_serving(self) -> None:
        """To be called when this broker becomes root: every lease has its whole time, as no client could renew it for a
        while."""
        for lease in self._table:
            if lease.queue not in self._broker.state.vhosts[lease.vhost].queues:
                # The lease was not durable.
                self.forget(lease)
            elif lease.ending:
                self._read(lease)
            else:
                self.renewed(lease)

    def renewed(self, lease: "Lease") -> None:
        """A client requested the lease."""
        if not lease.ending:
            self._watch(lease, self._broker.now_ms + lease.timeout_ms)

    def read(self, lease: "Lease", now_ms: int) -> None:
        """A client reads its stream, here; if this is not the root that changes nothing."""
        if lease in self._due_ms and not lease.ending:
            self._due_ms[lease] = now_ms + lease.timeout_ms

    def _watch(self, lease: "Lease", at_ms: int) -> None:
        self._due_ms[lease] = at_ms
        self._broker.timers.watch_leases(at_ms)

    def overdue(self, now_ms: int) -> None:
        for lease in [lease for lease, at_ms in self._due_ms.items() if at_ms <= now_ms]:
            del self._due_ms[lease]
            if lease.ending:
                self._read(lease)
            elif self._is_there(lease):
                self.end(lease)
        if self._due_ms:
            self._broker.timers.watch_leases(min(self._due_ms.values()))

    # The end.

    def end(self, lease: "Lease") -> None:
        if not lease.ending:
            self._broker.log(EndLease(lease.vhost, lease.queue, lease.name))
            self._due_ms.pop(lease, None)
            self._broker.held.call_when_committed(lambda: self._read(lease))

    def _read(self, lease: "Lease") -> None:
        """Requests the chunk with the first remaining message."""
        if not self._is_there(lease):
            return
        if not lease.message_count:
            self._came.append((lease, None))
            return
        stream = self._broker.state.vhosts[lease.vhost].inner_queues[lease.stream].stream
        assert stream is not None
        stream.read(lease.first_offset, lambda chunk: self._came.append((lease, chunk)))

    @property
    def waiting(self) -> bool:
        """A chunk came for the next batch."""
        return bool(self._came)

    def go_on(self) -> None:
        """Called within a batch."""
        came, self._came = self._came, []
        for lease, chunk in came:
            if not self._is_there(lease):
                continue
            if chunk is not None:
                queue = self._broker.state.vhosts[lease.vhost].queues[lease.queue]
                give_back(self._broker, lease, queue, chunk)
            if not lease.message_count:
                self.forget(lease)
            elif chunk is not None:
                self._read(lease)
            else:
                # The chunk could not be read.
                self._watch(lease, self._broker.now_ms + LEASE_RETRY_MS)

    def _is_there(self, lease: "Lease") -> bool:
        """The lease may have been deleted with its vhost."""
        return self._table.find(lease.vhost, lease.queue, lease.name) is lease

    def forget(self, lease: "Lease") -> None:
        """Forgets the lease with its stream, and whatever is in that."""
        self._due_ms.pop(lease, None)
        stream = self._broker.state.vhosts[lease.vhost].inner_queues.get(lease.stream)
        self._broker.log(ForgetLease(lease.vhost, lease.queue, lease.name))
        if stream is not None:
            delete_queue(self._broker, stream)

"""Restores a broker's state: the parts of a snapshot, the log's entries after it, and the effects of a restart on
objects that are not durable.

Deliveries are in no log. So unless the broker stopped in order, and its snapshot is the last record, every restored
message may have been delivered before, and is marked redelivered; that does not count towards a delivery limit.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from pandomq import kernel
from pandomq.broker.log.commands import DeleteExchange, DeleteQueue, decode_command
from pandomq.broker.log.hand_over import mark_delivered
from pandomq.broker.log.snapshot import (
    VERSION,
    BrokerSnapshotHead,
    CommandPart,
    KeptChunk,
    KeptMessage,
    KeptPage,
    KeptProducers,
    KeptSequences,
    KeptStream,
    KeptTermStart,
    QueueMark,
    StoredAt,
    read_parts,
)
from pandomq.broker.publishing.delayed import DelayedMessages
from pandomq.broker.queues.queue_arguments import NO_REPLICATION
from pandomq.broker.streams.chunk_index import SealedChunk

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.vhost import Vhost


class UnknownSnapshot(ValueError):
    """The snapshot's version is not known."""


class Revival:
    """Calls in this order: `take` for each piece of the snapshot, `apply` for each entry, `finish`."""

    def __init__(self, broker: "Broker", adopt: Callable[[StoredAt], object]) -> None:
        """`adopt` returns the `owner` of a page that is stored there."""
        self._broker = broker
        self._adopt = adopt
        self._stream = bytearray()
        self._exact = False
        self.last_ms = 0
        """The cluster's time of the last known event."""

    def take(self, piece: bytes) -> None:
        """Raises UnknownSnapshot."""
        broker = self._broker
        self._stream += piece
        for part in read_parts(self._stream):
            match part:
                case BrokerSnapshotHead():
                    self._take_head(part)
                case CommandPart():
                    broker.change(decode_command(part.command))
                case KeptProducers(rows):
                    for row in rows:
                        broker.state.producers.reinstate(*row)
                case KeptSequences():
                    for named, user in part.of_users():
                        broker.state.named_producers.reinstate(named, user)
                case QueueMark():
                    queue = broker.state.logged[part.queue_id][1].kernel
                    queue.next_sequence = max(queue.next_sequence, part.next_sequence)
                case KeptTermStart(term, firsts):
                    broker.state.term_starts.reinstate(term, firsts)
                    # The next entry of this term does not begin it again.
                    broker.engine.term = term
                case KeptPage(queue_id, stored_at, index, holes):
                    queue = broker.state.logged[queue_id][1].kernel
                    queue.reinstate_page((index, holes), self._adopt(stored_at))
                case KeptChunk() | KeptStream():
                    self._take_stream(part)
                case KeptMessage():
                    self._take_message(part)
                case _:
                    assert_never(part)

    def _take_head(self, head: BrokerSnapshotHead) -> None:
        if head.version > VERSION:
            raise UnknownSnapshot(
                f"the snapshot has version {head.version}, but only versions up to {VERSION} are supported"
            )
        state = self._broker.state
        state.had_users = head.had_users
        state.next_queue_id = head.next_queue_id
        self._exact = head.exact
        self._broker.now_ms = self.last_ms = head.now_ms

    def _take_message(self, kept: KeptMessage) -> None:
        message = kernel.Message(kept.routing, kept.header, kept.body)
        broker = self._broker
        for queue_id, sequence, term, at_ms, delivery_count, redelivered in kept.places:
            vhost, owner = broker.state.logged[queue_id]
            if isinstance(owner, DelayedMessages):
                owner.kernel.reinstate(message, sequence, term, kernel.NEVER_MS, 0, False)
                owner.reinstated(sequence, at_ms)
                broker.timers.watch_delayed(vhost, owner)
            else:
                owner.kernel.reinstate(message, sequence, term, at_ms, delivery_count, redelivered)

    def _take_stream(self, kept: KeptChunk | KeptStream) -> None:
        stream = self._broker.state.logged[kept.queue_id][1].stream
        assert stream is not None
        if isinstance(kept, KeptChunk):
            stream.index.add(
                SealedChunk(
                    kept.first_offset,
                    kept.last_offset,
                    kept.count,
                    kept.size_bytes or kept.stored_at[2],
                    kept.first_time_us,
                    kept.last_time_us,
                    kept.begins_segment,
                    self._adopt(kept.stored_at),
                )
            )
            return
        stream.queue.reinstate_stream(kept.next_sequence, kept.open_rows)
        for name, offset in kept.offsets.items():
            stream.offsets.store(name, offset, 0, kept.offset_users.get(name, ""))

    def apply(self, index: int, term: int, entry: bytes) -> None:
        self._exact = False
        self._broker.apply(index, term, entry)
        self.last_ms = self._broker.now_ms

    def finish(self, now_ms: int, *, takeover: bool = False, handed_over: bytes | None = None) -> None:
        """Removes what a restart ends; the next batch, which may be empty, writes that to the log. After a takeover,
        when other brokers were up all the time, queues that are not durable stay, and are empty; `handed_over` is the
        last root's report of deliveries, if it sent one."""
        broker = self._broker
        broker.now_ms = now_ms
        if not takeover:
            for vhost in list(broker.state.vhosts.values()):
                self._forget_passing(vhost)
        if broker.replicated:
            self._delete_unreplicated()
        for vhost in broker.state.vhosts.values():
            # A durable exchange outlives bindings that a restart or a takeover ends, also if it is deleted with its
            # last one.
            vhost.orphans.clear()
        broker.state.term_starts.begin(broker.state.next_sequences())
        for _, owner in broker.state.logged.values():
            if not self._exact and handed_over is None:
                owner.kernel.suspect()
            if not isinstance(owner, DelayedMessages):
                owner.used_ms = now_ms
            broker.timers.watch_messages(owner.kernel)
        if handed_over is not None:
            mark_delivered(broker, handed_over)
        broker.engine.waiting_for_time.clear()
        broker.leases.expiry.begin_serving()

    def _delete_unreplicated(self) -> None:
        """Deletes the queues that only the last root was to have."""
        for vhost in list(self._broker.state.vhosts.values()):
            for queue in [queue for queue in vhost.queues.values() if queue.is_local]:
                if queue.settings.replicate == NO_REPLICATION:
                    self._broker.issue(DeleteQueue(vhost.name, queue.name))

    def _forget_passing(self, vhost: "Vhost") -> None:
        queues = [queue.name for queue in vhost.queues.values() if not queue.durable]
        exchanges = [exchange.name for exchange in vhost.router.exchanges.values() if not exchange.durable]
        for name in queues:
            self._broker.issue(DeleteQueue(vhost.name, name))
        for name in exchanges:
            self._broker.issue(DeleteExchange(vhost.name, name))

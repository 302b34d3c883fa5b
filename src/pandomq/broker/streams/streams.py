"""All streams of a broker: the events of their chunks in a batch, their readers, and stored offsets."""

from typing import TYPE_CHECKING

from pandomq.broker.log.commands import StoreOffset
from pandomq.broker.streams.retention import ArchiveWarnings
from pandomq.errors import not_found

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.administration.administration import OnDone
    from pandomq.broker.broker import Broker
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.streams.stream import Stream


class Streams:
    __slots__ = ("_broker", "archive_warnings")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.archive_warnings = ArchiveWarnings()

    def find(self, vhost: str, name: str) -> "Stream | None":
        """Finds also a stream of the broker's own."""
        home = self._broker.state.vhosts.get(vhost)
        queue = None if home is None else home.queues.get(name) or home.inner_queues.get(name)
        return None if queue is None else queue.stream

    @property
    def held_bytes(self) -> int:
        """The memory that they hold for lack of a disk: sealed chunks."""
        return self._broker.state.chunk_cache.held_bytes

    def full_of(self, stream: "Stream") -> "list[kernel.Chunk]":
        """Its chunks that became full in this batch. They are in no list before the batch's end, since what is kept
        then depends on all that the batch does."""
        return [chunk for place, chunk in self._broker.engine.full_chunks if place is stream.queue]

    @property
    def is_wanted(self) -> bool:
        """`turn` would have an effect."""
        engine = self._broker.engine
        return bool(engine.full_chunks or engine.wanted_chunks or self._broker.state.archived_queues)

    def turn(self) -> None:
        """To be called after `Engine.deliver`, and after each replayed entry: full chunks go to the chunk cache, and
        readers get those they need, whose messages they deliver in another batch."""
        engine, now_us = self._broker.engine, self._broker.now_ms * 1000
        if engine.full_chunks:
            for place, chunk in engine.full_chunks:
                queue: Queue = place.owner
                if not place.deleted and queue.stream is not None:
                    lost = queue.stream.sealed(chunk, queue.settings, now_us)
                    if queue.settings.archive is not None:
                        self.archive_warnings.look_at(queue, lost)
            engine.full_chunks.clear()
        if self._broker.state.archived_queues:
            for queue in self._broker.state.archived_queues:
                if not queue.kernel.deleted and queue.stream is not None:
                    self.archive_warnings.look_at(queue, queue.stream.retain(queue.settings, now_us))
            self._broker.state.archived_queues.clear()
        if engine.wanted_chunks:
            wanted = list(engine.wanted_chunks)
            engine.wanted_chunks.clear()
            for consumer in wanted:
                self._serve(consumer)

    def _serve(self, consumer: "kernel.Consumer") -> None:
        if consumer.queue.deleted:
            return
        changes = self._broker.changes
        stream: Stream = consumer.queue.owner.stream
        try:
            stream.open_at(consumer.next_offset, consumer.read_from)
        except Exception as error:
            self._broker.containment.close(consumer.channel.owner.client, error, changes)

    def store_offset(
        self, vhost: str, stream: str, user: str, name: str, offset: int, on_done: "OnDone", now_ms: int
    ) -> None:
        """Stores an offset at the root, outside of a batch; the next one, which may be empty, writes it to the log.
        `on_done` is called at once with a fault (403, 404, 406), or with None when it is committed."""
        broker = self._broker
        found = self.find(vhost, stream)
        if found is None:
            on_done(not_found(f"no stream '{stream}' in vhost '{vhost}'"))
            return
        refusal = found.offsets.refusal(
            name,
            offset,
            found.first_offset,
            user,
            broker.state.users,
            broker.limits.stored_offsets_per_user_max,
            broker.limits.stored_offsets_per_user_total_max,
        )
        if refusal is not None:
            on_done(refusal)
            return
        broker.now_ms = now_ms - broker.clock_ahead_ms
        broker.log(StoreOffset(vhost, stream, name, offset, user))
        broker.held.call_when_committed(lambda: on_done(None))

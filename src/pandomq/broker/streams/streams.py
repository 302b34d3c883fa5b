"""All streams of a broker: what became of their chunks in a batch, who reads which, and offsets that are stored."""

from typing import TYPE_CHECKING

from pandomq.broker.commands import StoreOffset
from pandomq.broker.streams.retention import Notices
from pandomq.errors import not_found

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.administration import OnDone
    from pandomq.broker.broker import Broker
    from pandomq.broker.queue import Queue
    from pandomq.broker.streams.stream import Stream


class Streams:
    __slots__ = ("_broker", "notices")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.notices = Notices()

    def find(self, vhost: str, name: str) -> "Stream | None":
        """Also one of the broker's own."""
        home = self._broker.state.vhosts.get(vhost)
        queue = None if home is None else home.queues.get(name) or home.inner_queues.get(name)
        return None if queue is None else queue.stream

    @property
    def held_bytes(self) -> int:
        """What they have in memory for want of a disk: sealed chunks."""
        return self._broker.state.shelf.held_bytes

    def full_of(self, stream: "Stream") -> "list[kernel.Chunk]":
        """Chunks of it that became full in this batch. They are in no list before its end, since what is kept then
        depends on all that the batch does."""
        return [chunk for place, chunk in self._broker.engine.full_chunks if place is stream.queue]

    @property
    def is_wanted(self) -> bool:
        """`turn` has something to do."""
        engine = self._broker.engine
        return bool(engine.full_chunks or engine.wanted_chunks or self._broker.state.archived_queues)

    def turn(self) -> None:
        """After `Engine.deliver`, and after each entry that was replayed: chunks that became full go where they are
        kept, and readers get those they want. What they get now they deliver in another batch."""
        engine, now_us = self._broker.engine, self._broker.now_ms * 1000
        if engine.full_chunks:
            for place, chunk in engine.full_chunks:
                queue: Queue = place.owner
                if not place.deleted and queue.stream is not None:
                    lost = queue.stream.sealed(chunk, queue.settings, now_us)
                    if queue.settings.archive is not None:
                        self.notices.look_at(queue, lost)
            engine.full_chunks.clear()
        if self._broker.state.archived_queues:
            for queue in self._broker.state.archived_queues:
                if not queue.kernel.deleted and queue.stream is not None:
                    self.notices.look_at(queue, queue.stream.retain(queue.settings, now_us))
            self._broker.state.archived_queues.clear()
        if engine.wanted_chunks:
            wanted = list(engine.wanted_chunks)
            engine.wanted_chunks.clear()
            for consumer in wanted:
                self._serve(consumer)

    @staticmethod
    def _serve(consumer: "kernel.Consumer") -> None:
        if not consumer.queue.deleted:
            stream: Stream = consumer.queue.owner.stream
            stream.open_at(consumer.next_offset, consumer.read_from)

    def store_offset(self, vhost: str, stream: str, name: str, offset: int, on_done: "OnDone", now_ms: int) -> None:
        """At the root, outside of a batch; the next one, which may be empty, writes it to the log. `on_done` hears at
        once what is wrong (404, 406), or None when it is committed."""
        broker = self._broker
        found = self.find(vhost, stream)
        if found is None:
            on_done(not_found(f"no stream '{stream}' in vhost '{vhost}'"))
            return
        refusal = found.offsets.refusal(name, offset, found.first_offset)
        if refusal is not None:
            on_done(refusal)
            return
        broker.now_ms = now_ms - broker.clock_ahead_ms
        broker.log(StoreOffset(vhost, stream, name, offset))
        broker.held.call_when_committed(lambda: on_done(None))

"""A little broker around one twin of the kernel: routes by a table, records what the kernel asks and tells.

Everything is named by numbers, so that the same calls can be made in two worlds and their answers compared.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pandomq.kernel import constants, faults
from tests.unit.kernel.frames import read

Row = tuple[Any, ...]


class World:
    """Also the Hooks of its engine."""

    def __init__(self, kernel: ModuleType) -> None:
        self.kernel = kernel
        self.engine = kernel.Engine(self)
        self.routes = kernel.Routes(8)
        self.now_ms = 1000
        self.index = 0
        self.sessions: list[Any] = []
        self.scanners: list[Any] = []
        self.unsent: list[bytes] = []  # what a client has begun to send
        self.channels: list[Any] = []
        self.queues: list[Any] = []
        self.awaited: list[Any] = []  # messages with places that were not admitted yet
        self.consumers: list[Any] = []
        self.owed: dict[Any, int] = {}
        self.table: dict[str, list[Any]] = {}
        self.plans: list[Any] = []
        self.events: list[Row] = []
        self.blobs: list[bytes] = []  # of pages; a page's owner is its number
        self.wanted: list[Any] = []  # pages that are being read
        self.paged: list[int] = []  # the owners of all pages that ever were
        self.freed: list[int] = []
        self.settings: list[dict[str, Any]] = []  # of the queues
        self.seen: dict[int, int] = {}
        self.chunks: dict[int, list[Any]] = {}  # of streams, by the owner of the queue
        self.traces: list[Any] = []
        self.wanted_chunks: list[Any] = []  # consumers that wait for one

    # --- hooks

    def publish(self, channel: Any, message: Any, flags: int) -> None:
        self.events.append(("publish", channel.owner, *self.name(message), message.special, message.body_size, flags))
        relayed = channel.session.uplink is not None
        if channel.mode == constants.TRANSACTION or flags & ~constants.MANDATORY:
            if relayed:
                self.engine.forward(channel, message, flags)
            return
        plan = self.kernel.Plan(self.table.get(message.routing_key, []))
        self.plans.append(plan)
        channel.session.routes.put(message.routing, plan)
        if relayed:
            if plan.queues:
                self.engine.enqueue(None, message, plan.queues, 0, self.now_ms)
            self.engine.forward(channel, message, 0 if plan.queues else flags)
            return
        accepted = self.engine.enqueue(channel, message, plan.queues, flags, self.now_ms)
        self.events.append(("accepted", accepted))

    def fan_out(self, owner: Any, message: Any) -> None:
        self.events.append(("fan out", owner, *self.name(message)))
        plan = self.kernel.Plan(self.table.get(message.routing_key, []))
        self.plans.append(plan)
        self.routes.put(message.routing, plan)
        self.engine.enqueue(None, message, plan.queues, 0, self.now_ms)

    def settle(self, channel: Any, method_id: int, tag: int, multiple: bool, requeue: bool) -> None:
        self.events.append(("settle", channel.owner, method_id, tag, multiple, requeue))

    def unknown_tag(self, channel: Any, method_id: int, tag: int) -> None:
        self.events.append(("unknown tag", channel.owner, method_id, tag))
        channel.open = False

    def unknown_channel(self, session: Any, number: int, class_id: int, method_id: int) -> None:
        self.events.append(("unknown channel", session.owner, number, class_id, method_id))

    def redelivered_copy(self, message: Any, delivery_count: int) -> Any:
        return self.kernel.Message(message.routing, message.header, message.body + b"#%d" % delivery_count)

    # --- building

    def session(self, frame_max: int = 131072, out_bytes_max: int = 1 << 20) -> Any:
        session = self.kernel.Session(self.engine, len(self.sessions), self.routes, frame_max, out_bytes_max)
        self.sessions.append(session)
        self.unsent.append(b"")
        self.scanners.append(self.kernel.Scanner(frame_max, 1 << 20))
        return session

    def channel(self, session: Any = None, number: int = 1, mode: int = 0) -> Any:
        channel = self.kernel.Channel(session or self.session(), number, len(self.channels))
        channel.mode = mode
        self.channels.append(channel)
        return channel

    def queue(self, key: str | None = None, *, logged: bool = False, **settings: Any) -> Any:
        queue = self.kernel.Queue(self.engine, len(self.queues), len(self.queues) + 1, logged)
        queue.configure(**settings)
        self.settings.append(settings)
        self.queues.append(queue)
        self.bind(key if key is not None else f"q{queue.owner}", queue)
        return queue

    def bind(self, key: str, queue: Any) -> None:
        bound = self.table.setdefault(key, [])
        if queue not in bound:
            bound.append(queue)
        for plan in self.plans:
            plan.withdraw()
        self.plans.clear()

    def consumer(self, channel: Any, queue: Any, *, no_ack: bool = False, prefetch: int = 0, priority: int = 0) -> Any:
        number = len(self.consumers)
        consumer = self.kernel.Consumer(channel, queue, b"c%d" % number, no_ack, prefetch, priority, number)
        self.consumers.append(consumer)
        return consumer

    def message(self, body: bytes = b"", props: bytes = b"\0\0", key: str = "") -> Any:
        header = b"\0\x3c\0\0" + len(body).to_bytes(8, "big") + props
        return self.kernel.Message(self.kernel.routing_of("", key), header, body)

    # --- driving

    def feed(self, session: Any, data: bytes) -> None:
        data, self.unsent[session.owner] = self.unsent[session.owner] + data, b""
        for output in self.scanners[session.owner].feed(data):
            if isinstance(output, self.kernel.PublishRun):
                self.engine.publish(session, output, self.now_ms)
            elif isinstance(output, self.kernel.SettleRun):
                self.engine.settle(session, output, self.now_ms)
            else:
                self.events.append(tuple(output))
                if isinstance(output, faults.ScanFault):
                    self.scanners[session.owner] = self.kernel.Scanner(session.frame_max, 1 << 20)

    def put(self, queue: Any, *bodies: bytes, props: bytes = b"\0\0", channel: Any = None) -> bool:
        accepted = True
        for body in bodies:
            accepted &= self.engine.enqueue(channel, self.message(body, props), (queue,), 0, self.now_ms)
        return accepted

    def end_batch(self, commit: bool = True) -> bytes | None:
        """Delivers, seals, and commits at once if wanted."""
        self.engine.deliver(self.now_ms)
        if self.engine.numbered:
            rows = [(channel.owner, channel.published_count) for channel in self.engine.numbered]
            self.events.append(("numbered", *rows))
            self.engine.numbered.clear()
        entry: bytes | None = self.engine.seal(self.now_ms)
        if entry is not None:
            self.index += 1
        self.engine.sealed(self.index if entry is not None else 0)
        if commit:
            self.engine.committed(self.index)
        return entry

    # --- paging

    def use_pages(self, page_messages: int = 3, page_bytes: int = 1 << 20, paging_bytes: int = 1) -> None:
        self.engine.page_messages = page_messages
        self.engine.page_bytes = page_bytes
        self.engine.paging_bytes = paging_bytes

    def page_out(self, bytes_max: int = 1 << 30) -> list[bytes]:
        pages = self.engine.page_out(bytes_max)
        for page, data in pages:
            page.owner = len(self.blobs)
            self.blobs.append(data)
            self.paged.append(page.owner)
        self.forget_freed()
        return [data for _, data in pages]

    def forget_freed(self) -> None:
        assert all(page.count == page.size_bytes == 0 for page in self.engine.freed)
        self.freed += [page.owner for page in self.engine.freed]
        self.engine.freed.clear()

    def load(self, number: int = 0) -> bool:
        """One of the pages that are wanted is read; False if there is none."""
        self.wanted += self.engine.wanted
        self.engine.wanted.clear()
        if not self.wanted:
            return False
        page = self.wanted.pop(number % len(self.wanted))
        self.engine.loaded(page, self.blobs[page.owner])
        self.forget_freed()
        return True

    def run(self, session: Any) -> list[Any]:
        """A batch, and what the session gets by it."""
        self.end_batch()
        return read(session.take())

    def bodies(self, session: Any) -> list[bytes]:
        return [event.body for event in self.run(session)]

    def take_dead(self) -> list[Row]:
        dead = [(queue.owner, message.body, reason, count) for queue, message, reason, count in self.engine.dead]
        self.engine.dead.clear()
        return dead

    # --- looking

    @staticmethod
    def name(message: Any) -> Row:
        return (
            message.routing, message.header, message.body, message.persistent, message.priority,
            message.expiration_ms, message.kept, message.producer, message.number,
        )  # fmt: skip

    def ready(self, queue: Any) -> list[bytes]:
        return [row[5].body for row in queue.snapshot()]

    def glance(self) -> dict[str, Any]:
        """Returns everything that can be seen without a change."""
        engine = self.engine
        counters = (
            "held_bytes", "held_messages", "published", "unroutable", "delivered", "redelivered", "acked", "confirmed",
            "active", "commit_index", "ready_bytes", "prompt",
        )  # fmt: skip
        return {
            "engine": tuple(getattr(engine, name) for name in counters),
            "dead": [(q.owner, self.name(m), reason, count) for q, m, reason, count in engine.dead],
            "numbered": [channel.owner for channel in engine.numbered],
            "returned": [(channel.owner, self.name(m), flags) for channel, m, flags in engine.returned],
            "waiting for time": [queue.owner for queue in engine.waiting_for_time],
            "pages": [[page.owner for page in pages] for pages in (engine.wanted, engine.freed)],
            "ready": [(queue.ready_count, queue.ready_bytes, queue.unacked_count) for queue in self.queues],
            "consumers": [(c.unacked_count, c.active, c.delivered, c.next_offset) for c in self.consumers],
            "streams": [queue.committed_end for queue in self.queues],
            "full chunks": [(q.owner, chunk.count, chunk.size_bytes) for q, chunk in engine.full_chunks[-3:]],
            "wanted chunks": [consumer.owner for consumer in engine.wanted_chunks],
            "sessions": [(session.pending_bytes, session.writable) for session in self.sessions],
            "traces": [(trace.count, trace.size_bytes, trace.dropped) for trace in self.traces],
            "events": self.events[-5:],
        }

    def view(self) -> dict[str, Any]:
        """All that can be seen from outside, comparable between worlds."""
        return {
            **self.glance(),
            "queues": [self._queue_view(queue) for queue in self.queues],
            "channels": [self._channel_view(channel) for channel in self.channels],
            "scanners": [scanner.buffered_bytes for scanner in self.scanners],
            "events": list(self.events),
        }

    def _queue_view(self, queue: Any) -> Row:
        counts = tuple(
            getattr(queue, name)
            for name in (
                "next_sequence", "ready_count", "ready_bytes", "unacked_count", "deleted", "timer_armed", "published",
                "delivered", "redelivered", "acked", "dropped", "consumer_count", "next_deadline_ms", "head_missing",
            )
        )  # fmt: skip
        rows = [(*row[:5], self.name(row[5])) for row in queue.snapshot()]
        pages = [(page.owner, page.count, page.size_bytes, page.index()) for page in queue.pages()]
        chunk = queue.open_chunk
        open_rows = chunk and [chunk.row(position) for position in range(chunk.count)]
        return (*counts, rows, pages, open_rows, [consumer.owner for consumer in queue.consumers()])

    def _channel_view(self, channel: Any) -> Row:
        return (
            channel.unacked_count,
            channel.published_count,
            channel.unconfirmed_count,
            (channel.kept_count, channel.kept_bytes, channel.first_kept),
            (channel.unproven_count, channel.settled_number),
            channel.oldest_delivery_ms,
            channel.open,
            channel.outstanding(0, True),
            [consumer.owner for consumer in channel.consumers()],
        )

    def check_if_plain(self) -> None:
        if self.kernel.KIND == "plain":
            self.check()

    def check(self) -> None:
        """The invariants of the plain twin."""
        for stateful in (self.engine, *self.queues, *self.sessions, *self.channels, *self.consumers):
            stateful.check()
        unacked = sum(channel.unacked_count for channel in self.channels)
        assert unacked == sum(queue.unacked_count for queue in (*self.queues, self.engine.nowhere))

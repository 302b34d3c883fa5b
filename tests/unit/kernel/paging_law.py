"""Two worlds on one twin, of which only one has pages: no other difference may be visible.

Requested pages arrive before the batch ends here, in any order, so that not even the timing differs. The law leaves out
behaviour that may depend on the order in which queues are served, or on the messages that a full queue has delivered at
the time of a publish: limits of a channel over several queues, sessions that are full, and queues that refuse.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pandomq.kernel import constants
from pandomq.kernel.records import DequeueRecord, decode_entry
from tests.unit.kernel.frames import ack, nack, publish, reject
from tests.unit.kernel.operations import PROPERTIES, one
from tests.unit.kernel.world import World

SETTINGS: list[dict[str, Any]] = [
    {},
    {"dead_letters": True, "delivery_limit": 2, "counts_deliveries": True},
    {"ttl_ms": 7, "dead_letters": True},
    {"length_max": 4, "dead_letters": True},
    {"length_max": 6, "dead_letters": True, "priority_max": 5},
    {"bytes_max": 40, "dead_letters": True},
    {"priority_max": 5},
    {"priority_max": 255, "ttl_ms": 9, "dead_letters": True},
    {"last_value_key": b"k"},
    {"last_value_key": b"k", "priority_max": 3, "length_max": 5},
    {"single_active": True, "ttl_ms": 20},
]
KEYS = ["q0", "q1", "fan", "q0", "q0", "q0"]


class PagingLaw:
    """Each step is a batch."""

    def __init__(self, kernel: ModuleType, kind: int) -> None:
        self.paged = World(kernel)
        self.unpaged = World(kernel)
        self.paged.use_pages()
        for world in (self.paged, self.unpaged):
            world.channel(mode=constants.CONFIRM)
            world.queue(logged=True, **SETTINGS[kind % len(SETTINGS)])
            world.queue(logged=kind % 2 == 0, **SETTINGS[kind // 2 % len(SETTINGS)])
            for queue in world.queues:
                world.bind("fan", queue)

    def step(self, name: str, a: int, b: int, c: int) -> None:
        if name == "page_out":
            self.paged.engine.paging_bytes = 1 + (0, 300, 1000)[a % 3]
            self.paged.page_out((1, 200, 1 << 30)[b % 3])
            self.paged.check_if_plain()
            return
        act = getattr(self, name)
        assert act(self.paged, a, b, c) == act(self.unpaged, a, b, c), name
        assert self._end(self.paged, a) == self._end(self.unpaged, a), name

    def _end(self, world: World, order: int) -> Any:
        """The batch's end, and all that is seen of it."""
        engine = world.engine
        self._deliver(world, order)
        # A timer would do it; that a page was loaded may do it before.
        for queue in world.queues:
            queue.expire(world.now_ms)
        self._deliver(world, order)
        world.check_if_plain()
        entry = world.end_batch()
        dead: dict[int, list[Any]] = {}
        for queue, message, reason, count in engine.dead:
            # One whose time is over when its turn to be dropped comes may die either way.
            why = reason if message.expiration_ms < 0 else None
            dead.setdefault(queue.owner, []).append((world.name(message), why, count))
        engine.dead.clear()
        world.forget_freed()
        return (
            [session.take() for session in world.sessions],
            sorted(dead.items()),
            _records(entry),
            [self._numbers(queue) for queue in world.queues],
            [channel.outstanding(0, True) for channel in world.channels],
        )

    @staticmethod
    def _deliver(world: World, order: int) -> None:
        world.engine.deliver(world.now_ms)
        while world.load(order):
            world.engine.deliver(world.now_ms)

    @staticmethod
    def _numbers(queue: Any) -> Any:
        names = "next_sequence", "ready_count", "ready_bytes", "unacked_count", "published", "delivered", "redelivered"
        return [getattr(queue, name) for name in (*names, "acked", "dropped", "deleted")]

    # --- what happens

    @staticmethod
    def publish(world: World, a: int, b: int, c: int) -> None:
        channel = world.channels[0]
        body = b"%d." % world.engine.published + b"x" * (c % 11)
        world.feed(channel.session, publish(KEYS[a % len(KEYS)].encode(), body, PROPERTIES[b % 11]))

    @staticmethod
    def consume(world: World, a: int, b: int, c: int) -> None:
        if len(world.consumers) < 5:
            queue = one([queue for queue in world.queues if not queue.deleted], a)
            if queue is not None:
                world.consumer(world.channel(), queue, no_ack=b % 4 == 0, prefetch=1 + b % 3, priority=c % 2)

    @staticmethod
    def settle(world: World, a: int, b: int, c: int) -> None:
        channel = one([channel for channel in world.channels if channel.unacked_count], a)
        if channel is not None:
            tag = one(channel.outstanding(0, True), b)
            ways = ack(tag), ack(tag, True), nack(tag, False, True), nack(tag, True, True), reject(tag, False)
            world.feed(channel.session, ways[c % len(ways)])

    @staticmethod
    def get(world: World, a: int, b: int, c: int) -> Any:
        queue = one(world.queues, a)
        if queue.deleted:
            return None
        got = queue.take(world.channels[0], b % 4 == 0, world.now_ms)
        while got is None and queue.head_missing:
            assert world.load(c)
            got = queue.take(world.channels[0], b % 4 == 0, world.now_ms)
        return got and (*got[:2], world.name(got[2]), got[3])

    @staticmethod
    def purge(world: World, a: int, b: int, c: int) -> Any:
        return one(world.queues, a).purge()

    @staticmethod
    def drop(world: World, a: int, b: int, c: int) -> None:
        queue = one(world.queues, a)
        queue.drop(max(1, queue.next_sequence - b % 20), (1, 2, 5, 1000)[c % 4])

    @staticmethod
    def delete(world: World, a: int, b: int, c: int) -> Any:
        queue = one(world.queues, a)
        if b % 8 or queue.deleted:
            return None
        for bound in world.table.values():
            if queue in bound:
                bound.remove(queue)
        for plan in world.plans:
            plan.withdraw()
        return queue.delete()

    @staticmethod
    def close(world: World, a: int, b: int, c: int) -> None:
        channel = one(world.channels[1:], a)
        if channel is not None:
            channel.close(world.now_ms)

    @staticmethod
    def pass_time(world: World, a: int, b: int, c: int) -> None:
        world.now_ms += a % 5
        for queue in world.queues:
            queue.expire(world.now_ms)

    @staticmethod
    def restore(world: World, a: int, b: int, c: int) -> None:
        queue = one(world.queues, a)
        message = world.message(b"r%d" % queue.next_sequence, PROPERTIES[c % 11])
        world.engine.restore(message, [(queue, queue.next_sequence + b % 3, 3)], world.now_ms)

    @staticmethod
    def prepare(world: World, a: int, b: int, c: int) -> None:
        message = world.message(b"p%d" % c, PROPERTIES[b % 11])
        queues = [queue for queue in world.queues if not queue.deleted]
        world.awaited.append((message, world.engine.prepare(None, message, queues, 0, world.now_ms, False)[1]))

    @staticmethod
    def admit(world: World, a: int, b: int, c: int) -> None:
        if world.awaited:
            world.engine.admit(*world.awaited.pop(a % len(world.awaited)))

    @staticmethod
    def suspect(world: World, a: int, b: int, c: int) -> None:
        if b % 4 == 0:
            one(world.queues, a).suspect()


WEIGHTS = {
    "publish": 40, "page_out": 25, "settle": 20, "consume": 6, "get": 8, "purge": 1, "drop": 2, "delete": 1, "close": 2,
    "pass_time": 8, "restore": 3, "prepare": 2, "admit": 3, "suspect": 1,
}  # fmt: skip


def _records(entry: bytes | None) -> Any:
    """The dequeues as a set: those of different queues may change places."""
    if entry is None:
        return None
    records = decode_entry(entry).records
    gone = {
        (record.queue_id, record.sequence_first + at)
        for record in records
        if isinstance(record, DequeueRecord)
        for at in range(record.count)
    }
    return gone, [record for record in records if not isinstance(record, DequeueRecord)]

"""Applies a log entry to the queues it names."""

from typing import TYPE_CHECKING, Any, assert_never

from pandomq.kernel.plain.message import Message
from pandomq.kernel.records import CommandRecord, DequeueRecord, EnqueueRecord, decode_entry

if TYPE_CHECKING:
    from pandomq.kernel.plain.queue import Queue


class KnownQueues(dict[int, "Queue | None"]):
    """Caches the answers of the hooks for queue ids."""

    def __init__(self, hooks: Any) -> None:
        super().__init__()
        self._hooks = hooks

    def __missing__(self, queue_id: int) -> "Queue | None":
        queue: Queue | None = self._hooks.find_queue(queue_id)
        self[queue_id] = queue
        return queue

    def weigh(self) -> None:
        for queue in self.values():
            if queue is not None:
                queue.weigh()


def replay(entry: bytes, term: int, hooks: Any) -> None:
    decoded = decode_entry(entry)
    hooks.began(decoded.now_ms)
    queues = KnownQueues(hooks)
    for record in decoded.records:
        match record:
            case EnqueueRecord():
                message = Message(record.routing, record.header, record.body)
                for queue_id, sequence in record.places:
                    queue = queues[queue_id]
                    if queue is not None and not queue.deleted:
                        queue.restore(message, sequence, term, decoded.now_ms)
                        if queue.withdrawable:
                            hooks.restored(queue, sequence, message)
            case DequeueRecord():
                queue = queues[record.queue_id]
                if queue is not None:
                    queue.drop(record.sequence_first, record.count)
            case CommandRecord():
                queues.weigh()
                queues.clear()
                hooks.command(record.command)
            case _:
                assert_never(record)
    queues.weigh()

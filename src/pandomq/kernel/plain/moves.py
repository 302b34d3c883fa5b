"""Messages that leave a queue for a stream."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.kernel.plain.queue import Queue


def move_ready(
    queue: "Queue", target: "Queue", count: int, bytes_max: int, now_ms: int
) -> list[tuple[int, int, int, int]]:
    if queue.stream is not None or queue.mirror or target.stream is None or target.deleted:
        raise ValueError("from a queue to a stream")
    moved: list[tuple[int, int, int, int]] = []
    size_bytes = 0
    ready = queue.ready
    queue.expire(now_ms)
    while len(moved) < count and size_bytes < bytes_max and ready.count:
        if ready.head_missing:
            ready.want_head()
            break
        entry = ready.pop_first()
        message = entry.message
        queue.engine.log.enqueue(message, [target])
        target.insert(message, now_ms)
        moved.append((entry.sequence, entry.term, entry.deadline_ms, entry.delivery_count))
        size_bytes += message.body_size
        # If the log forgets it, it is ready again, and must not follow those that were behind it.
        queue.gone_unseen(entry)
    queue.weigh()
    queue.watch_time()
    return moved

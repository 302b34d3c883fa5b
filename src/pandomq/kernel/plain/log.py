"""The records of one batch, in the form of records.py."""

from typing import TYPE_CHECKING

from pandomq.kernel.plain.message import Message
from pandomq.kernel.records import (
    ENTRY_START,
    QUEUES_PER_RECORD_MAX,
    VERSION,
    encode_command,
    encode_dequeue,
    encode_enqueue,
)

if TYPE_CHECKING:
    from pandomq.kernel.plain.queue import Queue
    from pandomq.kernel.plain.queue_exits import QueueExits


class LogBatch:
    """Collects dequeues into a range per queue, which is written when it ends: at a gap, a command, or the seal."""

    __slots__ = ("_records", "dequeuing", "has_additions", "total")

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self.total = 0  # records and dequeues since start
        self.has_additions = False  # the batch has records other than dequeues
        self.dequeuing: list[QueueExits] = []  # queues with an unwritten range, in the order in which those began

    def enqueue(self, message: Message, queues: list["Queue"]) -> None:
        """The message is about to enter these queues, each under its next sequence."""
        self.total += 1
        self.has_additions = True
        places = [(queue.queue_id, queue.next_sequence) for queue in queues]
        for first in range(0, len(places), QUEUES_PER_RECORD_MAX):
            some = places[first : first + QUEUES_PER_RECORD_MAX]
            self._records.append(encode_enqueue(some, message.routing, message.header, message.body))

    def dequeue(self, queue: "QueueExits", sequence: int) -> None:
        self.total += 1
        if queue.gone_count == 0:
            self.dequeuing.append(queue)
        elif sequence == queue.gone_first + queue.gone_count:
            queue.gone_count += 1
            return
        else:
            self._records.append(encode_dequeue(queue.queue_id, queue.gone_first, queue.gone_count))
        queue.gone_first = sequence
        queue.gone_count = 1

    def command(self, command: bytes) -> None:
        self.total += 1
        self.has_additions = True
        self._write_ranges()
        self._records.append(encode_command(command))

    def seal(self, now_ms: int) -> bytes | None:
        self._write_ranges()
        if not self._records:
            return None
        entry = b"".join((ENTRY_START.pack(VERSION, now_ms, len(self._records)), *self._records))
        self._records.clear()
        self.has_additions = False
        return entry

    @property
    def removal_count(self) -> int:
        return 0 if self.has_additions else len(self._records) + len(self.dequeuing)

    def _write_ranges(self) -> None:
        for queue in self.dequeuing:
            self._records.append(encode_dequeue(queue.queue_id, queue.gone_first, queue.gone_count))
            queue.gone_count = 0
        self.dequeuing.clear()

    def check(self) -> None:
        assert all(queue.gone_count > 0 for queue in self.dequeuing)
        assert len(set(map(id, self.dequeuing))) == len(self.dequeuing)

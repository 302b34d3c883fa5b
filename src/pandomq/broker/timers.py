"""Everything that happens because time passes: one heap of deadlines.

    messages   the first message of a queue expires
    queue      a queue with x-expires was not used
    delayed    a delayed message is due
    acks       a delivery was not acknowledged in time
    receipts   another broker was silent for too long
    leases     a lease was not requested for too long
    traces     collected traces are to be written

An outdated deadline is not searched for and removed; it is recognised when it comes, or when so many have gathered that
the heap is worth cleaning.
"""

from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

from pandomq import kernel

if TYPE_CHECKING:
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.broker.publishing.delayed import DelayedMessages
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost

ACK_SWEEP_MS_MIN: Final = 1000
"""Channels are checked for late acks at most this often; each check covers all of them."""
CLEANING_SIZE_MIN: Final = 1024
"""A heap smaller than this is not worth cleaning."""


class TimerKind(IntEnum):
    MESSAGES = 0
    QUEUE = 1
    DELAYED = 2
    ACKS = 3
    RECEIPTS = 4
    LEASES = 5
    TRACES = 6


_Deadline: TypeAlias = tuple[int, int, TimerKind, Any]
"""The time, a number that decides between equal times, the kind, and the subject."""


class Timers:
    """Returns due deadlines; `deadlines` handles them."""

    __slots__ = (
        "_cleaning_size",
        "_heap",
        "_leases_ms",
        "_number",
        "_receipts_ms",
        "_shortest_ack_ms",
        "_sweep_ms",
        "_traces_ms",
        "_watched_ms",
    )

    def __init__(self) -> None:
        self._heap: list[_Deadline] = []
        self._number = 0
        self._cleaning_size = CLEANING_SIZE_MIN
        self._watched_ms: dict[kernel.Queue | Queue | DelayedMessages, int] = {}
        """The valid deadline; others of the same subject are outdated."""
        self._shortest_ack_ms = kernel.NEVER_MS
        self._sweep_ms = kernel.NEVER_MS
        self._receipts_ms = kernel.NEVER_MS
        self._leases_ms = kernel.NEVER_MS
        self._traces_ms = kernel.NEVER_MS

    @property
    def next_ms(self) -> int:
        return self._heap[0][0] if self._heap else kernel.NEVER_MS

    def take_due(self, now_ms: int) -> list[tuple[TimerKind, Any]]:
        due: list[tuple[TimerKind, Any]] = []
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            deadline = heappop(heap)
            _, _, kind, subject = deadline
            if not self._holds(deadline):
                self._forget_deleted(kind, subject)
                continue
            if kind is TimerKind.MESSAGES or kind is TimerKind.QUEUE:
                del self._watched_ms[subject]
            elif kind is TimerKind.DELAYED:
                del self._watched_ms[subject[1]]
            elif kind is TimerKind.ACKS:
                self._sweep_ms = kernel.NEVER_MS
            elif kind is TimerKind.RECEIPTS:
                self._receipts_ms = kernel.NEVER_MS
            elif kind is TimerKind.LEASES:
                self._leases_ms = kernel.NEVER_MS
            elif kind is TimerKind.TRACES:
                self._traces_ms = kernel.NEVER_MS
            due.append((kind, subject))
        return due

    def watch_messages(self, queue: kernel.Queue) -> None:
        """For a queue in Engine.waiting_for_time."""
        at_ms = queue.next_deadline_ms
        if not queue.timer_armed and not queue.deleted and at_ms != kernel.NEVER_MS:
            queue.timer_armed = True
            self._watched_ms[queue] = at_ms
            self._push(at_ms, TimerKind.MESSAGES, queue)

    def watch_queue(self, queue: "Queue", at_ms: int) -> None:
        self._watched_ms[queue] = at_ms
        self._push(at_ms, TimerKind.QUEUE, queue)

    def forget_queue(self, queue: "Queue") -> None:
        """The queue no longer expires."""
        self._watched_ms.pop(queue, None)

    def watch_delayed(self, vhost: "Vhost", waiting: "DelayedMessages") -> None:
        at_ms = waiting.next_due_ms
        if at_ms < self._watched_ms.get(waiting, kernel.NEVER_MS):
            self._watched_ms[waiting] = at_ms
            self._push(at_ms, TimerKind.DELAYED, (vhost, waiting))

    def watch_acks(self, timeout_ms: int, now_ms: int) -> None:
        """To be called when a consumer has begun that must acknowledge within this time."""
        self._shortest_ack_ms = min(self._shortest_ack_ms, timeout_ms)
        self._sweep_at(now_ms + timeout_ms)

    def watch_receipts(self, at_ms: int) -> None:
        """Times later than a watched one are not noted."""
        if at_ms < self._receipts_ms:
            self._receipts_ms = at_ms
            self._push(at_ms, TimerKind.RECEIPTS, None)

    def watch_leases(self, at_ms: int) -> None:
        """Sets the time of the next check of leases, unless an earlier one is set."""
        if at_ms < self._leases_ms:
            self._leases_ms = at_ms
            self._push(at_ms, TimerKind.LEASES, None)

    def watch_traces(self, at_ms: int) -> None:
        """Sets the time at which the next traces are due, unless an earlier one is set."""
        if at_ms < self._traces_ms:
            self._traces_ms = at_ms
            self._push(at_ms, TimerKind.TRACES, None)

    def late_channels(self, clients: "list[Client]", now_ms: int) -> "list[Channel]":
        """Channels with a delivery that should have been acknowledged by now; also sets the time of the next check."""
        late = []
        # A message delivered from now on cannot be late before this.
        next_ms = now_ms + self._shortest_ack_ms
        for client in clients:
            for channel in client.channels.values():
                if channel.timeout_ms and not channel.closing:
                    due_ms = channel.kernel.oldest_delivery_ms + channel.timeout_ms
                    if due_ms <= now_ms:
                        late.append(channel)
                    else:
                        next_ms = min(next_ms, due_ms)
        self._sweep_at(max(next_ms, now_ms + ACK_SWEEP_MS_MIN))
        return late

    def _sweep_at(self, at_ms: int) -> None:
        if at_ms < self._sweep_ms:
            self._sweep_ms = at_ms
            self._push(at_ms, TimerKind.ACKS, None)

    def _push(self, at_ms: int, kind: TimerKind, subject: Any) -> None:
        self._number += 1
        heappush(self._heap, (at_ms, self._number, kind, subject))
        if len(self._heap) >= self._cleaning_size:
            self._clean()

    def _clean(self) -> None:
        # Deadlines that lie years ahead would keep queues that were deleted long ago.
        self._heap = [deadline for deadline in self._heap if self._holds(deadline)]
        heapify(self._heap)
        watched = (subject[1] if kind is TimerKind.DELAYED else subject for _, _, kind, subject in self._heap)
        self._watched_ms = {subject: self._watched_ms[subject] for subject in watched if subject in self._watched_ms}
        self._cleaning_size = max(CLEANING_SIZE_MIN, 2 * len(self._heap))

    def _forget_deleted(self, kind: TimerKind, subject: Any) -> None:
        # It is not watched again, and the entry would keep it in memory.
        watched = subject[1] if kind is TimerKind.DELAYED else subject
        if subject is not None and (watched if kind is TimerKind.MESSAGES else watched.kernel).deleted:
            self._watched_ms.pop(watched, None)

    def _holds(self, deadline: _Deadline) -> bool:
        at_ms, _, kind, subject = deadline
        match kind:
            case TimerKind.MESSAGES:
                return not subject.deleted and self._watched_ms.get(subject) == at_ms
            case TimerKind.QUEUE:
                return not subject.kernel.deleted and self._watched_ms.get(subject) == at_ms
            case TimerKind.DELAYED:
                return not subject[1].kernel.deleted and self._watched_ms.get(subject[1]) == at_ms
            case TimerKind.ACKS:
                return self._sweep_ms == at_ms
            case TimerKind.RECEIPTS:
                return self._receipts_ms == at_ms
            case TimerKind.LEASES:
                return self._leases_ms == at_ms
            case TimerKind.TRACES:
                return self._traces_ms == at_ms
            case _:
                assert_never(kind)

    def __len__(self) -> int:
        return len(self._heap)

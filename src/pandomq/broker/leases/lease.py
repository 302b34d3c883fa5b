"""One lease: which messages of a queue it has, at which offsets of its stream, and where they belong in the queue.

Neighbouring messages with equal properties form one *run*. How many bytes are left of a run of which a part was
released is an estimate: it only decides how much more may be moved.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from pandomq import kernel

STREAM_PREFIX: Final = "pandomq.lease."

Row: TypeAlias = tuple[kernel.Queue, int, int, int, int, bool, kernel.Message]
"""As in `kernel.Channel.unacked`: queue, sequence, term, deadline, delivery count, redelivered, message."""


class LeaseRun(NamedTuple):
    sequence: int
    """The sequence of the first message; those of the others follow."""
    messages: int
    deadline_ms: int
    delivery_count: int
    size_bytes: int
    term: int = 0
    """0: logs from before it was noted do not have it."""

    def has(self, sequence: int, term: int) -> bool:
        return self.sequence <= sequence < self.sequence + self.messages and self.term in (0, term)

    def without(self, count: int) -> "LeaseRun":
        """The run without its first `count` messages."""
        left = self.messages - count
        size_bytes = self.size_bytes * left // self.messages
        return self._replace(sequence=self.sequence + count, messages=left, size_bytes=size_bytes)


class LeasedPlace(NamedTuple):
    """The former place of a message in its queue."""

    sequence: int
    deadline_ms: int
    delivery_count: int
    term: int


class LeaseView(msgspec.Struct, frozen=True):
    name: str
    stream: str
    first_offset: int
    end_offset: int
    timeout_ms: int
    ending: bool
    more: bool
    """Its queue has messages for it."""


class Lease:
    __slots__ = ("end_offset", "ending", "first_offset", "name", "queue", "runs", "size_bytes", "timeout_ms", "vhost")

    def __init__(self, vhost: str, queue: str, name: str, first_offset: int, timeout_ms: int) -> None:
        self.vhost = vhost
        self.queue = queue
        self.name = name
        self.first_offset = self.end_offset = first_offset
        """From the first that is neither released nor given back, to the offset after the last."""
        self.timeout_ms = timeout_ms
        self.ending = False
        """Its messages go back, and none are added."""
        self.runs: deque[LeaseRun] = deque()
        self.size_bytes = 0
        """The sum over the runs: there may be as many as messages."""

    @property
    def stream(self) -> str:
        return stream_name(self.queue, self.name)

    @property
    def message_count(self) -> int:
        return self.end_offset - self.first_offset

    def add(self, runs: Sequence[LeaseRun]) -> None:
        self.runs += runs
        self.size_bytes += sum(run.size_bytes for run in runs)
        self.end_offset += sum(run.messages for run in runs)

    def leave(self, offset: int) -> None:
        """Drops the messages before this offset."""
        assert self.first_offset <= offset <= self.end_offset
        count, self.first_offset = offset - self.first_offset, offset
        while count:
            run = self.runs.popleft()
            self.size_bytes -= run.size_bytes
            if run.messages > count:
                rest = run.without(count)
                self.runs.appendleft(rest)
                self.size_bytes += rest.size_bytes
                return
            count -= run.messages

    def view(self, *, more: bool = False) -> LeaseView:
        return LeaseView(self.name, self.stream, self.first_offset, self.end_offset, self.timeout_ms, self.ending, more)

    def places(self) -> Iterator[LeasedPlace]:
        """The places from the first offset on."""
        for run in self.runs:
            for sequence in range(run.sequence, run.sequence + run.messages):
                yield LeasedPlace(sequence, run.deadline_ms, run.delivery_count, run.term)


def stream_name(queue: str, name: str) -> str:
    """A name has no dot, so that no other pair makes the same."""
    return f"{STREAM_PREFIX}{name}.{queue}"


def split_stream_name(stream: str) -> tuple[str, str] | None:
    """Queue and name; None if it is no stream of a lease."""
    name, dot, queue = stream.removeprefix(STREAM_PREFIX).partition(".")
    return (queue, name) if stream.startswith(STREAM_PREFIX) and dot and name and queue else None


def runs_of(rows: Sequence[Row]) -> list[LeaseRun]:
    runs: list[LeaseRun] = []
    first = count = size_bytes = 0
    alike = (0, 0, 0)
    for _, sequence, term, deadline_ms, delivery_count, _, message in rows:
        if count and (sequence != first + count or (deadline_ms, delivery_count, term) != alike):
            runs.append(_run(first, count, size_bytes, alike))
            count = size_bytes = 0
        if not count:
            first, alike = sequence, (deadline_ms, delivery_count, term)
        count += 1
        size_bytes += message.body_size
    if count:
        runs.append(_run(first, count, size_bytes, alike))
    return runs


def _run(first: int, count: int, size_bytes: int, alike: tuple[int, int, int]) -> LeaseRun:
    deadline_ms, delivery_count, term = alike
    return LeaseRun(first, count, deadline_ms, delivery_count, size_bytes, term)

"""`DataClient`: everything that the data port does, from any broker of a cluster, through failovers.

An ask is repeated until it is answered or its time is over: every one of them may be carried out twice and means the
same. What any primary can answer is asked of the broker that this client happens to be connected to, up to what that
broker knows to be committed; what only the root can do is asked of the root, wherever that is by then.

Not for several threads at once. Pickled it takes along what it was told, password included, and no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from pandomq.data_client import records
from pandomq.data_client.connection import Answer
from pandomq.data_client.failures import BadAnswer, Elsewhere, NotNow, Unreachable
from pandomq.data_client.line import Known, Line
from pandomq.data_client.patience import Patience
from pandomq.data_client.reading import READ_BYTES, read_chunks
from pandomq.data_client.records import ChunkRow, Lease, Reading, Slice, StreamRange
from pandomq.data_client.urls import parse_urls
from pandomq.data_form import DATA_PAYLOAD_BYTES_MAX, Fields

TIMEOUT_S: Final = 60.0
IDLE_LINES_MAX: Final = 4
"""Connections that are kept for the next who reads chunks."""

T = TypeVar("T")


class DataClient:
    def __init__(self, urls: str, *, timeout_s: float = TIMEOUT_S, turn: int = 0, at_root: bool = False) -> None:
        """`urls`: amqp:// or amqps://, several with commas between them. Connects when it is first asked. `timeout_s`
        is how long an ask goes on trying. Clients with another `turn` begin with another broker of the urls. Raises
        BadUrl."""
        self._urls = urls
        self._timeout_s = timeout_s
        self._turn = turn
        self._at_root = at_root
        self._brokers = parse_urls(urls)
        self._known = Known()
        self._make_lines()

    def _make_lines(self) -> None:
        self._anywhere = self._line(at_root=self._at_root)
        self._root = self._anywhere if self._at_root else self._line(at_root=True)
        self._idle: list[Line] = []

    def _line(self, *, at_root: bool) -> Line:
        return Line(self._brokers, self._known, at_root=at_root, turn=self._turn)

    def at_root(self) -> DataClient:
        """Another client, with a connection of its own, that asks the root for everything."""
        other = DataClient(self._urls, timeout_s=self._timeout_s, turn=self._turn, at_root=True)
        other._known = self._known
        other._make_lines()
        return other

    # Streams.

    def streams(self, pattern: str = ".*") -> list[str]:
        """Names that the whole regular expression matches, of streams that the user may read."""
        return self._asked("streams", {"pattern": pattern}, lambda answer: records.texts(answer.fields, "streams"))

    def range(self, stream: str, *, beyond: int | None = None, wait_ms: int = 0) -> StreamRange:
        """Raises NoSuchStream, NotAllowed, as do all below. With `beyond` the broker waits, for so long at most, until
        the stream's end is beyond that offset; a broker has limits of its own, and may answer earlier."""
        fields: Fields = {"stream": stream}
        if beyond is not None:
            fields |= {"beyond": beyond, "wait_ms": wait_ms}
        return self._asked("range", fields, lambda answer: records.stream_range(answer.fields))

    def offset_at(self, stream: str, time_us: int) -> int:
        """The first offset whose message is not older; the stream's end if there is none."""
        fields = {"stream": stream, "time_us": time_us}
        return self._asked("offset_at", fields, lambda answer: records.number(answer.fields, "offset"))

    def index(self, stream: str, first_offset: int, end_offset: int) -> list[ChunkRow]:
        """The chunks that have any of these offsets; the last may be one that still grows."""
        found: list[ChunkRow] = []
        while first_offset < end_offset:
            fields = {"stream": stream, "first_offset": first_offset, "end_offset": end_offset}
            rows, more = self._asked("index", fields, lambda answer: (records.chunk_rows(answer.fields), answer.fields))
            found += rows
            if not rows or more.get("more") is not True:
                break
            first_offset = rows[-1].last_offset + 1
        return found

    def read(self, stream: str, first_offset: int, end_offset: int, bytes_max: int = READ_BYTES) -> Reading:
        """Some chunks, at least one unless there is nothing (yet): as many as are not larger together than `bytes_max`.
        Raises OffsetGone."""
        fields = {"stream": stream, "first_offset": first_offset, "end_offset": end_offset, "bytes_max": bytes_max}
        return self._asked(
            "read", fields, lambda answer: records.reading(answer.fields, answer.payload, first_offset, end_offset)
        )

    def chunks(
        self, stream: str, first_offset: int, end_offset: int, *, bytes_max: int = READ_BYTES
    ) -> Generator[Slice, None, None]:
        """All chunks with any of these offsets, in order, the next ones on their way while the last is looked at.

        `end_offset` was told by `range`: if the broker that is asked does not know as much yet, this waits for it.
        Slices follow each other without a gap, and never overlap. Raises OffsetGone.
        """
        line = self._idle.pop() if self._idle else self._line(at_root=self._at_root)
        yield from read_chunks(line, self._timeout_s, stream, first_offset, end_offset, bytes_max)
        if len(self._idle) < IDLE_LINES_MAX and line.at_root == self._at_root:
            self._idle.append(line)
        else:
            line.close()

    def store_offset(self, stream: str, name: str, offset: int) -> None:
        self._asked("store_offset", {"stream": stream, "name": name, "offset": offset}, _nothing, root=True)

    def stored_offsets(self, stream: str) -> dict[str, int]:
        return self._asked("stored_offsets", {"stream": stream}, _offsets)

    # Staged batches.

    def stage(
        self, query: str, batch: int, partition: int, attempt: str, part: int, frames: bytes | memoryview
    ) -> Fields:
        """One part of what one attempt at a partition publishes: whole messages as AMQP frames. Returns when it is
        safe. Parts are numbered from 0."""
        assert len(frames) <= DATA_PAYLOAD_BYTES_MAX
        fields = {"query": query, "batch": batch, "partition": partition, "attempt": attempt, "part": part}
        return self._asked("stage", fields, lambda answer: answer.fields, frames, root=True)

    def commit(self, query: str, batch: int, attempts: Iterable[Sequence[int | str]]) -> Fields:
        """Publishes what these attempts, each (partition, attempt, number of parts), have staged, once and for all."""
        fields = {"query": query, "batch": batch, "attempts": [list(attempt) for attempt in attempts]}
        return self._asked("commit", fields, lambda answer: answer.fields, root=True)

    def drop(self, query: str, batch: int, attempts: Iterable[Sequence[int | str]]) -> None:
        """Forgets what these attempts, each (partition, attempt), have staged."""
        fields = {"query": query, "batch": batch, "attempts": [list(attempt) for attempt in attempts]}
        self._asked("drop", fields, _nothing, root=True)

    def last_batch(self, query: str) -> int:
        """The last one that was committed; -1 if none was."""
        return self._asked(
            "last_batch", {"query": query}, lambda answer: records.number(answer.fields, "batch"), root=True
        )

    # Leases on queues.

    def lease(self, queue: str, name: str, *, messages_max: int, bytes_max: int, timeout_ms: int) -> Lease:
        """Takes so many more messages off the queue, and renews what was leased under this name before."""
        fields = {
            "queue": queue,
            "name": name,
            "messages_max": messages_max,
            "bytes_max": bytes_max,
            "timeout_ms": timeout_ms,
        }
        return self._asked("lease", fields, lambda answer: records.lease(answer.fields), root=True)

    def release(self, queue: str, name: str, offset: int) -> None:
        """What is leased before this offset is done for good."""
        self._asked("release", {"queue": queue, "name": name, "offset": offset}, _nothing, root=True)

    def end_lease(self, queue: str, name: str) -> None:
        """What is not released goes back to its place in the queue."""
        self._asked("end_lease", {"queue": queue, "name": name}, _nothing, root=True)

    # Asking.

    def ask(
        self, name: str, fields: Fields, payload: bytes | memoryview = b"", *, root: bool = False
    ) -> tuple[Fields, memoryview]:
        """Whatever the data port knows. Raises Refused, Unreachable."""
        answer = self._asked(name, fields, lambda answer: answer, payload, root=root)
        return answer.fields, answer.payload

    def _asked(
        self,
        name: str,
        fields: Fields,
        read: Callable[[Answer], T],
        payload: bytes | memoryview = b"",
        *,
        root: bool = False,
    ) -> T:
        patience = Patience(self._timeout_s)
        line = self._root if root else self._anywhere
        while True:
            connection = line.connected(patience)
            try:
                connection.send(name, fields, payload)
                return read(connection.receive(stream="stream" in fields))
            except Elsewhere as elsewhere:
                if line is not self._root:
                    line = self._root
                line.follow(elsewhere.root, elsewhere.text)
                why = elsewhere.text
            except (NotNow, OSError, BadAnswer) as failure:
                why = str(failure)
                line.leave(why)
            if patience.over:
                raise Unreachable(f"no broker could do it in time ({name}): {why}")
            patience.pause()

    def close(self) -> None:
        for line in (self._anywhere, self._root, *self._idle):
            line.close()
        self._idle.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        hosts = ", ".join(map(str, self._brokers.addresses))
        return f"DataClient({hosts}{', at the root' if self._at_root else ''})"

    def __getstate__(self) -> dict[str, Any]:
        return {"urls": self._urls, "timeout_s": self._timeout_s, "turn": self._turn, "at_root": self._at_root}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _nothing(_answer: Answer) -> None:
    return None


def _offsets(answer: Answer) -> dict[str, int]:
    offsets = answer.fields.get("offsets")
    if not isinstance(offsets, dict) or not all(isinstance(offset, int) for offset in offsets.values()):
        raise BadAnswer("the broker's answer has no offsets")
    return offsets

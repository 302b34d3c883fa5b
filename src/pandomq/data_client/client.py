"""`DataClient`: all functions of the data port, from any broker of a cluster, through failovers.

A request is repeated until it is answered or times out: every request is idempotent. Requests that any primary can
answer go to the broker that this client is connected to, up to that broker's commit index; other requests go to the
current root.

It is not thread-safe. A pickled client includes its settings and its password, and no connection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from pandomq.data_client import records
from pandomq.data_client.connection import DataReply
from pandomq.data_client.failures import BadAnswer, Elsewhere, NotNow, Refused, Unreachable
from pandomq.data_client.line import KnownBrokers, Line
from pandomq.data_client.patience import Patience
from pandomq.data_client.reading import READ_BYTES, read_chunks
from pandomq.data_client.records import ChunkSlice, IndexedChunk, LeasedRange, ReadResult, StreamRange
from pandomq.data_client.urls import parse_urls
from pandomq.data_form import ACCESS_REFUSED, DATA_PAYLOAD_BYTES_MAX, Fields

TIMEOUT_S: Final = 60.0
IDLE_LINES_MAX: Final = 4
"""Connections that are kept for later readers of chunks."""

T = TypeVar("T")


class DataClient:
    def __init__(self, urls: str, *, timeout_s: float = TIMEOUT_S, turn: int = 0, at_root: bool = False) -> None:
        """`urls`: amqp:// or amqps://, several with commas between them. It connects at the first request. `timeout_s`
        limits the retries of a request. Clients with different values of `turn` begin with different brokers of the
        urls. Raises BadUrl."""
        self._urls = urls
        self._timeout_s = timeout_s
        self._turn = turn
        self._at_root = at_root
        self._brokers = parse_urls(urls)
        self._known = KnownBrokers()
        self._make_lines()

    def _make_lines(self) -> None:
        self._anywhere = self._line(at_root=self._at_root)
        self._root = self._anywhere if self._at_root else self._line(at_root=True)
        self._idle: list[Line] = []

    def _line(self, *, at_root: bool) -> Line:
        return Line(self._brokers, self._known, at_root=at_root, turn=self._turn)

    def at_root(self) -> DataClient:
        """Another client, with a connection of its own, that sends every request to the root."""
        other = DataClient(self._urls, timeout_s=self._timeout_s, turn=self._turn, at_root=True)
        other._known = self._known
        other._make_lines()
        return other

    # Streams.

    def streams(self, pattern: str = ".*") -> list[str]:
        """Names that the whole regular expression matches, of streams that the user may read."""
        return self._asked("streams", {"pattern": pattern}, lambda answer: records.texts(answer.fields, "streams"))

    def range(self, stream: str, *, beyond: int | None = None, wait_ms: int = 0) -> StreamRange:
        """Raises NoSuchStream, NotAllowed, as do all below. With `beyond` the broker waits, for at most `wait_ms`,
        until the stream's end is beyond that offset; a broker has limits of its own, and may answer earlier."""
        fields: Fields = {"stream": stream}
        if beyond is not None:
            fields |= {"beyond": beyond, "wait_ms": wait_ms}
        return self._asked("range", fields, lambda answer: records.stream_range(answer.fields))

    def offset_at(self, stream: str, time_us: int) -> int:
        """The first offset whose message is not older than this time; the stream's end if there is none."""
        fields = {"stream": stream, "time_us": time_us}
        return self._asked("offset_at", fields, lambda answer: records.number(answer.fields, "offset"))

    def index(self, stream: str, first_offset: int, end_offset: int) -> list[IndexedChunk]:
        """The chunks that have any of these offsets; the last one may still grow."""
        found: list[IndexedChunk] = []
        while first_offset < end_offset:
            fields = {"stream": stream, "first_offset": first_offset, "end_offset": end_offset}
            rows, more = self._asked("index", fields, lambda answer: (records.chunk_rows(answer.fields), answer.fields))
            found += rows
            if not rows or more.get("more") is not True:
                break
            first_offset = rows[-1].last_offset + 1
        return found

    def read(self, stream: str, first_offset: int, end_offset: int, bytes_max: int = READ_BYTES) -> ReadResult:
        """Reads as many chunks as together do not exceed `bytes_max`, but at least one, unless there is none (yet).
        Raises OffsetGone."""
        fields = {"stream": stream, "first_offset": first_offset, "end_offset": end_offset, "bytes_max": bytes_max}
        return self._asked(
            "read", fields, lambda answer: records.reading(answer.fields, answer.payload, first_offset, end_offset)
        )

    def chunks(
        self, stream: str, first_offset: int, end_offset: int, *, bytes_max: int = READ_BYTES
    ) -> Generator[ChunkSlice, None, None]:
        """All chunks with any of these offsets, in order; the next ones are requested while the caller processes the
        last.

        `end_offset` comes from `range`: if the broker has not reached it yet, this waits for it. Slices follow each
        other without a gap, and never overlap. Raises OffsetGone.
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
        """Stages one part of the publishes of one attempt at a partition: whole messages as AMQP frames. Returns when
        it is safe. Parts are numbered from 0."""
        assert len(frames) <= DATA_PAYLOAD_BYTES_MAX
        fields = {"query": query, "batch": batch, "partition": partition, "attempt": attempt, "part": part}
        return self._asked("stage", fields, lambda answer: answer.fields, frames, root=True)

    def commit(self, query: str, batch: int, attempts: Iterable[Sequence[int | str]]) -> Fields:
        """Publishes the staged messages of these attempts, each (partition, attempt, number of parts), exactly once."""
        fields = {"query": query, "batch": batch, "attempts": [list(attempt) for attempt in attempts]}
        return self._asked("commit", fields, lambda answer: answer.fields, root=True)

    def drop(self, query: str, batch: int, attempts: Iterable[Sequence[int | str]]) -> None:
        """Drops the staged messages of these attempts, each (partition, attempt)."""
        fields = {"query": query, "batch": batch, "attempts": [list(attempt) for attempt in attempts]}
        self._asked("drop", fields, _nothing, root=True)

    def last_batch(self, query: str) -> int:
        """The last one that was committed; -1 if none was."""
        return self._asked(
            "last_batch", {"query": query}, lambda answer: records.number(answer.fields, "batch"), root=True
        )

    def last_own_batch(self, query: str) -> int:
        """The same, and -1 if a broker of an earlier version refuses because the name is another user's."""
        try:
            return self.last_batch(query)
        except Refused as refused:
            if refused.code != ACCESS_REFUSED:
                raise
            return -1

    # Leases on queues.

    def lease(self, queue: str, name: str, *, messages_max: int, bytes_max: int, timeout_ms: int) -> LeasedRange:
        """Takes up to this many more messages from the queue, and renews the earlier leases under this name."""
        fields = {
            "queue": queue,
            "name": name,
            "messages_max": messages_max,
            "bytes_max": bytes_max,
            "timeout_ms": timeout_ms,
        }
        return self._asked("lease", fields, lambda answer: records.lease(answer.fields), root=True)

    def release(self, queue: str, name: str, offset: int) -> None:
        """Messages leased before this offset are removed for good."""
        self._asked("release", {"queue": queue, "name": name, "offset": offset}, _nothing, root=True)

    def end_lease(self, queue: str, name: str) -> None:
        """Messages that are not released return to their places in the queue."""
        self._asked("end_lease", {"queue": queue, "name": name}, _nothing, root=True)

    # Requests.

    def ask(
        self, name: str, fields: Fields, payload: bytes | memoryview = b"", *, root: bool = False
    ) -> tuple[Fields, memoryview]:
        """Sends any request of the data port. Raises Refused, Unreachable."""
        answer = self._asked(name, fields, lambda answer: answer, payload, root=root)
        return answer.fields, answer.payload

    def _asked(
        self,
        name: str,
        fields: Fields,
        read: Callable[[DataReply], T],
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
                why = f"{connection.address}: {failure}"
                line.switch_broker(str(failure))
            if patience.over:
                raise Unreachable(f"no broker completed the request in time ({name}): {why}")
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


def _nothing(_answer: DataReply) -> None:
    return None


def _offsets(answer: DataReply) -> dict[str, int]:
    offsets = answer.fields.get("offsets")
    if not isinstance(offsets, dict) or not all(isinstance(offset, int) for offset in offsets.values()):
        raise BadAnswer("the broker's response has no offsets")
    return offsets

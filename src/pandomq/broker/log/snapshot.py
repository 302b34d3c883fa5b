"""The state that a broker needs after a restart, at one moment: shared state as commands, and live messages.

`Snapshot` notes it at once, by reference: messages never change. Encoding takes its time, in pieces of bounded size,
while the broker continues. Messages are those that the log holds: those of durable queues that are kept, ready or
unacked, and those of transactions that wait for their commit. Of messages that are not in memory it holds where their
pages are stored, and which of them are alive.

    stream    records, each a length u32 and msgpack: a head, commands, marks of queues, starts of terms, pages, chunks,
              streams, messages
"""

import struct
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pandomq import kernel
from pandomq.broker.log.commands import NoteHosts, encode_command, is_inner
from pandomq.broker.log.state_commands import commands_of
from pandomq.broker.publishing import named_producers
from pandomq.broker.publishing.delayed import DelayedMessages, due_ms

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.streams.stream import Stream

VERSION: Final = 7
"""Version 5 added the starts of terms, version 6 the users of producers, staged batches and stored offsets; since
version 7 a query belongs to its user, and there are names of hosts. Earlier versions are still read."""
PRODUCERS_PER_PART: Final = 1000
NAMED_PRODUCERS_PER_PART: Final = 50
TERM_STARTS_PER_PART: Final = 1000
LENGTH: Final = struct.Struct("<I")

Place = tuple[int, int, int, int, int, bool]
"""Queue id, sequence, term, deadline (when it is due, of a delayed message), delivery count, redelivered."""

StoredAt = tuple[int, int, int, int]
"""The place of a page; only its store interprets the numbers."""
Row = tuple[int, int, int, int, bool, kernel.Message]
"""A row as in `kernel.Queue.snapshot`."""


class BrokerSnapshotHead(msgspec.Struct, frozen=True, array_like=True, tag="head"):
    version: int
    now_ms: int
    next_queue_id: int
    had_users: bool
    exact: bool
    """Whether nothing was delivered after this: then flags and counts match what the clients received."""


class CommandPart(msgspec.Struct, frozen=True, array_like=True, tag="command"):
    command: bytes


class QueueMark(msgspec.Struct, frozen=True, array_like=True, tag="queue"):
    queue_id: int
    next_sequence: int


class KeptTermStart(msgspec.Struct, frozen=True, array_like=True, tag="term"):
    """Terms come oldest first; the last one is the term of the last entry that the snapshot covers."""

    term: int
    firsts: list[tuple[int, int]]
    """By queue id: the first number that the root of this term could give. For many queues, a part of them."""


class KeptPage(msgspec.Struct, frozen=True, array_like=True, tag="page"):
    queue_id: int
    stored_at: StoredAt
    index: bytes
    """The index as in `kernel.Page.index`."""
    holes: bytes


class KeptMessage(msgspec.Struct, frozen=True, array_like=True, tag="message"):
    places: list[Place]
    routing: bytes
    header: bytes
    body: bytes


class KeptChunk(msgspec.Struct, frozen=True, array_like=True, tag="chunk"):
    queue_id: int
    stored_at: StoredAt
    first_offset: int
    last_offset: int
    count: int
    first_time_us: int
    last_time_us: int
    begins_segment: bool
    size_bytes: int = 0
    """The size of the plain chunk; 0 if that is what is stored."""


class KeptStream(msgspec.Struct, frozen=True, array_like=True, tag="stream"):
    """A stream. In the snapshot it comes after its chunks."""

    queue_id: int
    next_sequence: int
    offsets: dict[str, int]
    open_rows: bytes
    """Encoded like a sealed chunk; empty if there are none."""
    offset_users: dict[str, str] = {}
    """By name, where the user is known; before version 6 none is."""


class KeptProducers(msgspec.Struct, frozen=True, array_like=True, tag="producers"):
    rows: list[tuple[int, int, int]]
    """Rows as in `ProducerTable.rows`."""


class KeptSequences(msgspec.Struct, frozen=True, array_like=True, tag="sequences"):
    rows: list[named_producers.Row]
    """Rows as in `NamedProducers.rows`."""
    users: list[str] = []
    """The user of each row; before version 6 there are none."""

    def of_users(self) -> Iterator[tuple[named_producers.Row, str]]:
        return zip(self.rows, self.users or [named_producers.NOBODY] * len(self.rows), strict=True)


Part = (
    BrokerSnapshotHead
    | CommandPart
    | KeptProducers
    | KeptSequences
    | QueueMark
    | KeptTermStart
    | KeptPage
    | KeptChunk
    | KeptStream
    | KeptMessage
)

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Part)


def configuration_of(broker: "Broker") -> list[bytes]:
    """The part of a snapshot without messages, as a stream of its own."""
    parts = _shared(broker, exact=True, inner=False)
    return [LENGTH.pack(len(encoded)) + encoded for encoded in map(_ENCODER.encode, parts)]


def _shared(broker: "Broker", *, exact: bool, inner: bool) -> list[Part]:
    state = broker.state
    head = BrokerSnapshotHead(VERSION, broker.now_ms, state.next_queue_id, state.had_users, exact)
    commands = (command for command in commands_of(state) if inner or not is_inner(command))
    return [head, *(CommandPart(encode_command(command)) for command in commands)]


class Snapshot:
    """To be made while the broker is `at_rest`."""

    def __init__(self, broker: "Broker", *, exact: bool) -> None:
        state = broker.state
        self._parts = _shared(broker, exact=exact, inner=True)
        self._parts += [CommandPart(encode_command(command)) for command in state.leases.commands()]
        if state.hosts:
            self._parts.append(CommandPart(encode_command(NoteHosts(sorted(state.hosts), []))))
        producers = state.producers.rows()
        for first in range(0, len(producers), PRODUCERS_PER_PART):
            self._parts.append(KeptProducers(producers[first : first + PRODUCERS_PER_PART]))
        named, users = state.named_producers.rows(), state.named_producers.users()
        for first in range(0, len(named), NAMED_PRODUCERS_PER_PART):
            end = first + NAMED_PRODUCERS_PER_PART
            self._parts.append(KeptSequences(named[first:end], users[first:end]))
        self._parts += [
            QueueMark(queue_id, owner.kernel.next_sequence)
            for queue_id, (_, owner) in state.logged.items()
            if owner.stream is None
        ]
        for term, firsts in state.term_starts.rows(broker.engine.term, state.logged):
            # A term without queues counts, too.
            for first in range(0, max(1, len(firsts)), TERM_STARTS_PER_PART):
                self._parts.append(KeptTermStart(term, firsts[first : first + TERM_STARTS_PER_PART]))
        self.stored: list[Any] = []
        """The stored objects that it refers to: pages and chunks, as their owners name them."""
        self._streams: list[tuple[KeptStream, kernel.Chunk, int]] = []
        """Each with its open chunk, of which this many rows count: existing rows do not change."""
        self._open_chunks = state.chunk_cache.note()
        self._ready: list[tuple[int, dict[int, int], list[Row]]] = []
        """For each queue: its id, the due times of delayed messages, and all that it has in memory."""
        self._others: list[tuple[kernel.Message, Place]] = []
        self._note_ready(broker)
        self._note_unacked(broker)
        self._note_awaited(broker)

    def pieces(self, size_bytes: int) -> Iterator[bytes]:
        """The stream, cut where this size is reached, so that no piece is larger; messages are released on the way."""
        waiting = bytearray()
        for part in self._all_parts():
            encoded = _ENCODER.encode(part)
            waiting += LENGTH.pack(len(encoded))
            waiting += encoded
            while len(waiting) >= size_bytes:
                yield bytes(waiting[:size_bytes])
                del waiting[:size_bytes]
        if waiting:
            yield bytes(waiting)

    def _all_parts(self) -> Iterator[Part]:
        parts, self._parts = self._parts, []
        yield from parts
        while self._streams:
            stream, chunk, count = self._streams.pop()
            yield msgspec.structs.replace(stream, open_rows=chunk.seal_rows(count)) if count else stream
            self._open_chunks.chunks.discard(chunk)
        while self._ready:
            queue_id, due, rows = self._ready.pop()
            rows.reverse()
            while rows:
                sequence, term, deadline_ms, delivery_count, redelivered, message = rows.pop()
                if message.kept:
                    at_ms = due.get(sequence, deadline_ms)
                    yield _kept(message, (queue_id, sequence, term, at_ms, delivery_count, redelivered))
        while self._others:
            yield _kept(*self._others.pop())

    # Live state.

    def _note_ready(self, broker: "Broker") -> None:
        for queue_id, (_, owner) in broker.state.logged.items():
            if not owner.kernel.logged:
                continue
            if owner.stream is not None:
                self._note_stream(queue_id, owner.stream)
                continue
            for page in owner.kernel.pages():
                index = page.index()
                if index is not None:
                    self.stored.append(page.owner)
                    # The page may move to another place, or change, before this is encoded.
                    self._parts.append(KeptPage(queue_id, tuple(page.owner.place), *index))
            due = owner.due_times() if isinstance(owner, DelayedMessages) else {}
            self._ready.append((queue_id, due, owner.kernel.snapshot()))

    def _note_stream(self, queue_id: int, stream: "Stream") -> None:
        for row in stream.index.rows:
            self.stored.append(row.stored)
            self._parts.append(
                KeptChunk(
                    queue_id,
                    tuple(row.stored.place),
                    row.first_offset,
                    row.last_offset,
                    row.count,
                    row.first_time_us,
                    row.last_time_us,
                    row.begins_segment,
                    row.size_bytes,
                )
            )
        queue, chunk = stream.queue, stream.open_chunk
        self._open_chunks.chunks.add(chunk)
        self._streams.append(
            (
                KeptStream(queue_id, queue.next_sequence, stream.stored_offsets, b"", stream.offsets.users()),
                chunk,
                chunk.count,
            )
        )

    def _note_unacked(self, broker: "Broker") -> None:
        for client in broker.clients:
            for channel in client.channels.values():
                for queue, sequence, term, deadline_ms, delivery_count, _, message in channel.kernel.unacked():
                    self._note(queue, message, (queue.queue_id, sequence, term, deadline_ms, delivery_count, True))

    def _note_awaited(self, broker: "Broker") -> None:
        for admission in broker.admissions:
            for message, places in admission.messages:
                for queue, sequence, term, deadline_ms in places:
                    owner = queue.owner
                    # A stream's messages are in the stream from the start. Of a queue that was deleted since then
                    # nothing is kept.
                    if queue.deleted or owner.stream is not None:
                        continue
                    delayed = isinstance(owner, DelayedMessages)
                    at_ms = due_ms(message, admission.now_ms) if delayed else deadline_ms
                    self._note(queue, message, (queue.queue_id, sequence, term, at_ms, 0, False))

    def _note(self, queue: kernel.Queue, message: kernel.Message, place: Place) -> None:
        if message.kept and queue.logged and not queue.deleted and queue.owner.stream is None:
            self._others.append((message, place))


def _kept(message: kernel.Message, place: Place) -> KeptMessage:
    return KeptMessage([place], message.routing, message.header, message.body)


def read_parts(buffer: bytearray) -> Iterator[Part]:
    """Takes the whole records off the front of the received bytes. Raises ValueError if they are none."""
    start = 0
    while len(buffer) - start >= LENGTH.size:
        (length,) = LENGTH.unpack_from(buffer, start)
        end = start + LENGTH.size + length
        if end > len(buffer):
            break
        part: Part = _DECODER.decode(memoryview(buffer)[start + LENGTH.size : end].tobytes())
        start = end
        yield part
    del buffer[:start]


def without_pages(stream: bytes, lost: Collection[StoredAt]) -> bytes:
    """The whole stream of a snapshot, without these pages. Raises ValueError if it is none."""
    kept = bytearray()
    for part in read_parts(bytearray(stream)):
        if not (isinstance(part, KeptPage | KeptChunk) and part.stored_at in lost):
            encoded = _ENCODER.encode(part)
            kept += LENGTH.pack(len(encoded))
            kept += encoded
    return bytes(kept)

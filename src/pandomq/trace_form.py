"""The form of the messages that brokers write to the stream `pandomq.trace`: one message is one batch of events, in
columns.

    body      head (64 bytes), columns, tables; all numbers little-endian
    head      "PTRC", version u8, 3 bytes of nothing, counts u32 of events, queues, routings, consumers and texts,
              term u64, dropped u64, number u64, sample f64, 4 bytes of nothing
    columns   time_us i64, sequence u64, since_us i64, held_us i64; size u32, queue u32, routing u32, consumer u32;
              kind u8, reason u8: each one contiguous, with as many values as there are events
    tables    broker: length u16, name; queues: id u64, length u16, name; routings: exchange and routing key as AMQP's
              short strings; consumers: length u16 and name of the connection, consumer tag as a short string; texts:
              length u32, JSON

A batch is of one broker, in one term, with one sample. `number` counts the batches of that broker in that term and
vhost, from 0 on: a gap is a batch that was lost. `dropped` counts the events since the batch before it that found no
room. `queue`, `routing` and `consumer` are places in the tables, of which the first, 0, stands for none and is not
written.

A message is identified by its queue's id and its `sequence`; in a stream the latter is its offset plus 1. The sequence
decides whether a message is sampled, so every step of a sampled message is recorded. `since_us` is the time since it
was published into that queue, UNKNOWN_US if the broker that wrote the event did not record that; `held_us` is the time
since its delivery for ACKED and REQUEUED, and UNKNOWN_US for all others.

For an event of kind CLUSTER `sequence` is the index of its text, from 0.

This module needs only the standard library, like all modules that Spark's executors import.
"""

import json
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple

TRACE_STREAM: Final = "pandomq.trace"
CONTENT_TYPE: Final = "application/x-pandomq-trace"
MAGIC: Final = b"PTRC"
VERSION: Final = 1
UNKNOWN_US: Final = -1
HEAD: Final = struct.Struct("<4sB3xIIIIIQQQd4x")
COLUMNS: Final = (
    ("time_us", "q"),
    ("sequence", "Q"),
    ("since_us", "q"),
    ("held_us", "q"),
    ("size", "I"),
    ("queue", "I"),
    ("routing", "I"),
    ("consumer", "I"),
    ("kind", "B"),
    ("reason", "B"),
)
"""Names and type codes, in their order."""
EVENT_BYTES: Final = 50
"""Bytes of one event in all columns."""

SAMPLE_FACTOR: Final = 0x9E3779B97F4A7C15
"""The factor spreads sequences evenly: sampled ones have no period that a publisher could have, too."""
SAMPLE_WHOLE: Final = 1 << 32

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_QUEUE: Final = struct.Struct("<QH")


class Kind(IntEnum):
    PUBLISHED = 1
    """The message entered the queue; one event for each queue that took it."""
    UNROUTABLE = 2
    """No queue matched."""
    CONFIRMED = 3
    """The broker confirmed it to its publisher."""
    REFUSED = 4
    """A queue that was full rejected it; its publisher was told."""
    DELIVERED = 5
    REDELIVERED = 6
    """Delivered with that flag."""
    ACKED = 7
    """By its consumer; a message for a consumer without acks is only recorded as delivered."""
    REQUEUED = 8
    """The message came back: it was nacked, or its channel was closed."""
    EXPIRED = 9
    """The message expired without being dead-lettered."""
    DEAD_LETTERED = 10
    """The message left the queue for the dead letter exchange."""
    DROPPED = 11
    """The message left for one of the same reasons, in a queue without such an exchange."""
    CLUSTER = 12
    """No message's event: something happened to the brokers."""


class Reason(IntEnum):
    """For DEAD_LETTERED and DROPPED."""

    NONE = 0
    EXPIRED = 1
    REJECTED = 2
    MAXLEN = 3
    DELIVERY_LIMIT = 4


class BadTrace(ValueError):
    """The bytes are not a batch of a known version."""


class QueueName(NamedTuple):
    queue_id: int
    name: str


class Routing(NamedTuple):
    exchange: str
    routing_key: str


class ConsumerName(NamedTuple):
    connection: str
    tag: str


class Event(NamedTuple):
    """One row with its names."""

    kind: Kind
    reason: Reason
    time_us: int
    queue: str
    queue_id: int
    sequence: int
    exchange: str
    routing_key: str
    consumer_tag: str
    connection: str
    size: int
    since_us: int
    text: str = ""
    held_us: int = UNKNOWN_US


NO_QUEUE: Final = QueueName(0, "")
NO_ROUTING: Final = Routing("", "")
NO_CONSUMER: Final = ConsumerName("", "")


@dataclass(slots=True)
class Events:
    """A batch. Each table begins with the entry that stands for none."""

    broker: str
    term: int
    number: int = 0
    dropped: int = 0
    sample: float = 1.0
    time_us: "array[int]" = field(default_factory=lambda: array("q"))
    sequence: "array[int]" = field(default_factory=lambda: array("Q"))
    since_us: "array[int]" = field(default_factory=lambda: array("q"))
    held_us: "array[int]" = field(default_factory=lambda: array("q"))
    size: "array[int]" = field(default_factory=lambda: array("I"))
    queue: "array[int]" = field(default_factory=lambda: array("I"))
    routing: "array[int]" = field(default_factory=lambda: array("I"))
    consumer: "array[int]" = field(default_factory=lambda: array("I"))
    kind: "array[int]" = field(default_factory=lambda: array("B"))
    reason: "array[int]" = field(default_factory=lambda: array("B"))
    queues: list[QueueName] = field(default_factory=lambda: [NO_QUEUE])
    routings: list[Routing] = field(default_factory=lambda: [NO_ROUTING])
    consumers: list[ConsumerName] = field(default_factory=lambda: [NO_CONSUMER])
    texts: list[str] = field(default_factory=list)
    _places: dict[object, int] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.kind)

    def add(self, event: Event) -> None:
        """Appends a row; its names go to the tables. For code that creates traces itself."""
        is_cluster = event.kind == Kind.CLUSTER
        if is_cluster:
            self.texts.append(event.text)
        self.time_us.append(event.time_us)
        self.sequence.append(len(self.texts) - 1 if is_cluster else event.sequence)
        self.since_us.append(event.since_us)
        self.held_us.append(event.held_us)
        self.size.append(event.size)
        self.queue.append(self._place(self.queues, QueueName(event.queue_id, event.queue)))
        self.routing.append(self._place(self.routings, Routing(event.exchange, event.routing_key)))
        self.consumer.append(self._place(self.consumers, ConsumerName(event.connection, event.consumer_tag)))
        self.kind.append(event.kind)
        self.reason.append(event.reason)

    def _place(self, table: list[Any], name: QueueName | Routing | ConsumerName) -> int:
        # Names of different kinds must differ, too: tuples do not.
        place = self._places.get((type(name), name))
        if place is None:
            if name not in table:
                table.append(name)
            place = self._places[type(name), name] = table.index(name)
        return place

    def rows(self) -> Iterator[Event]:
        for place in range(len(self)):
            kind, queue = Kind(self.kind[place]), self.queues[self.queue[place]]
            routing, consumer = self.routings[self.routing[place]], self.consumers[self.consumer[place]]
            sequence, text = self.sequence[place], ""
            if kind == Kind.CLUSTER:
                sequence, text = 0, self.texts[sequence]
            names = (queue.name, queue.queue_id, sequence, *routing, consumer.tag, consumer.connection)
            times = (self.since_us[place], text, self.held_us[place])
            yield Event(kind, Reason(self.reason[place]), self.time_us[place], *names, self.size[place], *times)


def cluster_event(time_us: int, name: str, facts: Mapping[str, Any]) -> Event:
    """Something that happened to the brokers; its text is an object with its name as `event`."""
    text = json.dumps({"event": name, **facts}, separators=(",", ":"), sort_keys=True)
    return Event(Kind.CLUSTER, Reason.NONE, time_us, "", 0, 0, "", "", "", "", 0, UNKNOWN_US, text)


def sample_threshold(sample: float) -> int:
    """The threshold for `is_sampled`, for a part between 0 and 1 of all messages. Raises ValueError."""
    if not 0 < sample <= 1:
        raise ValueError(f"a sample must be above 0 and at most 1, not {sample}")
    return max(1, round(sample * SAMPLE_WHOLE))


def is_sampled(sequence: int, threshold: int) -> bool:
    return (sequence * SAMPLE_FACTOR & 0xFFFFFFFFFFFFFFFF) >> 32 < threshold


def encode_events(events: Events) -> bytes:
    columns = [getattr(events, name) for name, _ in COLUMNS]
    return join_batch(
        broker=events.broker,
        term=events.term,
        number=events.number,
        dropped=events.dropped,
        sample=events.sample,
        count=len(events),
        columns=b"".join(_little_endian(column) for column in columns),
        queues=[(queue_id, _octets(name)) for queue_id, name in events.queues[1:]],
        routings=[_short(_octets(exchange)) + _short(_octets(key)) for exchange, key in events.routings[1:]],
        consumers=[(_octets(connection), _octets(tag)) for connection, tag in events.consumers[1:]],
        texts=events.texts,
    )


def join_batch(
    *,
    broker: str,
    term: int,
    number: int,
    dropped: int,
    sample: float,
    count: int,
    columns: bytes,
    queues: Sequence[tuple[int, bytes]],
    routings: Sequence[bytes],
    consumers: Sequence[tuple[bytes, bytes]],
    texts: Sequence[str],
) -> bytes:
    """A body from encoded columns and tables without the entry that stands for none."""
    assert len(columns) == count * EVENT_BYTES
    counts = (count, len(queues), len(routings), len(consumers), len(texts))
    encoded = [text.encode() for text in texts]
    return b"".join(
        (
            HEAD.pack(MAGIC, VERSION, *counts, term, dropped, number, sample),
            columns,
            _long(_octets(broker)),
            *(_QUEUE.pack(queue_id, len(name)) + name for queue_id, name in queues),
            *routings,
            *(_long(connection) + _short(tag) for connection, tag in consumers),
            *(_U32.pack(len(text)) + text for text in encoded),
        )
    )


def with_cluster_events(columns: bytes, count: int, events: Sequence[Event]) -> bytes:
    """The columns of `count` events, with these after them; the table of texts begins with theirs."""
    if not events:
        return columns
    added = Events("", 0)
    for event in events:
        added.add(event)
    parts: list[bytes] = []
    start = 0
    for name, _ in COLUMNS:
        column = getattr(added, name)
        end = start + column.itemsize * count
        parts += columns[start:end], _little_endian(column)
        start = end
    return b"".join(parts)


def decode_events(body: bytes, *, is_checked: bool = False) -> Events:
    """Raises BadTrace. With `is_checked` the caller has checked that places are in their tables, and kinds known."""
    try:
        magic, version, count, *tables_sizes, term, dropped, number, sample = HEAD.unpack_from(body)
        queues, routings, consumers, texts = tables_sizes
        if magic != MAGIC or version != VERSION:
            raise BadTrace(f"a trace of version {version}" if magic == MAGIC else "not a trace")
        end = HEAD.size + count * EVENT_BYTES
        if end > len(body):
            raise BadTrace("ends within its columns")
        tables = _Tables(body, end)
        events = Events(tables.text(*tables.sized(_U16)), term, number, dropped, sample)
        for name, column in _columns(body, count):
            setattr(events, name, column)
        events.queues += [tables.queue() for _ in range(queues)]
        events.routings += [Routing(tables.short(), tables.short()) for _ in range(routings)]
        events.consumers += [ConsumerName(tables.text(*tables.sized(_U16)), tables.short()) for _ in range(consumers)]
        events.texts += [tables.text(*tables.sized(_U32)) for _ in range(texts)]
    except (struct.error, IndexError) as error:
        raise BadTrace("ends too early") from error
    if tables.place != len(body):
        raise BadTrace("has more or less than its tables")
    if not is_checked:
        _check(events)
    return events


def _check(events: Events) -> None:
    """Checks that every place is one in its table."""
    for column, table in (
        (events.queue, events.queues),
        (events.routing, events.routings),
        (events.consumer, events.consumers),
    ):
        if max(column, default=0) >= len(table):
            raise BadTrace("names what is in no table")
    if not set(events.kind) <= set(Kind) or not set(events.reason) <= set(Reason):
        raise BadTrace("an event has an unknown kind")
    cluster = Kind.CLUSTER
    if cluster in events.kind:
        pairs = zip(events.kind, events.sequence, strict=True)
        if any(kind == cluster and sequence >= len(events.texts) for kind, sequence in pairs):
            raise BadTrace("names what is in no table")


class _Tables:
    """Reads the bytes after the columns."""

    def __init__(self, body: bytes, place: int) -> None:
        self._body = body
        self.place = place

    def text(self, start: int, end: int) -> str:
        self.place = end
        return self._body[start:end].decode("utf-8", "surrogateescape")

    def sized(self, size: struct.Struct) -> tuple[int, int]:
        start = self.place + size.size
        return start, start + size.unpack_from(self._body, self.place)[0]

    def short(self) -> str:
        start = self.place + 1
        return self.text(start, start + self._body[self.place])

    def queue(self) -> QueueName:
        queue_id, size = _QUEUE.unpack_from(self._body, self.place)
        start = self.place + _QUEUE.size
        return QueueName(queue_id, self.text(start, start + size))


def _columns(body: bytes, count: int) -> Iterator[tuple[str, "array[int]"]]:
    start = HEAD.size
    for name, code in COLUMNS:
        column = array(code)
        end = start + column.itemsize * count
        column.frombytes(body[start:end])
        yield name, _swapped(column)
        start = end


def _swapped(column: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _little_endian(column: "array[int]") -> bytes:
    return _swapped(array(column.typecode, column)).tobytes()


def _octets(name: str) -> bytes:
    # Clients may use names that are not UTF-8.
    return name.encode("utf-8", "surrogateescape")


def _long(name: bytes) -> bytes:
    return _U16.pack(len(name)) + name


def _short(name: bytes) -> bytes:
    return bytes((len(name),)) + name

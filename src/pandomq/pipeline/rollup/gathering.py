"""Adds batches of events up to sums: the work of a task, column by column, for hundreds of thousands of events at a
time.

There is no work per event; names are numbers until the end. A late event, whose window is closed already, is left out
of that window only, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from pandomq.pipeline.rollup import measures
from pandomq.pipeline.rollup.sketch import Array, buckets_of
from pandomq.pipeline.rollup.sums import (
    HIGHEST,
    MICROS,
    NAMES_MAX,
    SCHEMA,
    SHORTEST_S,
    VALUES,
    WINDOWS,
    added_up,
    settled,
)
from pandomq.trace_form import ConsumerName, Events, Kind

EVENTS_AT_ONCE: Final = 500_000
"""Events that are added up together; more take more memory, fewer more time."""
LATE: Final = "late"
"""The subject of late events, and its measure; it has neither window nor name."""

_BUCKET_BITS: Final = 12
_BUCKETS: Final = (1 << _BUCKET_BITS) - 1
"""A bucket plus 1."""
_PLACE_BITS: Final = 32
_KINDS: Final = 256


def _flags(kinds: Iterable[Kind]) -> Array:
    flags = np.zeros(_KINDS, dtype=bool)
    flags[[int(kind) for kind in kinds]] = True
    return flags


_CODED_KEYS: Final = ("start", "subject", "pair", "code")
_SUBJECTS: Final = pa.array(measures.SUBJECTS, pa.string())
_MEASURES: Final = pa.array([measures.NAMES.get(number, "") for number in range(_KINDS)], pa.string())
_TIMED: Final = _flags(measures.TIMED)
_ROUTED: Final = _flags(measures.ROUTED)


class _Columns(NamedTuple):
    """Columns of the events of some batches; names are places in the task's pool."""

    start: Array
    kind: Array
    code: Array
    """Measure and bucket in one number."""
    queue: Array
    exchange: Array
    key: Array
    consumer: Array
    broker: Array
    messages: Array
    """Number of messages that each stands for."""
    bytes: Array
    total: Array
    highest: Array
    """The value itself; NaN if there is none."""


class Gatherer:
    """The state of one task."""

    def __init__(self, watermark_us: int) -> None:
        """Windows that end at or before the watermark are closed."""
        self._watermark_us = watermark_us
        self._pool: dict[str, int] = {"": 0}
        self._waiting: list[_Columns] = []
        self._count = 0
        self._parts: list[pa.Table] = []

    def add(self, batch: Events) -> None:
        kind = np.asarray(batch.kind)
        messages = np.flatnonzero(kind != Kind.CLUSTER)
        if not len(messages):
            return
        kind = kind[messages]
        size = np.asarray(batch.size)[messages].astype(np.int64)
        value = np.where(_TIMED[kind], np.asarray(batch.since_us)[messages], size)
        measure = kind.astype(np.int64) * measures.REASONS + np.asarray(batch.reason)[messages]
        routing = np.asarray(batch.routing)[messages]
        weight = 1.0 / batch.sample
        columns = _Columns(
            np.asarray(batch.time_us)[messages] // (SHORTEST_S * MICROS),
            kind,
            (measure << _BUCKET_BITS) + buckets_of(value) + 1,
            self._places(queue.name for queue in batch.queues)[np.asarray(batch.queue)[messages]],
            self._places(routing.exchange for routing in batch.routings)[routing],
            self._places(routing.routing_key for routing in batch.routings)[routing],
            self._places(map(_shown, batch.consumers))[np.asarray(batch.consumer)[messages]],
            np.full(len(messages), self._places([batch.broker])[0]),
            np.full(len(messages), weight),
            size * weight,
            np.maximum(value, 0) * weight,
            np.where(value >= 0, value, np.nan),
        )
        self._waiting += [columns, _held(columns, np.asarray(batch.held_us)[messages])]
        self._count += len(messages)
        if self._count >= EVENTS_AT_ONCE:
            self._add_up()

    def _places(self, names: Iterable[str]) -> Array:
        pool = self._pool
        return np.array([pool.setdefault(name, len(pool)) for name in names], dtype=np.int64)

    def _add_up(self) -> None:
        if not self._waiting:
            return
        columns = _Columns(*(np.concatenate(parts) for parts in zip(*self._waiting, strict=True)))
        self._waiting, self._count = [], 0
        routed = _ROUTED[columns.kind]
        # There may be many keys, and their distribution of sizes would be of little use.
        plain = columns._replace(code=columns.code & ~_BUCKETS, highest=np.full(len(columns.code), np.nan))
        self._parts += [
            _grouped(measures.QUEUE, columns, columns.queue > 0, columns.queue),
            _grouped(measures.BROKER, columns, columns.kind > 0, columns.broker),
            _grouped(measures.EXCHANGE, columns, routed, columns.exchange),
            _grouped(measures.KEY, plain, routed, columns.key, columns.exchange),
            _grouped(measures.CONSUMER, columns, columns.consumer > 0, columns.consumer, columns.queue),
        ]

    def sums(self) -> pa.Table:
        """Sums of everything that was added: in windows of each length that are still open, and late events."""
        self._add_up()
        found = [SCHEMA.empty_table()]
        if self._parts:
            coded = added_up(pa.concat_tables(self._parts), _CODED_KEYS)
            found += [table for length_s in WINDOWS.values() for table in self._in_windows(coded, length_s)]
        # Names are distinct numbers, so these are added up already; there may be too many.
        whole = pa.concat_tables(found)
        return settled([whole]) if len(whole) > NAMES_MAX else whole

    def _in_windows(self, coded: pa.Table, length_s: int) -> list[pa.Table]:
        count = length_s // SHORTEST_S
        start = coded["start"].to_numpy() // count * count
        is_open = (start + count) * SHORTEST_S * MICROS > self._watermark_us
        windows = coded.set_column(0, "start", pa.array(start)).filter(pa.array(is_open))
        found = [self._named(added_up(windows, _CODED_KEYS), length_s)]
        # Each event counts for one broker, so none is counted twice.
        late = ~is_open & (coded["subject"].to_numpy() == measures.SUBJECTS.index(measures.BROKER))
        if late.any():
            found.append(_late(length_s, int(coded["events"].to_numpy()[late].sum())))
        return found

    def _named(self, coded: pa.Table, length_s: int) -> pa.Table:
        pair, code = coded["pair"].to_numpy(), coded["code"].to_numpy()
        names = pa.array([_printable(name) for name in self._pool], pa.string())
        columns = [
            pa.array(np.full(len(coded), length_s, dtype=np.int32)),
            pa.array(coded["start"].to_numpy() * (SHORTEST_S * MICROS)),
            _SUBJECTS.take(coded["subject"]),
            names.take(pa.array(pair >> _PLACE_BITS)),
            names.take(pa.array(pair & (1 << _PLACE_BITS) - 1)),
            _MEASURES.take(pa.array(code >> _BUCKET_BITS)),
            pa.array(((code & _BUCKETS) - 1).astype(np.int32)),
            *(coded[value] for value in VALUES),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)


def _held(columns: _Columns, held_us: Array) -> _Columns:
    """For messages that a consumer has settled or returned: how long it had them."""
    chosen = np.flatnonzero(held_us >= 0)
    found = _Columns(*(column[chosen] for column in columns))
    held_us = held_us[chosen]
    return found._replace(
        # They are no separate events: no broker and no exchange has them.
        kind=np.zeros(len(chosen), dtype=found.kind.dtype),
        code=(measures.HELD_NUMBER << _BUCKET_BITS) + buckets_of(held_us).astype(np.int64) + 1,
        total=held_us * found.messages,
        highest=held_us.astype(np.float64),
    )


def _grouped(subject: str, columns: _Columns, chosen: Array, name: Array, within: Array | None = None) -> pa.Table:
    """Sums of the chosen events, in the shortest windows; keys are numbers."""
    pair = name[chosen] << _PLACE_BITS
    table = pa.table(
        {
            "start": columns.start[chosen],
            "pair": pair if within is None else pair + within[chosen],
            "code": columns.code[chosen],
            "messages": columns.messages[chosen],
            "bytes": columns.bytes[chosen],
            "total": columns.total[chosen],
            HIGHEST: pa.array(columns.highest[chosen], from_pandas=True),
        }
    )
    grouped = table.group_by(["start", "pair", "code"], use_threads=False).aggregate(
        [("code", "count"), ("messages", "sum"), ("bytes", "sum"), ("total", "sum"), (HIGHEST, "max")]
    )
    place = pa.array(np.full(len(grouped), measures.SUBJECTS.index(subject), dtype=np.int8))
    counted = ("code_count", *(f"{value}_sum" for value in VALUES[1:-1]), f"{HIGHEST}_max")
    found = [grouped["start"], place, grouped["pair"], grouped["code"], *(grouped[name] for name in counted)]
    return pa.Table.from_arrays(found, names=[*_CODED_KEYS, *VALUES])


def _late(length_s: int, events: int) -> pa.Table:
    row = (length_s, 0, LATE, "", "", LATE, -1, events, 0.0, 0.0, 0.0, None)
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True))], schema=SCHEMA)


def _shown(consumer: ConsumerName) -> str:
    return f"{consumer.tag} at {consumer.connection}" if consumer.connection else consumer.tag


def _printable(name: str) -> str:
    """Clients may use names that are not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

"""A queue as a source: the query holds a lease on messages, reads them by offset, and releases those that Spark has
processed.

A micro-batch moves messages from the queue into the lease; there they can be read again until Spark has committed the
batch, which releases them for good. Spark reports a commit when it plans the next batch; but it requests new offsets
after an offset only once everything before it is committed, so the messages are released then, also if there are no new
ones. A running driver renews the lease; when it ends, the messages return to the queue after `leaseTimeout`, as
redelivered. Offsets of an expired lease are never used again, so a later query detects this: it fails, or, if
`failOnDataLoss` is false, continues with the messages in the queue, some of which it may have processed before.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import DataFailure, NotFound, PreconditionFailed, Unreachable
from pandomq.data_client.records import LeasedRange
from pandomq.limits import LEASE_BYTES_MAX, LEASE_MESSAGES_MAX
from pandomq.spark.admission import limit_bytes
from pandomq.spark.batch_reader import RangePartition
from pandomq.spark.columns import Shape
from pandomq.spark.reading import DataLoss, RangeReader
from pandomq.spark.source_options import SourceOptions
from pandomq.spark.splitting import OffsetRange, Weighed, split
from pandomq.spark.stream_reader import limits, read_limit

BATCH_MESSAGES: Final = 100_000
BATCH_BYTES: Final = 256 * 1024 * 1024
"""Messages and bytes that one micro-batch takes from a queue, unless its options set other limits."""
IDLE_WAIT_S: Final = 0.25
IDLE_PAUSE_S: Final = 0.08
"""An idle query checks for messages at intervals of IDLE_PAUSE_S, for IDLE_WAIT_S, before it reports that there are
none."""
RENEWALS: Final = 3
"""Renewals of a lease within its timeout."""

_log = logging.getLogger("pandomq.spark")


class Hold:
    """The driver's hold on a queue."""

    def __init__(self, options: SourceOptions, client: DataClient) -> None:
        assert options.subject.queue is not None and options.lease is not None
        self.queue = options.subject.queue
        self._name = options.lease
        self._options = options
        self._client = client
        self._target: int | None = None
        self._released = 0
        self._told: set[int] = set()
        self._stopped = threading.Event()
        threading.Thread(target=self._renew, name="lease renewal", daemon=True).start()

    def look(self, start: int | None) -> LeasedRange:
        """Returns the messages leased already, and renews the lease. Raises DataLoss if `start` is from an expired
        lease."""
        return self._ask(start, 0, 0)

    def take(self, start: int, rows: int | None, size_bytes: int | None) -> LeasedRange:
        """Extends the lease to this many messages from `start` on, if the queue has them."""
        wanted = rows or BATCH_MESSAGES
        end = -1
        while True:
            lease = self._ask(start, wanted, size_bytes or BATCH_BYTES)
            if not lease.more or lease.end_offset == end or lease.end_offset - start >= wanted:
                return lease
            end = lease.end_offset

    def _ask(self, start: int | None, messages: int, size_bytes: int) -> LeasedRange:
        lease = self._client.lease(
            self.queue,
            self._name,
            messages_max=min(messages, LEASE_MESSAGES_MAX),
            bytes_max=min(size_bytes, LEASE_BYTES_MAX),
            timeout_ms=self._options.lease_timeout_ms,
        )
        self._released = lease.first_offset
        if start is not None and start < lease.first_offset:
            self._expired(start)
        return lease

    def _expired(self, start: int) -> None:
        text = (
            f"the lease {self._name} on queue {self.queue} has expired: messages from offset {start} on that were "
            "not acknowledged are in the queue again. With option failOnDataLoss=false the query reads them again, "
            "including those that it has already written"
        )
        if self._options.fail_on_data_loss:
            raise DataLoss(text)
        if start not in self._told:
            self._told.add(start)
            _log.warning("%s", text)

    def newest(self, start: int, rows: int | None, size_bytes: int | None) -> int:
        if self._target is not None and start >= self._target:
            self.release(start)
            return start
        began_s = time.monotonic()
        while True:
            try:
                if start > self._released:
                    self.release(start)
                end = self._limited(start, self.take(start, rows, size_bytes), rows, size_bytes)
            except Unreachable as failure:
                if self._target is not None:
                    raise
                _log.warning("cannot check for new messages at present, will try again: %s", failure)
                return start
            if end > start or self._target is not None or time.monotonic() - began_s >= IDLE_WAIT_S:
                return end
            time.sleep(IDLE_PAUSE_S)

    def _limited(self, start: int, lease: LeasedRange, rows: int | None, size_bytes: int | None) -> int:
        end = lease.end_offset if self._target is None else min(lease.end_offset, self._target)
        wanted = OffsetRange(lease.stream, max(start, lease.first_offset), end)
        if wanted.first >= wanted.end:
            return start
        if rows is not None:
            wanted = wanted._replace(end=min(wanted.end, wanted.first + rows))
        if size_bytes is not None:
            wanted = limit_bytes(wanted, self._client.index(*wanted), size_bytes)
        return wanted.end

    def aim(self) -> None:
        """Takes the messages that the queue has now, so that later ones are left for later."""
        end = -1
        while True:
            lease = self._ask(None, LEASE_MESSAGES_MAX, LEASE_BYTES_MAX)
            if not lease.more or lease.end_offset == end:
                self._target = lease.end_offset
                return
            end = lease.end_offset

    def pieces(self, start: int, end: int) -> list[OffsetRange]:
        lease = self.look(start)
        # The messages before the lease returned to the queue when an older one expired, and are delivered again.
        wanted = OffsetRange(lease.stream, max(start, lease.first_offset), end)
        if wanted.first >= wanted.end:
            return []
        chunks = self._client.index(*wanted)
        return split([Weighed(wanted, chunks)], self._options.partitions_min, self._options.partition_bytes)

    def release(self, offset: int) -> None:
        try:
            self._client.release(self.queue, self._name, offset)
        except (NotFound, PreconditionFailed) as failure:
            _log.warning(
                "the lease on queue %s has expired, and its messages are delivered again: %s", self.queue, failure
            )

    def _renew(self) -> None:
        with self._options.connection.root_client() as client:
            while not self._stopped.wait(self._options.lease_timeout_ms / 1000 / RENEWALS):
                try:
                    client.lease(
                        self.queue, self._name, messages_max=0, bytes_max=0, timeout_ms=self._options.lease_timeout_ms
                    )
                except DataFailure as failure:
                    _log.warning("the lease on queue %s could not be renewed, will try again: %s", self.queue, failure)

    def close(self) -> None:
        self._stopped.set()
        self._client.close()


class LeaseReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are `{queue: next offset}`."""

    def __init__(self, options: SourceOptions, shape: Shape) -> None:
        self._options = options
        self._queue = options.subject.queue or ""
        self._range_reader = RangeReader(options.connection, shape, options.fail_on_data_loss, shown_as=self._queue)
        self._hold: Hold | None = None

    def _driver(self) -> Hold:
        if self._hold is None:
            self._hold = Hold(self._options, self._options.connection.root_client())
        return self._hold

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {self._queue: self._driver().look(None).first_offset}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return read_limit(self._options)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return {self._queue: self._driver().newest(start[self._queue], *limits(self._options, limit))}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._driver().aim()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [RangePartition(piece) for piece in self._driver().pieces(start[self._queue], end[self._queue])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePartition)
        return self._range_reader.batches(partition.wanted)

    def commit(self, end: dict[str, Any]) -> None:
        self._driver().release(end[self._queue])

    def stop(self) -> None:
        """The lease stays: a restarted query continues with it, until it expires."""
        if self._hold is not None:
            self._hold.close()
            self._hold = None

"""The orderly end of a job's streaming query: the current batch is finished, and no other one is begun.

A query runs its batches in a thread of its own, and reports a failure if it is stopped during one. So to end it, the
job closes the gate first, from any thread or a signal, and stops the query once nothing is being written.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Interrupted(Exception):
    """No other batch is begun."""


class BatchGate:
    """The gate of one query."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # A signal may arrive while the same thread is in here.
        self._lock = threading.RLock()
        self._closed = False
        self._hurried = False
        self._writing = False
        self._failed = False
        """A batch could not be written."""
        self._refused = False
        """A batch came too late to be begun."""

    def close(self, *, hurries: bool = True) -> None:
        """Waits for the current batch, unless a caller with `hurries` calls this a second time."""
        with self._lock:
            self._hurried |= self._closed and hurries
            self._closed = True

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Encloses all work for one batch. Raises Interrupted if it came too late."""
        with self._lock:
            if self._closed:
                # Spark's own message about this is not needed.
                self._session.sparkContext.setLogLevel("OFF")
                self._refused = True
                raise Interrupted
            self._writing = True
        try:
            yield
        except BaseException:
            self._failed = True
            raise
        finally:
            self._writing = False

    def waits_for(self, query: StreamingQuery, seconds: int) -> bool:
        """Whether the query should continue, or is still writing; waits up to this many seconds."""
        from pyspark.errors import StreamingQueryException

        # `end` raises the query's exception.
        with suppress(StreamingQueryException):
            query.awaitTermination(seconds)
        return bool(query.isActive) and (not self._closed or (self._writing and not self._hurried))

    def end(self, query: StreamingQuery) -> None:
        """Raises the query's exception, or that of its last batch."""
        died = not query.isActive
        query.stop()
        failure = query.exception()
        # A query that is stopped while it checks for new data, or before its next batch, may report that as a failure.
        if failure is not None and (died or self._failed) and not (self._refused or self._hurried):
            raise failure

"""How a streaming query of a job ends: the batch that is being written is finished, and no other one is begun.

A query runs its batches in a thread of its own, and calls what it is stopped in the middle of a failure. So whoever
wants it to end closes the gate first, from any thread or a signal, and stops it once nothing is being written.
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
    """Of one query."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # A signal may come while the same thread is in here.
        self._lock = threading.RLock()
        self._closed = False
        self._hurried = False
        self._writing = False
        self._failed = False
        """A batch could not be written."""
        self._refused = False
        """A batch came too late to be begun."""

    def close(self, *, hurries: bool = True) -> None:
        """The batch that is being written is waited for; not if somebody who `hurries` calls this a second time."""
        with self._lock:
            self._hurried |= self._closed and hurries
            self._closed = True

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Around all that is done for one. Raises Interrupted if it came too late."""
        with self._lock:
            if self._closed:
                # Nobody needs to read what Spark makes of this.
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
        """Whether it is to go on, or is still writing; up to so many seconds later."""
        from pyspark.errors import StreamingQueryException

        # What it died of is told at its end.
        with suppress(StreamingQueryException):
            query.awaitTermination(seconds)
        return bool(query.isActive) and (not self._closed or (self._writing and not self._hurried))

    def end(self, query: StreamingQuery) -> None:
        """Raises what the query died of, or what its last batch failed of."""
        died = not query.isActive
        query.stop()
        failure = query.exception()
        # A query that is stopped while it looks for news, or before its next batch, may call that a failure.
        if failure is not None and (died or self._failed) and not (self._refused or self._hurried):
            raise failure

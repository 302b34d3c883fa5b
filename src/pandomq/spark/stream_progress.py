"""The driver's part of a streaming query: its start, and the end and the ranges of each micro-batch.

Offsets are `{stream: next offset}`. A stream that appears later and matches the pattern is read from its beginning. An
idle query requests the newest offsets without pause: `newest` then waits briefly for new messages. A failover never
ends a query here: as long as no broker answers there are no new messages.
"""

from __future__ import annotations

import logging
import time
from typing import Final

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import Unreachable
from pandomq.spark.admission import Backlog, limit_rows, total
from pandomq.spark.positions import Positions, check_named
from pandomq.spark.source_options import SourceOptions
from pandomq.spark.splitting import OffsetRange, split

IDLE_WAIT_S: Final = 0.25
"""How long an idle query waits for new messages before it reports none."""
IDLE_PAUSE_S: Final = 0.01
"""Pause between two checks; longer if a check takes long."""
SMALL_SHARE: Final = 8
"""A range that is probably this much smaller than a partition may be is not weighed: this saves one request."""

Offsets = dict[str, int]

_log = logging.getLogger("pandomq.spark")


class StreamProgress:
    def __init__(self, options: SourceOptions, client: DataClient) -> None:
        self._options = options
        self._client = client
        self._positions = Positions(client, options.subject, options.fail_on_data_loss)
        self._target: Offsets | None = None
        self.latest: Offsets = {}
        """The last known ends; Spark shows them beside what it has read."""

    def initial(self) -> Offsets:
        """Raises NoSuchStream, NotAllowed, DataLoss, BadOption."""
        names = self._positions.names()
        check_named(self._options.start, names)
        starts = self._positions.edges(self._options.start, names)
        return {
            name: self._positions.check_start(name, start, self._positions.known[name])
            for name, start in starts.items()
        }

    def aim(self) -> None:
        """From now on later messages are ignored: for queries that read what is available now, and end."""
        self._target = {name: now.end_offset for name, now in self._positions.look(self._positions.names()).items()}

    def newest(self, start: Offsets, rows: int | None, size_bytes: int | None) -> Offsets:
        """The end of the next micro-batch: the available messages, within limits; `start` if there are no new ones."""
        began_s = time.monotonic()
        while True:
            try:
                looked_s = time.monotonic()
                backlog = self._backlog(start)
                if total(backlog) or self._target is not None or backlog.keys() != start.keys():
                    return {name: one.end for name, one in self._limited(backlog, rows, size_bytes).items()}
            except Unreachable as failure:
                if self._target is not None:
                    raise
                _log.warning("cannot check for new messages at present, will try again: %s", failure)
                return start
            now_s = time.monotonic()
            if now_s - began_s >= IDLE_WAIT_S:
                return start
            time.sleep(max(IDLE_PAUSE_S, now_s - looked_s))

    def _backlog(self, start: Offsets) -> dict[str, OffsetRange]:
        names = self._positions.names()
        ranges = self._positions.look(names)
        for name in start.keys() - ranges.keys():
            self._positions.gone(name)
        self.latest = {name: now.end_offset for name, now in ranges.items()}
        found = {}
        for name, now in ranges.items():
            first = self._positions.check_start(name, start.get(name, now.first_offset), now)
            end = now.end_offset if self._target is None else min(now.end_offset, self._target.get(name, first))
            found[name] = OffsetRange(name, first, max(first, end))
        return found

    def _limited(self, backlog: Backlog, rows: int | None, size_bytes: int | None) -> Backlog:
        if rows is not None:
            backlog = limit_rows(backlog, rows)
        waiting = total(backlog)
        if size_bytes is None or not waiting:
            return backlog
        limited = {}
        for name, one in backlog.items():
            share = size_bytes * (one.end - one.first) // waiting
            limited[name] = self._positions.limit_bytes(one, share)
        return limited

    def pieces(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """The partitions of a micro-batch: the same rows for the same offsets; the cuts may differ."""
        ranges = []
        known = self._positions.look_again(end)
        for name, stop in end.items():
            now = known.get(name)
            if now is None:
                self._positions.gone(name)
                continue
            first = self._positions.check_start(name, start.get(name, now.first_offset), now)
            if first < stop:
                ranges.append(OffsetRange(name, first, stop))
        options = self._options
        small = options.partition_bytes // SMALL_SHARE
        if len(ranges) >= options.partitions_min and all(self._positions.size_bytes(one) <= small for one in ranges):
            return ranges
        return split(self._positions.weigh(ranges), options.partitions_min, options.partition_bytes)

    def close(self) -> None:
        self._client.close()

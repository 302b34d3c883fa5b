"""The driver's knowledge of the streams that are read: which streams there are, and their ranges.

It comes from the root: it includes everything that was confirmed to a publisher before a query began, and ends never
decrease. A stream that is shorter than it was, or gone, is loss of data.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Final

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import NoSuchStream
from pandomq.data_client.records import IndexedChunk, StreamRange
from pandomq.spark.admission import limit_bytes
from pandomq.spark.offset_edges import Edge
from pandomq.spark.option_values import BadOption
from pandomq.spark.reading import DataLoss, lost
from pandomq.spark.source_options import Subject
from pandomq.spark.splitting import OffsetRange, Weighed

STREAMS_FRESH_S: Final = 1.0
"""How long the list of streams that match a pattern is cached."""
RANGES_FRESH_S: Final = 1.0
"""How long the range of a stream is cached, for uses that do not need its newest end."""
INDEX_ROWS_MAX: Final = 200_000
"""A range with more chunks than this is cut evenly by offsets instead of by their sizes."""
CHUNK_BYTES_LEAST: Final = 256 * 1024
"""Where there are many chunks they are hardly smaller: this estimates their number from the size of a stream."""
CHUNK_OFFSETS: Final = 4096
"""An index is requested this far beyond the estimated end, so that it need not be requested twice."""

_log = logging.getLogger("pandomq.spark")


class Positions:
    def __init__(self, client: DataClient, subject: Subject, fail_on_data_loss: bool) -> None:
        self._client = client
        self._subject = subject
        self._fail_on_data_loss = fail_on_data_loss
        self._names: tuple[str, ...] = subject.names
        self._names_until_s = 0.0
        self.known: dict[str, StreamRange] = {}
        self._looked_s: dict[str, float] = {}
        """When they were read."""

    def names(self) -> tuple[str, ...]:
        """The streams that are read; for a pattern the current ones."""
        if self._subject.pattern is not None and time.monotonic() >= self._names_until_s:
            self._names = tuple(sorted(self._client.streams(self._subject.pattern)))
            self._names_until_s = time.monotonic() + STREAMS_FRESH_S
        return self._names

    def look(self, names: Iterable[str]) -> dict[str, StreamRange]:
        """The current ranges of streams; streams that are gone are left out. Raises NotAllowed."""
        found = {}
        for name in names:
            try:
                now = self._client.range(name)
            except NoSuchStream:
                self.known.pop(name, None)
                continue
            found[name] = self.known[name] = now
            self._looked_s[name] = time.monotonic()
        return found

    def look_again(self, ends: Mapping[str, int]) -> dict[str, StreamRange]:
        """The same for streams that will be read up to these offsets; a recent range that is sufficient is not
        requested again: the reader gets an error if retention was faster."""
        since_s = time.monotonic() - RANGES_FRESH_S
        fresh = {
            name: now
            for name, end in ends.items()
            if (now := self.known.get(name)) is not None
            and self._looked_s[name] >= since_s
            and now.first_offset <= end <= now.end_offset
        }
        return fresh | self.look(name for name in ends if name not in fresh)

    def edges(self, edge: Edge, names: Iterable[str]) -> dict[str, int]:
        """The offset of an edge in each stream. Raises NoSuchStream if a named stream does not exist."""
        found = {}
        ranges = self.look(names)
        for name in names:
            if name not in ranges:
                raise NoSuchStream(404, f"stream {name!r} does not exist")
            found[name] = edge.resolve(name, ranges[name], self._client)
        return found

    def check_start(self, name: str, start: int, now: StreamRange) -> int:
        """The first offset to read: the wanted one, or the first that is left. Raises DataLoss."""
        if start < now.first_offset:
            return self._lost(lost(name, start, now.first_offset), now.first_offset)
        if start > now.end_offset:
            return self._lost(
                (
                    f"stream {name!r} ends at offset {now.end_offset}, before the wanted offset {start}: it may have "
                    "been deleted and declared again. With option failOnDataLoss=false the query continues with its "
                    "present messages"
                ),
                now.first_offset,
            )
        return start

    def begins_beyond(self, name: str, start: int, now: StreamRange) -> None:
        """A batch would begin behind the end of a stream. Raises DataLoss."""
        text = (
            f"stream {name!r} ends at offset {now.end_offset}, before the wanted offset {start}: it may have been "
            "deleted and declared again. With option failOnDataLoss=false the batch has none of its messages"
        )
        self._lost(text, start)

    def gone(self, name: str) -> None:
        """A stream that was read no longer exists. Raises DataLoss."""
        if self._subject.covers(name):
            text = f"stream {name!r} no longer exists. With option failOnDataLoss=false the query continues without it"
            self._lost(text, 0)

    def _lost(self, text: str, instead: int) -> int:
        if self._fail_on_data_loss:
            raise DataLoss(text)
        _log.warning("%s", text)
        return instead

    def limit_bytes(self, one: OffsetRange, size_bytes: int) -> OffsetRange:
        """A range, cut after this many bytes. Only as much of the index is requested as is needed to find the place."""
        now = self.known.get(one.stream)
        held = 1 if now is None else max(1, now.end_offset - now.first_offset)
        mean = 1 if now is None else max(1, now.size_bytes // held)
        ahead = 2 * size_bytes // mean + CHUNK_OFFSETS
        while one.first < one.end:
            near = one._replace(end=min(one.end, one.first + ahead))
            limited = limit_bytes(near, self._client.index(*near), size_bytes)
            if limited.end < near.end or near.end == one.end:
                return limited
            ahead *= 4
        return one

    def size_bytes(self, one: OffsetRange) -> int:
        """An estimate of its size, by the mean size of the stream's messages."""
        now = self.known.get(one.stream)
        held = 0 if now is None else now.end_offset - now.first_offset
        return 0 if now is None or not held else now.size_bytes * (one.end - one.first) // held

    def weigh(self, ranges: Iterable[OffsetRange]) -> list[Weighed]:
        """Ranges with their chunks, for ranges with so few that it pays to request them."""
        return [Weighed(one, self.chunks(one)) for one in ranges if one.first < one.end]

    def chunks(self, one: OffsetRange) -> list[IndexedChunk]:
        size = self.size_bytes(one)
        if size // CHUNK_BYTES_LEAST > INDEX_ROWS_MAX:
            # As if it were one chunk: pieces then have equal numbers of messages.
            return [IndexedChunk(one.first, one.end - 1, one.end - one.first, size, 0, 0)]
        return self._client.index(one.stream, one.first, one.end)


def check_named(edge: Edge, names: Mapping[str, object] | Iterable[str]) -> None:
    """Raises BadOption if an edge names streams that are not read."""
    unknown = edge.named - set(names)
    if unknown:
        raise BadOption(f"offsets are given for {', '.join(sorted(unknown))}, which the query does not read")

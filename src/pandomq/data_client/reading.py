"""Reads a stream chunk by chunk, and sends the next request while the payload of the last one arrives.

When a broker is lost it continues at another from the same place: chunks are the same everywhere. It waits for a broker
that has less of the stream than requested, and then switches to the root, which has all of it.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Final

from pandomq.data_client import records
from pandomq.data_client.connection import DataConnection
from pandomq.data_client.failures import BadAnswer, NotNow, Unreachable
from pandomq.data_client.line import Line
from pandomq.data_client.patience import Patience
from pandomq.data_client.records import ChunkSlice
from pandomq.data_form import Fields

READ_BYTES: Final = 16 * 1024 * 1024
"""Bytes per request: enough to make requests rare, little enough to have two of them in memory."""
BEHIND_S_MAX: Final = 2.0
"""How long it waits for a broker that is behind before it switches to the root."""


def read_chunks(
    line: Line, timeout_s: float, stream: str, first_offset: int, end_offset: int, bytes_max: int
) -> Generator[ChunkSlice, None, None]:
    """Leaves the line as it was, or closed."""
    patience = Patience(timeout_s)
    run = _Run(stream, first_offset, end_offset, bytes_max)
    behind_since_s: float | None = None
    complete = False
    try:
        while run.next_offset < end_offset:
            connection = line.connected(patience)
            before = run.next_offset
            why = f"the broker has the stream only up to offset {before}"
            try:
                for slice_ in run.over(connection):
                    patience.renew()
                    yield slice_
            except (NotNow, OSError, BadAnswer) as failure:
                why = f"{connection.address}: {failure}"
                line.switch_broker(str(failure))
            if run.next_offset > before:
                behind_since_s = None
                continue
            if patience.over:
                raise Unreachable(
                    f"stream {stream} could not be read from offset {before} to {end_offset} in time: {why}"
                )
            behind_since_s = behind_since_s or time.monotonic()
            if time.monotonic() - behind_since_s > BEHIND_S_MAX and not line.at_root:
                line.switch_broker(why)
                line.at_root = True
            patience.pause()
        complete = True
    finally:
        if not complete:
            # An answer may be on its way that will not be read.
            line.close()


class _Run:
    __slots__ = ("_bytes_max", "_end_offset", "_stream", "next_offset")

    def __init__(self, stream: str, first_offset: int, end_offset: int, bytes_max: int) -> None:
        self._stream = stream
        self.next_offset = first_offset
        self._end_offset = end_offset
        self._bytes_max = bytes_max

    def over(self, connection: DataConnection) -> Generator[ChunkSlice, None, None]:
        """Yields slices until the end, or until the broker has no more at present. `next_offset` is past the chunks
        that were taken."""
        self._ask(connection, self.next_offset)
        asked = True
        while asked:
            fields = connection.receive_fields(stream=True)
            next_offset = records.number(fields, "next_offset")
            asked = self.next_offset < next_offset < self._end_offset
            if asked:
                self._ask(connection, next_offset)
            reading = records.reading(fields, connection.receive_payload(), self.next_offset, self._end_offset)
            yield from reading.slices
            self.next_offset = next_offset

    def _ask(self, connection: DataConnection, first_offset: int) -> None:
        fields: Fields = {
            "stream": self._stream,
            "first_offset": first_offset,
            "end_offset": self._end_offset,
            "bytes_max": self._bytes_max,
        }
        connection.send("read", fields)

"""The part of the kernel's contract (`_fast.pyi`) about traces.

There is no module of this name: both twins export these names themselves.
"""

from typing import final

from pandomq.kernel._fast import Engine

@final
class Trace:
    """Events of the messages of the queues and sessions that have this object as their trace, until the caller takes
    them. trace_form.py defines the rows. A message is traced if `trace_form.is_sampled(sequence, threshold)`."""

    threshold: int
    bytes_max: int
    count: int  # waiting events
    # size of the waiting events with their names, without the head; at bytes_max further events are dropped
    size_bytes: int
    dropped: int  # events dropped since the last `take`
    def __init__(self, engine: Engine, threshold: int, bytes_max: int) -> None: ...
    def take(
        self,
    ) -> tuple[int, int, bytes, list[tuple[int, bytes]], list[bytes], list[tuple[bytes, bytes]]]:
        """Returns the count, the number dropped, and the columns; then the tables: id and label of queues, routings,
        label and tag of consumers."""

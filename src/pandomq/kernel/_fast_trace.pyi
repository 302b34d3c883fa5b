"""The part of the contract of the kernel (`_fast.pyi`) that is about traces.

There is no module of this name: both twins offer all of it themselves.
"""

from typing import final

from pandomq.kernel._fast import Engine

@final
class Trace:
    """Events of the messages of those queues and sessions that name it as their trace, until they are taken. What a row
    means is said in trace_form.py. A message is traced if `trace_form.is_sampled(sequence, threshold)`."""

    threshold: int
    bytes_max: int
    count: int  # events that wait
    size_bytes: int  # what they will take, with their names, but for the head; at bytes_max no more are taken
    dropped: int  # those that were not, since the last `take`
    def __init__(self, engine: Engine, threshold: int, bytes_max: int) -> None: ...
    def take(
        self,
    ) -> tuple[int, int, bytes, list[tuple[int, bytes]], list[bytes], list[tuple[bytes, bytes]]]:
        """Count, dropped, the columns; then the tables: id and label of queues, routings, label and tag of
        consumers."""

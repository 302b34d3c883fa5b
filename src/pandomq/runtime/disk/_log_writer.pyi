"""Writes and syncs open files in a thread of its own that never takes the interpreter's lock.

The thread carries out requests in the order in which they were added. Consecutive requests of one file that are waiting
become one run: adjacent writes become one, and one sync at the end serves for all (`disk_runs` describes the same for
the plain thread). All methods are for one caller, which holds the interpreter's lock; none of them waits for the disk,
except `stop`. There is no plain twin of this class: without it, `LaneThread` carries out all requests.
"""

from typing import final

@final
class LogWriter:
    def __init__(self, wake_fd: int, *, requests_max: int, run_bytes_max: int) -> None:
        """Starts the thread. It adds 1 to the eventfd `wake_fd` when a request is done, once until the next `take`.

        `requests_max` is the size of the ring: the number of requests that were added and not taken. A run writes at
        most `run_bytes_max`, unless a single request is larger."""

    def add_write(self, ticket: int, fd: int, offset: int, chunks: tuple[bytes, ...]) -> bool:
        """Adds a request to write the chunks, one after the other, from this offset on. Returns False, and adds
        nothing, if the ring is full. The file must stay open until the request is taken."""

    def add_sync(self, ticket: int, fd: int) -> bool:
        """Adds a request to sync what was written before (fdatasync). Returns False if the ring is full."""

    def submit(self) -> None:
        """Hands the added requests over to the thread."""

    def take(self) -> list[tuple[int, int, float]]:
        """Removes the requests that are done from the ring: the ticket, the number of the error or 0, and, for the last
        sync of a run, the seconds that the run took, otherwise 0. The caller must have read `wake_fd` before.

        If a write fails, all requests of its run fail with it. If a sync fails, the writes of its run do not."""

    def stop(self) -> None:
        """Waits until all added requests are done, and ends the thread; `take` still returns the results. In a copy of
        the process (fork), where there is no thread, it does nothing."""

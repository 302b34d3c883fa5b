"""The log as the node sees it, and the log in memory.

Everything that must survive is an entry in a log (see `broker.Broker.handle`). An entry is opaque bytes; it has an
index, and once the log reports that the index is committed, the replies and confirms that waited for it may be sent.
The log on disk (`disk_log`) reports this some time after `append`; the one in memory reports it with `commit`, and
keeps nothing: its content is lost with the process, as are the queues themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, Self

from pandomq.ids import LogIndex
from pandomq.kernel import NEVER_MS
from pandomq.node.views.cluster_view import ROOT
from pandomq.node.views.records import ClusterFacts, MemberView

LOW_ON_DISK: Final = "low on disk"


class Log(Protocol):
    """An ordered record of entries."""

    @property
    def last_index(self) -> LogIndex: ...

    @property
    def appended_bytes(self) -> int:
        """The number of bytes since the start."""

    @property
    def holds_back(self) -> str | None:
        """Why publishers are to wait; None if they are not."""

    @property
    def rests(self) -> bool:
        """Publishers are not to be read from for a moment, so that a backup can catch up."""

    @property
    def alarms(self) -> tuple[str, ...]:
        """The problems of the cluster, by name."""

    def inherit(self, older: Self) -> None:
        """Takes the elections and the time that the process knew before the node restarted."""

    def cluster(self, name: str, address: str) -> ClusterFacts:
        """The knowledge of this log, on the broker of this name and address."""

    closed: bool
    """The log has nothing left to write, and takes nothing more."""

    @property
    def next_deadline_ms(self) -> int:
        """The time at which it needs a tick; NEVER_MS if it needs none."""

    def tick(self, now_ms: int, monotonic_ms: int) -> None: ...

    def work(self) -> bool:
        """Does a bounded part of the pending work; True if there is more for now."""

    def append(self, entry: bytes, *, prompt: bool = False) -> LogIndex:
        """Takes the entry, which is to be made safe, and returns its index. `prompt`: a client waits for it to be
        received."""


class MemoryLog:
    """Commits every entry at the end of its batch, and forgets it."""

    alarms: tuple[str, ...] = ()
    rests = False
    closed = True
    next_deadline_ms = NEVER_MS
    __slots__ = (
        "_committed_index",
        "_on_commit",
        "appended_bytes",
        "holds_back",
        "last_index",
    )

    def __init__(self, on_commit: Callable[[LogIndex], None]) -> None:
        self._on_commit = on_commit
        self._committed_index = LogIndex(0)
        self.last_index = LogIndex(0)
        self.appended_bytes = 0
        self.holds_back: str | None = None

    def inherit(self, older: MemoryLog) -> None:
        """There are none, and it knows no time."""

    def cluster(self, name: str, address: str) -> ClusterFacts:
        member = MemberView(name, ROOT, address, True, self.last_index, self._committed_index, 0)
        return ClusterFacts(ROOT, 0, 0, name, (member,))

    def append(self, entry: bytes, *, prompt: bool = False) -> LogIndex:
        self.last_index = LogIndex(self.last_index + 1)
        self.appended_bytes += len(entry)
        return self.last_index

    def tick(self, now_ms: int, monotonic_ms: int) -> None:
        """It needs no time."""

    def work(self) -> bool:
        return False

    def commit(self) -> None:
        """The end of a batch: all its entries are committed."""
        if self._committed_index < self.last_index:
            self._committed_index = self.last_index
            self._on_commit(self.last_index)

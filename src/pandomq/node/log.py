"""The log as the node sees it, and the one that lives in memory.

Everything that must survive is an entry in a log (see `broker.Broker.handle`). An entry is opaque bytes; it has an
index, and once the log says that the index is committed, the replies and confirms that waited for it may go out. The
log on disk (`disk_log`) says so some time after `sync`; the one in memory says so at once, and keeps nothing: what it
held is lost with the process, as are the queues themselves.
"""

from collections.abc import Callable
from typing import Final, Protocol

from pandomq.ids import LogIndex
from pandomq.node.cluster_view import ROOT
from pandomq.node.elections import Elections
from pandomq.node.view_records import ClusterFacts, MemberView

LOW_ON_DISK: Final = "low on disk"


class Log(Protocol):
    """An ordered record of entries."""

    @property
    def last_index(self) -> LogIndex: ...

    @property
    def appended_bytes(self) -> int:
        """Since the start."""

    @property
    def holds_back(self) -> str | None:
        """Why publishers are to wait; None if they are not."""

    @property
    def rests(self) -> bool:
        """Publishers are not to be read from for a moment, so that a backup can catch up."""

    @property
    def alarms(self) -> tuple[str, ...]:
        """What is wrong with the cluster, by name."""

    elections: Elections
    time_ahead_ms: int | None
    """By how much the cluster's time is ahead of the process's steady clock; None if that is not known. Both are handed
    on to the log of a node that begins again."""

    def cluster(self, name: str, address: str) -> ClusterFacts:
        """What is known here, on the broker of this name and address."""

    def append(self, entry: bytes, *, prompt: bool = False) -> LogIndex:
        """Takes the entry and gives the index it will have. `prompt`: somebody waits for it to be received."""

    def sync(self) -> None:
        """The end of a batch: what was appended is to be made safe. The commit callback is told the index once it
        is, now or later."""


class MemoryLog:
    """Commits every entry at the end of its batch, and forgets it."""

    alarms: tuple[str, ...] = ()
    rests = False
    __slots__ = (
        "_committed_index",
        "_on_commit",
        "appended_bytes",
        "elections",
        "holds_back",
        "last_index",
        "time_ahead_ms",
    )

    def __init__(self, on_commit: Callable[[LogIndex], None]) -> None:
        self._on_commit = on_commit
        self._committed_index = LogIndex(0)
        self.last_index = LogIndex(0)
        self.appended_bytes = 0
        self.holds_back: str | None = None
        self.elections = Elections()
        self.time_ahead_ms: int | None = None

    def cluster(self, name: str, address: str) -> ClusterFacts:
        member = MemberView(name, ROOT, address, True, self.last_index, self._committed_index, 0)
        return ClusterFacts(ROOT, 0, 0, name, (member,))

    def append(self, entry: bytes, *, prompt: bool = False) -> LogIndex:
        self.last_index = LogIndex(self.last_index + 1)
        self.appended_bytes += len(entry)
        return self.last_index

    def sync(self) -> None:
        if self._committed_index < self.last_index:
            self._committed_index = self.last_index
            self._on_commit(self.last_index)

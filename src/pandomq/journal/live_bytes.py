"""How much of each file is live, as the log's owner counts it.

What is released counts once the log is settled as far as it reached when that was said, that is, committed and synced:
until then the entry that released it could still be cut off or lost, and a message be live again.

During replay the owner counts as live what a snapshot holds, also messages that a later entry releases and whose file
may be gone for that reason. Such bytes are lost for a while; at the end of the replay none may be left.
"""

from collections import deque
from collections.abc import Callable, Iterable

from pandomq.journal.faults import missing
from pandomq.journal.segment import Catalogue, Stored


class LiveBytes:
    __slots__ = ("_catalogue", "_lost_bytes", "_lost_index", "_releases", "last_index", "on_dead", "settled_index")

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._releases: deque[tuple[int, dict[Stored, int]]] = deque()
        """What was released while the log ended at an index, waiting for it to be settled."""
        self._lost_bytes = 0
        self._lost_index = 0
        self.settled_index = 0
        self.last_index: Callable[[], int] = lambda: 0
        self.on_dead: Callable[[Stored], None] = lambda stored: None

    def live(self, index: int, size_bytes: int) -> None:
        stored = self._catalogue.holder(index)
        if stored is not None:
            stored.live_bytes += size_bytes
        else:
            self._lost_bytes += size_bytes
            self._lost_index = index

    def released(self, amounts: Iterable[tuple[int, int]]) -> None:
        at = self.last_index()
        if not self._releases or self._releases[-1][0] != at:
            self._releases.append((at, {}))
        waiting = self._releases[-1][1]
        for index, size_bytes in amounts:
            stored = self._catalogue.holder(index)
            if stored is not None:
                waiting[stored] = waiting.get(stored, 0) + size_bytes
            else:
                self._lost_bytes -= size_bytes

    def settle(self, index: int) -> None:
        """Entries up to this one stay, whatever happens."""
        self.settled_index = index
        while self._releases and self._releases[0][0] <= index:
            for released, size_bytes in self._releases.popleft()[1].items():
                stored = released.current
                stored.live_bytes -= size_bytes
                assert stored.live_bytes >= 0, "released more than was live"
                if not stored.live_bytes:
                    self.on_dead(stored)

    def check_replayed(self) -> None:
        """Raises CorruptFault if live messages are in no file."""
        if self._lost_bytes:
            raise missing(f"a file is missing: it held entry {self._lost_index}, which has live messages")

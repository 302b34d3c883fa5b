"""Which page files a store has, which of them its snapshots refer to, and whether the pages that they refer to are
there."""

from __future__ import annotations

from collections.abc import Callable

from pandomq.journal.effects import FileName
from pandomq.journal.events import Flaw, FlawKind
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.names import page_file, page_number
from pandomq.journal.paging.page_file import PagePlace, check_head, is_whole
from pandomq.journal.recovery.file_scan import FileScan
from pandomq.journal.snapshots.snapshot import BadSnapshot, SnapshotHead
from pandomq.journal.work import Work, read


class PageScan:
    __slots__ = ("_checked", "_file_scan", "_places", "damaged", "held")

    def __init__(self, file_scan: FileScan) -> None:
        self._file_scan = file_scan
        self._places: dict[PagePlace, None] = {}
        self._checked: set[int] = set()
        self.held: dict[int, frozenset[int]] = {}
        """Numbers of the files that snapshots refer to, by the snapshot's index."""
        self.damaged: list[PagePlace] = []
        """Pages that are not as they were written, among those that were checked."""

    @property
    def size_bytes(self) -> int:
        return sum(place.length for place in self._places)

    def take(self, head: SnapshotHead, places: list[PagePlace]) -> Work[None]:
        """Raises BadSnapshot if the snapshot refers to a page that is missing."""
        for place in places:
            file = page_file(place.number)
            if self._file_scan.sizes.get(file, 0) < place.end:
                raise BadSnapshot(0, f"it refers to a missing page at {place.offset} of {file}")
        numbers = frozenset(place.number for place in places)
        for number in sorted(numbers - self._checked):
            self._checked.add(number)
            file = page_file(number)
            sector = yield from read(file, 0, SECTOR_BYTES)
            if not check_head(file, number, sector, head.cluster_id):
                self._file_scan.flaws.append(Flaw(FlawKind.HEAD, file, 0, "the head is damaged"))
        self.held[head.last_index] = numbers
        self._places.update(dict.fromkeys(places))

    def leftovers(self) -> list[FileName]:
        """Files that no snapshot refers to: their contents come again with the log, or need not survive."""
        wanted = frozenset[int]().union(*self.held.values())
        files = [(file, page_number(file)) for file in self._file_scan.sizes]
        return [file for file, number in files if number is not None and number not in wanted]

    def look_deeper(self, flaws: list[Flaw], progress: Callable[[int], None]) -> Work[None]:
        done_bytes = 0
        for place in sorted(self._places):
            file = page_file(place.number)
            blob = yield from read(file, place.offset, place.length)
            if not is_whole(place, blob):
                self.damaged.append(place)
                flaws.append(Flaw(FlawKind.PAGE, file, place.offset, "a page of messages is damaged"))
            done_bytes += place.length
            progress(done_bytes)

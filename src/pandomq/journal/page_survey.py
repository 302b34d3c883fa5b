"""Which page files a store has, which of them its snapshots refer to, and whether what they refer to is there."""

from __future__ import annotations

from collections.abc import Callable

from pandomq.journal.effects import FileName
from pandomq.journal.events import Flaw, FlawKind
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.names import page_file, page_number
from pandomq.journal.page_file import Place, check_head, is_whole
from pandomq.journal.snapshot import SnapshotBad, SnapshotHead
from pandomq.journal.survey import Survey
from pandomq.journal.work import Work, read


class PageSurvey:
    __slots__ = ("_checked", "_places", "_survey", "damaged", "held")

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._places: dict[Place, None] = {}
        self._checked: set[int] = set()
        self.held: dict[int, frozenset[int]] = {}
        """Numbers of the files that snapshots refer to, by the snapshot's index."""
        self.damaged: list[Place] = []
        """Pages that are not what was written, as far as that was looked at."""

    @property
    def size_bytes(self) -> int:
        return sum(place.length for place in self._places)

    def take(self, head: SnapshotHead, places: list[Place]) -> Work[None]:
        """Raises SnapshotBad if the snapshot refers to what is not there."""
        for place in places:
            file = page_file(place.number)
            if self._survey.sizes.get(file, 0) < place.end:
                raise SnapshotBad(0, f"it refers to a page at {place.offset} of {file}, which is not there")
        numbers = frozenset(place.number for place in places)
        for number in sorted(numbers - self._checked):
            self._checked.add(number)
            file = page_file(number)
            sector = yield from read(file, 0, SECTOR_BYTES)
            if not check_head(file, number, sector, head.cluster_id):
                self._survey.flaws.append(Flaw(FlawKind.HEAD, file, 0, "the head is damaged"))
        self.held[head.last_index] = numbers
        self._places.update(dict.fromkeys(places))

    def leftovers(self) -> list[FileName]:
        """Files that no snapshot refers to: what was in them comes again with the log, or was not to survive."""
        wanted = frozenset[int]().union(*self.held.values())
        files = [(file, page_number(file)) for file in self._survey.sizes]
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

"""Which bodies of messages a store has, and where: these need not be sent again with a snapshot (R18).

Built by reading the log, the newest snapshot and the pages that it refers to. Each requested body is read back and
checked against its digest: a body that was moved or deleted in the meantime counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pandomq.ids import ClusterId
from pandomq.journal.effects import FileName
from pandomq.journal.limits import SCANNED_BODIES_MAX, JournalSettings
from pandomq.journal.names import page_file, snapshot_file
from pandomq.journal.paging.page_file import PagePlace
from pandomq.journal.segments.layout import ENTRY_HEAD, ENTRY_HEAD_BYTES
from pandomq.journal.segments.segment import Segment, SegmentList
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.recipe import Bodies, Extent, KnownBody, digest_of, worth_naming
from pandomq.journal.snapshots.snapshot import BadSnapshot, read_foundation, read_head
from pandomq.journal.snapshots.stream_bodies import walk_bodies
from pandomq.journal.work import DiskFailed, Work, list_files, read

GAP_BYTES_MAX: Final = 16 * 1024
"""Bodies that are further apart are read separately."""


class Spot(NamedTuple):
    file: FileName
    offset: int
    length: int


class BodyScan:
    def __init__(self, settings: JournalSettings, cluster_id: ClusterId, bodies: Bodies) -> None:
        self._settings = settings
        self._cluster_id = cluster_id
        self._bodies = bodies
        self._spots: dict[bytes, Spot] = {}

    def __len__(self) -> int:
        return len(self._spots)

    # Making it.

    def make(self, catalogue: SegmentList, snapshot_index: int) -> Work[None]:
        """Skips whatever cannot be read."""
        for segment in list(catalogue):
            for first, last in self._runs(segment):
                try:
                    yield from self._take_entries(segment, first, last)
                except DiskFailed:
                    break
        if snapshot_index:
            try:
                yield from self._take_pages(snapshot_index)
            except (DiskFailed, BadSnapshot):
                return

    def _runs(self, segment: Segment) -> Iterator[tuple[int, int]]:
        """Indexes of entries that are read together."""
        first = start = segment.first_index
        for index in range(first, segment.last_index + 1):
            if segment.entry_span(index)[1] - segment.entry_span(start)[0] > self._settings.bulk_chunk_bytes:
                yield start, index
                start = index + 1
        if start <= segment.last_index:
            yield start, segment.last_index

    def _take_entries(self, segment: Segment, first: int, last: int) -> Work[None]:
        begin, end = segment.entry_span(first)[0], segment.entry_span(last)[1]
        data = yield from read(segment.file, begin, end - begin)
        for index in range(first, last + 1):
            at = segment.entry_span(index)[0] - begin
            if at + ENTRY_HEAD_BYTES <= len(data):
                length = ENTRY_HEAD.unpack_from(data, at)[2]
                at += ENTRY_HEAD_BYTES
                payload = data[at : at + length]
                self._note(segment.file, begin + at, payload, self._bodies.of_entry(payload))

    def _take_pages(self, snapshot_index: int) -> Work[None]:
        file = snapshot_file(snapshot_index)
        sizes = {info.file: info.size_bytes for info in (yield from list_files())}
        window = ReadWindow(file, sizes.get(file, 0), self._settings.bulk_chunk_bytes)
        yield from read_head(file, window, self._cluster_id)
        foundation = yield from read_foundation(window)
        for place in foundation.places:
            yield from self._take_page(place)

        def note(offset: int, body: memoryview) -> None:
            self._note(file, offset, body, [(0, len(body))])

        yield from walk_bodies(window, self._bodies, note)

    def _take_page(self, place: PagePlace) -> Work[None]:
        blob = yield from read(page_file(place.number), place.offset, place.length)
        self._note(page_file(place.number), place.offset, blob, self._bodies.of_page(blob))

    def _note(self, file: FileName, start: int, data: bytes | memoryview, extents: Sequence[Extent]) -> None:
        view = memoryview(data)
        for offset, length in worth_naming(extents):
            if len(self._spots) < SCANNED_BODIES_MAX:
                self._spots[digest_of(view[offset : offset + length])] = Spot(file, start + offset, length)

    # Using it.

    def find(self, wanted: Sequence[KnownBody]) -> Work[list[bytes] | None]:
        """All of these bodies; None if one of them is not there."""
        spots = []
        for known in wanted:
            spot = self._spots.get(known.digest)
            if spot is None or spot.length != known.length:
                return None
            spots.append(spot)
        found: list[bytes] = []
        for first, last, end in self._neighbours(spots):
            begin = spots[first].offset
            data = yield from read(spots[first].file, begin, end - begin)
            found += (data[spot.offset - begin :][: spot.length] for spot in spots[first : last + 1])
        whole = all(digest_of(body) == known.digest for body, known in zip(found, wanted, strict=True))
        return found if whole else None

    def _neighbours(self, spots: Sequence[Spot]) -> Iterator[tuple[int, int, int]]:
        """Ranges to read together, each with its end. Equal bodies share one spot, which is read once."""
        first = end = 0
        for place, spot in enumerate(spots):
            begin, reach = spots[first].offset, spot.offset + spot.length
            near = spot.file == spots[first].file and begin <= spot.offset <= end + GAP_BYTES_MAX
            if place > first and not (near and max(end, reach) - begin <= self._settings.part_bytes):
                yield first, place - 1, end
                first = place
            end = reach if place == first else max(end, reach)
        if spots:
            yield first, len(spots) - 1, end

"""Reads the newest snapshot and the pages it refers to, part by part, for another broker.

A part is a range of one file: its name, offset, and bytes. So the receiver can build the same files, and
check them as if they were its own. A damaged page ends this broker, as it does when a client needs its messages: the
receiver would reject the snapshot again and again. While parts are requested, the snapshot and the log after it are
kept; they are released some time after the last request.

    part    kind u8 (0 the snapshot's file, 1 a page file, 2 and 3 the recipe of a whole page, or of some of the
            snapshot's file), number u64 (of the page file), offset u64, data
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from pandomq.ids import LogIndex, Term
from pandomq.journal.effects import Lane, Ticket
from pandomq.journal.events import Event, PartRead
from pandomq.journal.faults import damaged_page
from pandomq.journal.limits import SENDING_IDLE_MS, JournalSettings
from pandomq.journal.names import page_file, snapshot_file
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.paging.page_file import PagePlace
from pandomq.journal.segments.layout import Identity
from pandomq.journal.segments.reclaimer import Reclaimer
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.recipe import BODY_BYTES_MIN, Bodies, Extent, encode_recipe, worth_naming
from pandomq.journal.snapshots.snapshot import BadSnapshot, SnapshotHead, read_foundation, read_head
from pandomq.journal.snapshots.stream_bodies import walk_bodies
from pandomq.journal.work import DiskFailed, Task, Work, list_files, read
from pandomq.kernel import crc32

PART: Final = struct.Struct("<BQQ")
KIND_SNAPSHOT: Final = 0
KIND_PAGE: Final = 1
KIND_PAGE_RECIPE: Final = 2
KIND_SNAPSHOT_RECIPE: Final = 3
RECIPES: Final = {KIND_PAGE_RECIPE: KIND_PAGE, KIND_SNAPSHOT_RECIPE: KIND_SNAPSHOT}
"""The kind that each is a recipe of."""


class SnapshotPart(NamedTuple):
    kind: int
    number: int
    offset: int
    length: int
    place: PagePlace | None = None
    """For a page: all of it."""


class SnapshotSource(NamedTuple):
    name: str
    head: SnapshotHead
    parts: list[SnapshotPart]
    extents: list[Extent]
    """Bodies in the snapshot's file."""


class SnapshotSender:
    __slots__ = (
        "_asked_ms",
        "_checked",
        "_emit",
        "_identity",
        "_now_ms",
        "_outbox",
        "_reclaimer",
        "_settings",
        "_source",
        "_task",
        "_wanted",
        "bodies",
    )

    def __init__(
        self,
        settings: JournalSettings,
        identity: Identity,
        outbox: DiskRequests,
        reclaimer: Reclaimer,
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._outbox = outbox
        self._reclaimer = reclaimer
        self._emit = emit
        self._source: SnapshotSource | None = None
        self._checked: dict[PagePlace, tuple[int, int]] = {}
        """For each page that was read in part: the number of its next part, and the checksum of those before it. The
        snapshot may be sent to several brokers at the same time."""
        self._wanted: deque[tuple[Ticket, int, bool]] = deque()
        self.bodies: Bodies | None = None
        """Set by the owner, if other brokers may have some of its bodies already."""
        self._task: Task[None] | None = None
        self._now_ms = self._asked_ms = 0

    def read(self, name: str, number: int, *, lean: bool = False) -> Ticket:
        """Reads a part of the snapshot of this name, or of the newest; `PartRead` returns it, as a recipe if possible
        and `lean`. Raises LookupError."""
        if name and (self._source is None or self._source.name != name):
            raise LookupError(f"snapshot {name} no longer exists")
        if not self._reclaimer.snapshots:
            raise LookupError("no snapshot exists yet")
        self._asked_ms = self._now_ms
        if self._reclaimer.kept_index is None:
            self._reclaimer.kept_index = self._reclaimer.snapshots[0]
        ticket = self._outbox.next_ticket()
        self._wanted.append((ticket, number, lean))
        if self._task is None or self._task.over:
            self._task = Task(self._outbox, Lane.READ, self._work(), lambda _: None).start()
        return ticket

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if self._reclaimer.kept_index is not None and now_ms - self._asked_ms > SENDING_IDLE_MS:
            self._let_go()

    def _let_go(self) -> None:
        self._source = None
        self._checked.clear()
        self._reclaimer.kept_index = None
        self._reclaimer.step()

    def _work(self) -> Work[None]:
        while self._wanted:
            ticket, number, lean = self._wanted.popleft()
            try:
                if self._source is None:
                    self._source = yield from self._plan()
                event = yield from self._read(self._source, ticket, number, lean)
            except (DiskFailed, BadSnapshot) as failure:
                self._let_go()
                event = PartRead(ticket, "", LogIndex(0), Term(0), b"", last=False, flaw=str(failure))
            self._emit(event)

    def _plan(self) -> Work[SnapshotSource]:
        index = self._reclaimer.kept_index
        assert index is not None
        file = snapshot_file(index)
        sizes = {info.file: info.size_bytes for info in (yield from list_files())}
        size_bytes = sizes.get(file, 0)
        window = ReadWindow(file, size_bytes, self._settings.bulk_chunk_bytes)
        head = yield from read_head(file, window, self._identity.cluster_id)
        foundation = yield from read_foundation(window)
        part_bytes = self._settings.part_bytes
        parts = [SnapshotPart(KIND_SNAPSHOT, 0, *part) for part in _stretches(0, size_bytes, part_bytes)]
        for place in sorted(foundation.places):
            parts += [
                SnapshotPart(KIND_PAGE, place.number, *part, place)
                for part in _stretches(place.offset, place.length, part_bytes)
            ]
        # The store, the entry and the size: no two snapshots share all three.
        name = f"{self._identity.node_name}-{index}-{head.chain:08x}-{size_bytes}-{len(parts)}"
        return SnapshotSource(name, head, parts, (yield from self._find_bodies(window)))

    def _find_bodies(self, window: ReadWindow) -> Work[list[Extent]]:
        extents: list[Extent] = []

        def note(offset: int, body: memoryview) -> None:
            if len(body) >= BODY_BYTES_MIN:
                extents.append((offset, len(body)))

        if self.bodies is not None:
            yield from walk_bodies(window, self.bodies, note)
        return extents

    def _read(self, source: SnapshotSource, ticket: Ticket, number: int, lean: bool) -> Work[PartRead]:
        head = source.head
        if number >= len(source.parts):
            return PartRead(
                ticket, source.name, LogIndex(0), Term(0), b"", last=False, flaw="the requested part does not exist"
            )
        part = source.parts[number]
        file = head.file if part.kind == KIND_SNAPSHOT else page_file(part.number)
        data = yield from read(file, part.offset, part.length)
        self._check_page(part, number, data)
        kind = part.kind
        extents = self._extents(source, part, data) if lean else []
        if extents:
            kind = KIND_PAGE_RECIPE if kind == KIND_PAGE else KIND_SNAPSHOT_RECIPE
            data = encode_recipe(data, extents)
        return PartRead(
            ticket,
            source.name,
            LogIndex(head.last_index),
            Term(head.term),
            PART.pack(kind, part.number, part.offset) + data,
            last=number == len(source.parts) - 1,
        )

    def _check_page(self, part: SnapshotPart, number: int, data: bytes) -> None:
        """Checks the page if its parts are read one after the other, for whichever brokers. Raises CorruptFault."""
        place = part.place
        if place is None:
            return
        begins, ends = part.offset == place.offset, part.offset + part.length == place.end
        next_number, checksum = (number, 0) if begins else self._checked.get(place, (0, 0))
        if len(data) < part.length:
            raise damaged_page(page_file(place.number), place.offset)
        if number != next_number:
            # This part was sent to another broker before, or this broker wants the page from its middle on.
            return
        checksum = crc32(data, checksum)
        if not ends:
            self._checked[place] = (number + 1, checksum)
            return
        self._checked.pop(place, None)
        if checksum != place.checksum:
            raise damaged_page(page_file(place.number), place.offset)

    def _extents(self, source: SnapshotSource, part: SnapshotPart, data: bytes) -> list[Extent]:
        if part.kind == KIND_PAGE:
            # Of a stretch of a page there are none.
            return [] if self.bodies is None else worth_naming(self.bodies.of_page(data))
        first = bisect_left(source.extents, (part.offset, 0))
        last = bisect_left(source.extents, (part.offset + part.length, 0))
        inside = [(offset - part.offset, length) for offset, length in source.extents[first:last]]
        return inside[:-1] if inside and sum(inside[-1]) > part.length else inside


def _stretches(offset: int, length: int, part_bytes: int) -> list[tuple[int, int]]:
    end = offset + length
    return [(start, min(part_bytes, end - start)) for start in range(offset, end, part_bytes)]

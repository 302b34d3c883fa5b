"""The files of a store and their heads: the first step of a scan, which changes nothing.

A damaged head is replaced from other data where possible: the identity from the file's name and the hard state, the
first index from the first entry.
"""

from __future__ import annotations

from typing import NamedTuple

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.effects import FileInfo, FileName
from pandomq.journal.events import Flaw, FlawKind
from pandomq.journal.faults import corrupt, foreign_cluster, foreign_node, missing, unknown_version
from pandomq.journal.hard_state import COPY_OFFSETS, StoreState, decode_copy
from pandomq.journal.limits import SECTOR_BYTES, STATE_COPY_BYTES, JournalSettings
from pandomq.journal.names import (
    RESERVE,
    STATE,
    UNFINISHED,
    arriving_name,
    aside_number,
    page_number,
    retained_number,
    segment_number,
    snapshot_index,
)
from pandomq.journal.segments.layout import (
    BLANK,
    ENTRY_BEGIN,
    ENTRY_END,
    ENTRY_HEAD,
    ENTRY_HEAD_BYTES,
    HEAD_BYTES,
    IDENTITY_SECTOR,
    MARK_SECTORS,
    OPENING_SECTOR,
    SEAL_SECTOR,
    VERSION,
    Seal,
    SegmentStart,
    SyncMark,
    body_offset,
    decode_identity,
    decode_mark,
    decode_opening,
    decode_seal,
    file_seed,
)
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.snapshot import BadSnapshot, SnapshotHead, read_head
from pandomq.journal.work import Work, list_files, read


class Expected(NamedTuple):
    """The identity that the store should have; None accepts any."""

    cluster_id: ClusterId | None
    node_name: NodeName | None


class SegmentFile:
    """A segment as its head describes it."""

    __slots__ = ("file", "head_damaged", "marks", "number", "opening", "seal", "seed", "size_bytes", "slot_count")

    def __init__(self, info: FileInfo, number: int) -> None:
        self.file = info.file
        self.size_bytes = info.size_bytes
        self.number = number
        self.seed = 0
        self.slot_count = 0
        self.opening: SegmentStart | None = None
        self.marks: list[SyncMark] = []
        self.seal: Seal | None = None
        self.head_damaged = False

    @property
    def first_index(self) -> int:
        assert self.opening is not None
        return self.opening.first_index

    @property
    def body_offset(self) -> int:
        return body_offset(self.slot_count)


class FileScan:
    __slots__ = (
        "counter",
        "flaws",
        "leftovers",
        "number_last",
        "reserve_held",
        "segments",
        "sizes",
        "snapshots",
        "state",
        "unfinished",
        "unopened",
    )

    def __init__(self) -> None:
        self.state: StoreState | None = None
        self.counter = 0
        self.segments: list[SegmentFile] = []
        """Segments with entries, in the order of their numbers, which is that of their indexes."""
        self.unopened: list[SegmentFile] = []
        self.snapshots: list[SnapshotHead] = []
        """Newest first; not yet read in full."""
        self.unfinished: list[FileName] = []
        """Written by a process that ended before it finished: useless, whatever else is damaged."""
        self.leftovers: list[FileName] = []
        """Superseded by other files, or unreadable."""
        self.reserve_held = False
        self.number_last = 0
        self.sizes: dict[FileName, int] = {}
        self.flaws: list[Flaw] = []

    @property
    def fresh(self) -> bool:
        return self.state is None

    def run(self, settings: JournalSettings, expected: Expected) -> Work[None]:
        files = yield from list_files()
        self.sizes = {info.file: info.size_bytes for info in files}
        self.unfinished += [info.file for info in files if info.file.endswith(UNFINISHED) or arriving_name(info.file)]
        self.reserve_held = any(info.file == RESERVE for info in files)
        numbers = [f(info.file) for info in files for f in (segment_number, page_number, aside_number, retained_number)]
        self.number_last = max((number for number in numbers if number is not None), default=0)
        yield from self._read_state(files)
        if self.state is None:
            return
        cluster_id = ClusterId(self.state.cluster_id)
        if expected.cluster_id is not None and cluster_id != expected.cluster_id:
            raise foreign_cluster(STATE, cluster_id, expected.cluster_id)
        if expected.node_name is not None and self.state.node_name != expected.node_name:
            raise foreign_node(self.state.node_name, expected.node_name)
        for info in sorted(files):
            yield from self._read_one(info, cluster_id, settings)
        self.snapshots.sort(key=lambda head: -head.last_index)
        self._check_newest()

    def _read_one(self, info: FileInfo, cluster_id: ClusterId, settings: JournalSettings) -> Work[None]:
        number = segment_number(info.file)
        if number is not None:
            segment = yield from _read_segment_head(info, number, cluster_id, settings.slot_count)
            if segment.opening is None:
                yield from self._reopen(segment)
            (self.unopened if segment.opening is None else self.segments).append(segment)
            if segment.head_damaged:
                self.flaws.append(Flaw(FlawKind.HEAD, info.file, 0, "the head is damaged"))
        elif snapshot_index(info.file) is not None:
            try:
                window = ReadWindow(info.file, info.size_bytes, SECTOR_BYTES)
                self.snapshots.append((yield from read_head(info.file, window, cluster_id)))
            except BadSnapshot as bad:
                self.flaws.append(Flaw(FlawKind.SNAPSHOT, info.file, bad.offset, bad.text))
                self.leftovers.append(info.file)

    # The hard state.

    def _read_state(self, files: tuple[FileInfo, ...]) -> Work[None]:
        copies = []
        blank = True
        if any(info.file == STATE for info in files):
            for offset in COPY_OFFSETS:
                data = yield from read(STATE, offset, STATE_COPY_BYTES)
                blank = blank and not any(data)
                copies.append(decode_copy(data))
        good = [copy for copy in copies if copy is not None]
        if good:
            self.counter, self.state = max(good, key=lambda copy: copy[0])
            if len(good) < len(copies):
                self.flaws.append(Flaw(FlawKind.STATE, STATE, COPY_OFFSETS[copies.index(None)], "a copy is damaged"))
        elif any(segment_number(info.file) or snapshot_index(info.file) for info in files):
            if not copies or blank:
                raise missing(f"{STATE} is missing from a store that has entries")
            raise corrupt(STATE, 0, "both copies of the hard state are damaged")

    # Segments.

    def _reopen(self, segment: SegmentFile) -> Work[None]:
        """The opening is missing. It must have existed if the segment is known to have been in use."""
        assert self.state is not None
        if segment.number > self.state.segment_newest and not segment.head_damaged:
            return
        head = yield from read(segment.file, segment.body_offset, ENTRY_HEAD_BYTES)
        if len(head) == ENTRY_HEAD_BYTES:
            begin, _, _, index, _, _, end = ENTRY_HEAD.unpack(head)
            if (begin, end) == (ENTRY_BEGIN, ENTRY_END):
                segment.opening = SegmentStart(index, 0, 0)
                segment.head_damaged = True
                return
        if segment.number == self.state.segment_newest:
            raise corrupt(segment.file, 0, "its head and its first entry are damaged")

    def _check_newest(self) -> None:
        assert self.state is not None
        newest = self.state.segment_newest
        if newest and max((segment.number for segment in self.segments), default=0) < newest:
            raise missing(f"segment {newest} is missing")


def _read_segment_head(info: FileInfo, number: int, cluster_id: ClusterId, slot_count: int) -> Work[SegmentFile]:
    segment = SegmentFile(info, number)
    head = (yield from read(info.file, 0, HEAD_BYTES)).ljust(HEAD_BYTES, b"\0")
    sectors = [head[at : at + SECTOR_BYTES] for at in range(0, HEAD_BYTES, SECTOR_BYTES)]
    identity = decode_identity(sectors[IDENTITY_SECTOR])
    segment.seed = file_seed(cluster_id, number)
    segment.slot_count = slot_count
    if identity is None:
        # A file that was just created has no head at all; any other damage is visible.
        segment.head_damaged = any(head)
    else:
        if identity.version > VERSION:
            raise unknown_version(info.file, identity.version, VERSION)
        if identity.cluster_id != cluster_id:
            raise foreign_cluster(info.file, identity.cluster_id, cluster_id)
        segment.slot_count = identity.slot_count
    segment.opening = decode_opening(sectors[OPENING_SECTOR], segment.seed)
    segment.seal = decode_seal(sectors[SEAL_SECTOR], segment.seed)
    marks = [decode_mark(sectors[sector], segment.seed) for sector in MARK_SECTORS]
    segment.marks = [mark for mark in marks if mark is not None]
    read_back = {
        OPENING_SECTOR: segment.opening,
        SEAL_SECTOR: segment.seal,
        **dict(zip(MARK_SECTORS, marks, strict=True)),
    }
    if any(found is None and sectors[sector] != BLANK for sector, found in read_back.items()):
        segment.head_damaged = True
    return segment

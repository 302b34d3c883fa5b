"""Replaces a whole store: by a snapshot from another broker, or by an empty one.

While the old store is in use, the new files are collected beside it under temporary names (`Arrivals`). When all are
there they are synced and read back, and only then is the intention noted in the hard state. The next opening of the
store, when nothing else writes to it, does the rest (`finish_replacement`): it deletes the old files and renames the
new ones. A crash at any moment leaves the old store or the new one.

A store that is set aside keeps its files under other names, for a person; the remaining store is empty, and records
that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from pandomq.hard_state import HardState
from pandomq.journal.effects import (
    Create,
    Delete,
    Effect,
    FileName,
    Lane,
    Rename,
    SyncDirectory,
    SyncFile,
    Ticket,
    Write,
)
from pandomq.journal.events import Emptied, Event, Installed, InstallFailed, PartTaken
from pandomq.journal.hard_state import StateStore, StoreState
from pandomq.journal.limits import ARRIVING_SYNC_BYTES, SECTOR_BYTES, JournalSettings
from pandomq.journal.names import (
    STATE,
    arriving,
    arriving_name,
    is_kept,
    outlived,
    page_file,
    retained_file,
    segment_number,
    snapshot_file,
)
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.paging.page_file import PagePlace, encode_head, is_whole
from pandomq.journal.segments.layout import Identity
from pandomq.journal.segments.reclaimer import Reclaimer
from pandomq.journal.segments.segment import SegmentList
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.body_scan import BodyScan
from pandomq.journal.snapshots.recipe import Bodies, KnownBody, read_recipe
from pandomq.journal.snapshots.snapshot import BadSnapshot, check, read_head
from pandomq.journal.snapshots.snapshot_sender import KIND_PAGE, KIND_SNAPSHOT, PART, RECIPES
from pandomq.journal.space import is_full
from pandomq.journal.state_file import read_state, write_state
from pandomq.journal.work import DiskFailed, Task, Work, list_files, perform, read

SNAPSHOT: Final = snapshot_file(0)
"""Its entry is known when the snapshot is complete."""


class Arrivals:
    """One snapshot that is being received."""

    __slots__ = (
        "_body_scan",
        "_catalogue",
        "_emit",
        "_failure",
        "_identity",
        "_outbox",
        "_reclaimer",
        "_settings",
        "_sizes",
        "_states",
        "_task",
        "_todo",
        "_unsynced_bytes",
        "bodies",
    )

    def __init__(
        self,
        settings: JournalSettings,
        identity: Identity,
        outbox: DiskRequests,
        states: StateStore,
        catalogue: SegmentList,
        reclaimer: Reclaimer,
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._outbox = outbox
        self._states = states
        self._catalogue = catalogue
        self._reclaimer = reclaimer
        self._emit = emit
        self.bodies: Bodies | None = None
        """Set by the owner, if some of the arriving bodies may be in this store already."""
        self._body_scan: BodyScan | None = None
        self._sizes: dict[FileName, int] = {}
        """Sizes of the files that have been begun, by their final names."""
        self._unsynced_bytes = 0
        """Bytes written since one of them was last synced."""
        self._failure = ""
        self._todo: deque[Work[None]] = deque()
        self._task: Task[None] | None = None

    def take(self, number: int, part: bytes) -> Ticket:
        """Takes parts in order; number 0 begins anew. `PartTaken` asks for the next one."""
        ticket = self._outbox.next_ticket()
        self._do(self._take(ticket, number, part))
        return ticket

    def install(self, index: int, term: int) -> Ticket:
        """All parts were taken. Results in `Installed`, after which this journal must not be used any more, or in
        `InstallFailed`."""
        ticket = self._outbox.next_ticket()
        self._do(self._install(ticket, index, term))
        return ticket

    def set_aside(self, number: int, begins_with: bytes) -> None:
        """Sets the store aside. The empty store keeps epoch, term and vote, and begins with this membership. After
        `Emptied` the journal must not be used any more."""
        state = msgspec.structs.replace(self._states.state, aside=number, begins_with=begins_with)
        self._states.save(state, lambda: self._emit(Emptied()))

    def _do(self, work: Work[None]) -> None:
        self._todo.append(work)
        if self._task is None or self._task.over:
            self._task = Task(self._outbox, Lane.BULK, self._all(), lambda _: None).start()

    def _all(self) -> Work[None]:
        while self._todo:
            yield from self._todo.popleft()

    # Parts.

    def _take(self, ticket: Ticket, number: int, part: bytes) -> Work[None]:
        if not number:
            self._failure = ""
            yield from self._drop()
        lacks = False
        try:
            whole = yield from self._whole(part)
            lacks = whole is None
            if whole is not None:
                yield from self._write(whole)
        except DiskFailed as failure:
            if not is_full(failure):
                raise
            self._failure = "the disk is full"
            yield from self._drop()
        self._emit(PartTaken(ticket, lacks))

    def _whole(self, part: bytes) -> Work[bytes | None]:
        """The part as it is at the sender; None if this store lacks some bodies that a recipe names."""
        kind = RECIPES.get(part[0]) if part else None
        if self._failure or kind is None or self.bodies is None:
            return part
        if self._body_scan is None:
            self._body_scan = BodyScan(self._settings, self._identity.cluster_id, self.bodies)
            yield from self._body_scan.make(self._catalogue, max(self._reclaimer.snapshots, default=0))
        _, number, offset = PART.unpack_from(part)
        try:
            steps = list(read_recipe(part[PART.size :]))
        except ValueError as error:
            self._failure = f"a recipe is unusable: {error}"
            return part
        found = yield from self._body_scan.find([step for step in steps if isinstance(step, KnownBody)])
        if found is None:
            return None
        bodies = iter(found)
        data = b"".join(next(bodies) if isinstance(step, KnownBody) else step for step in steps)
        return PART.pack(kind, number, offset) + data

    def _write(self, part: bytes) -> Work[None]:
        if self._failure:
            return
        if len(part) < PART.size:
            self._failure = "a part is too short"
            return
        kind, number, offset = PART.unpack_from(part)
        if kind not in (KIND_SNAPSHOT, KIND_PAGE):
            self._failure = f"a part has the unknown kind {kind}"
            return
        file = SNAPSHOT if kind == KIND_SNAPSHOT else page_file(number)
        data = part[PART.size :]
        if file not in self._sizes:
            yield from perform(Create(arriving(file)))
            self._sizes[file] = 0
            if kind == KIND_PAGE:
                yield from perform(Write(arriving(file), 0, (encode_head(self._identity, number),)))
        yield from perform(Write(arriving(file), offset, (data,)))
        self._sizes[file] = max(self._sizes[file], offset + len(data))
        self._unsynced_bytes += len(data)
        if self._unsynced_bytes >= ARRIVING_SYNC_BYTES:
            # One sync of everything at the end would block the log's syncs for as long as it takes.
            self._unsynced_bytes = 0
            yield from perform(SyncFile(arriving(file)))

    def _drop(self) -> Work[None]:
        files, self._sizes = self._sizes, {}
        yield from perform(*(Delete(arriving(file)) for file in files))

    # The whole.

    def _install(self, ticket: Ticket, index: int, term: int) -> Work[None]:
        if not self._failure:
            yield from perform(*(SyncFile(arriving(file)) for file in self._sizes), SyncDirectory())
            try:
                yield from self._check(index, term)
            except BadSnapshot as bad:
                self._failure = f"it is damaged at offset {bad.offset}: {bad.text}"
        if self._failure:
            yield from self._drop()
            self._emit(InstallFailed(ticket, self._failure))
            return
        state = msgspec.structs.replace(self._states.state, replaced_by=index)
        self._states.save(state, lambda: self._emit(Installed(ticket)))

    def _check(self, index: int, term: int) -> Work[None]:
        """Raises BadSnapshot."""
        file, cluster_id = arriving(SNAPSHOT), self._identity.cluster_id
        window = ReadWindow(file, self._sizes.get(SNAPSHOT, 0), self._settings.bulk_chunk_bytes)
        head = yield from read_head(file, window, cluster_id)
        if (head.last_index, head.term) != (index, term):
            raise BadSnapshot(0, f"it is a snapshot of entry {head.last_index}, term {head.term}")
        foundation = yield from check(window, cluster_id, head)
        for place in foundation.places:
            yield from self._check_page(place)

    def _check_page(self, place: PagePlace) -> Work[None]:
        file = page_file(place.number)
        if self._sizes.get(file, SECTOR_BYTES) < place.end:
            raise BadSnapshot(0, f"it refers to a page at {place.offset} of {file} that was not received")
        if not is_whole(place, (yield from read(arriving(file), place.offset, place.length))):
            raise BadSnapshot(0, f"the page at {place.offset} of {file} is damaged")


def finish_replacement(*, retain: bool = False) -> Work[None]:
    """Before a store is opened: carries out what was noted. A crash may interrupt it; the next opening begins again.
    With `retain`, the segments of the old store are put aside for an audit."""
    found = yield from list_files()
    noted = yield from read_state(found)
    if noted is not None:
        # Writes of a killed process may be in the system's memory only. Before the broker acts on them, or sends them
        # to others, they must be synced, or a later power failure could bring back something older.
        yield from perform(SyncFile(STATE), SyncDirectory())
    if noted is None or not (noted[1].replaced_by or noted[1].aside):
        return
    counter, state = noted
    files = [info.file for info in found]
    if state.aside:
        renames = [Rename(file, outlived(file, state.aside)) for file in files if is_kept(file)]
        yield from perform(*renames, SyncDirectory())
        hard = msgspec.structs.replace(state.hard, membership=state.begins_with) if state.begins_with else HardState()
        emptied = StoreState(
            state.cluster_id,
            state.node_name,
            hard,
            emptied=True,
            store_id=state.store_id,
            founding=state.founding,
            clock_ahead_ms=state.clock_ahead_ms,
        )
        yield from write_state(emptied, counter + 1)
        return
    if not state.cleared:
        old = [_put_away(file, retain=retain) for file in files if is_kept(file)]
        yield from perform(*old, SyncDirectory())
        state = msgspec.structs.replace(state, cleared=True, segment_newest=0, cut_from=0)
        counter += 1
        yield from write_state(state, counter)
    names = {file: arriving_name(file) for file in files}
    snapshot = snapshot_file(state.replaced_by)
    renames = [Rename(file, snapshot if name == SNAPSHOT else name) for file, name in names.items() if name is not None]
    yield from perform(*renames, SyncDirectory())
    yield from write_state(msgspec.structs.replace(state, replaced_by=0, cleared=False), counter + 1)


def _put_away(file: FileName, *, retain: bool) -> Effect:
    number = segment_number(file)
    return Rename(file, retained_file(number)) if retain and number is not None else Delete(file)

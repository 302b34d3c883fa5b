"""Bugs of the log on disk: syncs that are skipped or ignored, tails that stay, files that are deleted too early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from zlib import crc32

from pandomq.ids import LogIndex
from pandomq.journal.effects import Completion, Effect, Lane, MeasureSpace, SyncDirectory, SyncFile
from pandomq.journal.journal import Journal
from pandomq.journal.outbox import DiskRequests, Done, Failed
from pandomq.journal.paging.page_file import StoredPage
from pandomq.journal.paging.pages import Pages
from pandomq.journal.recovery import recovery
from pandomq.journal.segments import scan
from pandomq.journal.snapshots.snapshot_writer import SnapshotWriter
from pandomq.journal.work import Work
from tests.sim.planted.planted_bug import Patch, PlantedBug


def _leave_out(unwanted: Callable[[Effect], bool]) -> Callable[[Patch], None]:
    """Does not request some kinds of effects; the journal assumes that they were carried out."""

    def plant(patch: Patch) -> None:
        put = DiskRequests.put

        def faulty(
            outbox: DiskRequests, lane: Lane, effect: Effect, done: Done | None = None, failed: Failed | None = None
        ) -> None:
            put(outbox, lane, MeasureSpace() if unwanted(effect) else effect, done, failed)

        patch.set(DiskRequests, "put", faulty)

    return plant


def _is_sync(start: str) -> Callable[[Effect], bool]:
    return lambda effect: isinstance(effect, SyncFile) and effect.file.startswith(start)


def _ignore_failed_syncs(patch: Patch) -> None:
    completed = Journal.completed

    def deaf(journal: Journal, completion: Completion) -> None:
        waiting = journal._outbox._waiting.get(completion.ticket)
        if waiting is not None and isinstance(waiting.effect, SyncFile):
            completion = completion._replace(error=None)
        completed(journal, completion)

    patch.set(Journal, "completed", deaf)


def _keep_tail(patch: Patch) -> None:
    def nothing(cut: object) -> Work[None]:
        yield (MeasureSpace(),)

    patch.set(recovery, "shorten", nothing)


def _reclaim_early(patch: Patch) -> None:
    begin_snapshot = Journal.begin_snapshot

    def hasty(journal: Journal, index: LogIndex, pages: Sequence[StoredPage] = ()) -> SnapshotWriter:
        writer = begin_snapshot(journal, index, pages)
        journal._reclaimer.snapshots.insert(0, index)
        journal._reclaimer.snapshots.insert(0, index)
        journal._reclaimer.step()
        return writer

    patch.set(Journal, "begin_snapshot", hasty)


def _keep_unsynced(patch: Patch) -> None:
    def nothing(tail: object, identity: object) -> Work[None]:
        yield (MeasureSpace(),)

    patch.set(recovery, "_mend", nothing)


def _accept_torn(patch: Patch) -> None:
    class Matching(int):
        """A checksum that is equal to every other one."""

        def __eq__(self, other: object) -> bool:
            return True

        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = int.__hash__

    patch.set(scan, "crc32", lambda *data: Matching(crc32(*data)))


def _hold_no_pages(patch: Patch) -> None:
    hold = Pages.hold

    def careless(pages: Pages, index: int, referred: Sequence[StoredPage]) -> None:
        hold(pages, index, referred)
        pages._holds[index] = frozenset()

    patch.set(Pages, "hold", careless)


PLANTED_BUGS: Final = (
    PlantedBug(
        "log-not-synced", "The broker writes log segments and never syncs them.", _leave_out(_is_sync("segment"))
    ),
    PlantedBug(
        "snapshot-not-synced", "A snapshot gets its final name before it is on the disk.", _leave_out(_is_sync("snap"))
    ),
    PlantedBug(
        "pages-not-synced", "A snapshot refers to pages that a power loss may remove.", _leave_out(_is_sync("pages"))
    ),
    PlantedBug("pages-not-held", "The journal deletes page files to which a snapshot refers.", _hold_no_pages),
    PlantedBug(
        "state-not-synced", "The broker writes term and vote and never syncs them.", _leave_out(_is_sync("state"))
    ),
    PlantedBug(
        "directory-not-synced",
        "The journal does not sync directories, so names of files may be lost.",
        _leave_out(lambda effect: isinstance(effect, SyncDirectory)),
    ),
    PlantedBug("failed-sync-ignored", "The journal counts a failed sync as done.", _ignore_failed_syncs),
    PlantedBug("tail-not-cut", "Recovery does not cut off the torn end of the log.", _keep_tail),
    PlantedBug(
        "torn-tail-accepted", "Recovery accepts entries of which only parts were written.", _accept_torn, 3, True
    ),
    PlantedBug(
        "kept-not-synced", "Recovery trusts entries that are only in the operating system's memory.", _keep_unsynced
    ),
    PlantedBug(
        "reclaimed-early",
        "The journal deletes segments before the snapshot that replaces them is complete.",
        _reclaim_early,
    ),
)

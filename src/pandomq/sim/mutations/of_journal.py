"""Bugs of the log on disk: syncs that are skipped or not heeded, tails that stay, files that go too early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from zlib import crc32

from pandomq.ids import LogIndex
from pandomq.journal import recovery, scan
from pandomq.journal.effects import Completion, Effect, Lane, MeasureSpace, SyncDirectory, SyncFile
from pandomq.journal.journal import Journal
from pandomq.journal.outbox import Done, Failed, Outbox
from pandomq.journal.page_file import StoredPage
from pandomq.journal.pages import Pages
from pandomq.journal.snapshot_writer import SnapshotWriter
from pandomq.journal.work import Work
from pandomq.sim.mutations.mutation import Mutation, Patch


def _leave_out(unwanted: Callable[[Effect], bool]) -> Callable[[Patch], None]:
    """Effects of some kind are not asked for; the journal believes that they were carried out."""

    def plant(patch: Patch) -> None:
        put = Outbox.put

        def faulty(
            outbox: Outbox, lane: Lane, effect: Effect, done: Done | None = None, failed: Failed | None = None
        ) -> None:
            put(outbox, lane, MeasureSpace() if unwanted(effect) else effect, done, failed)

        patch.set(Outbox, "put", faulty)

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
        """A checksum that every other is equal to."""

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


MUTATIONS: Final = (
    Mutation("log-not-synced", "segments are written, never synced", _leave_out(_is_sync("segment"))),
    Mutation("snapshot-not-synced", "a snapshot gets its name before it is on the disk", _leave_out(_is_sync("snap"))),
    Mutation("pages-not-synced", "a snapshot refers to pages that may be lost", _leave_out(_is_sync("pages"))),
    Mutation("pages-not-held", "page files go though a snapshot refers to them", _hold_no_pages),
    Mutation("state-not-synced", "term and vote are written, never synced", _leave_out(_is_sync("state"))),
    Mutation(
        "directory-not-synced",
        "names of files may be lost",
        _leave_out(lambda effect: isinstance(effect, SyncDirectory)),
    ),
    Mutation("failed-sync-ignored", "a sync that failed counts as done", _ignore_failed_syncs),
    Mutation("tail-not-cut", "recovery leaves the torn end of the log where it is", _keep_tail),
    Mutation("torn-tail-accepted", "recovery takes entries of which only parts were written", _accept_torn, 3, True),
    Mutation("kept-not-synced", "recovery trusts entries that only the system's memory has", _keep_unsynced),
    Mutation("reclaimed-early", "segments go before the snapshot that replaces them is whole", _reclaim_early),
)

"""The properties are worth something: they notice when the journal leaves out what makes it safe."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from pandomq.journal.effects import Delete, Effect, Lane, MeasureSpace, Resize, SyncDirectory, SyncFile, Write
from pandomq.journal.outbox import DiskRequests, Done, Failed
from pandomq.journal.paging.page_file import StoredPage
from pandomq.journal.paging.pages import Pages
from pandomq.journal.recovery import recovery
from pandomq.journal.segments.layout import SLOT_BYTES, TABLE_OFFSET, body_offset
from pandomq.journal.work import Work
from tests.unit.journal.operations import program, run
from tests.unit.journal.store import SMALL, Store

PROGRAMS_MAX = 80


def found_by(seeds: int = PROGRAMS_MAX) -> int | None:
    """The first program that notices."""
    for seed in range(seeds):
        random = Random(seed)
        try:
            run(Store(seed, early=bool(seed % 2)), program(random, 80))
        except (AssertionError, ValueError, LookupError):
            return seed
    return None


def leave_out(monkeypatch: pytest.MonkeyPatch, unwanted: Callable[[Effect], bool]) -> None:
    put = DiskRequests.put

    def faulty(
        outbox: DiskRequests, lane: Lane, effect: Effect, done: Done | None = None, failed: Failed | None = None
    ) -> None:
        put(outbox, lane, MeasureSpace() if unwanted(effect) else effect, done, failed)

    monkeypatch.setattr(DiskRequests, "put", faulty)


def test_without_a_bug_they_find_none() -> None:
    assert found_by(20) is None


def test_a_sync_that_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(monkeypatch, lambda effect: isinstance(effect, SyncFile) and effect.file.startswith("segment"))
    assert found_by() is not None


def test_a_table_that_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    table = range(TABLE_OFFSET, body_offset(SMALL.slot_count), SLOT_BYTES)
    leave_out(monkeypatch, lambda effect: isinstance(effect, Write) and effect.offset in table)
    assert found_by() is not None


def test_a_tail_that_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(cut: object) -> Work[None]:
        yield (MeasureSpace(),)

    monkeypatch.setattr(recovery, "shorten", nothing)
    assert found_by() is not None


def test_a_cut_that_is_not_noted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(monkeypatch, lambda effect: isinstance(effect, Write) and effect.file == "state" and effect.offset == 0)
    assert found_by() is not None


def test_a_directory_that_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(monkeypatch, lambda effect: isinstance(effect, SyncDirectory))
    assert found_by() is not None


def test_pages_that_are_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(monkeypatch, lambda effect: isinstance(effect, SyncFile) and effect.file.startswith("pages"))
    assert found_by() is not None


def test_page_files_that_go_while_a_snapshot_refers_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Pages.hold

    def careless(pages: Pages, index: int, referred: list[StoredPage]) -> None:
        hold(pages, index, referred)
        pages._holds[index] = frozenset(list(pages._holds[index])[1:])

    monkeypatch.setattr(Pages, "hold", careless)
    assert found_by() is not None


def test_pages_that_are_not_written_because_they_came_back(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Pages.hold

    def hasty(pages: Pages, index: int, referred: list[StoredPage]) -> None:
        hold(pages, index, referred)
        for page in referred:
            page.held = False

    monkeypatch.setattr(Pages, "hold", hasty)
    assert found_by() is not None


def test_files_that_are_not_resized(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(monkeypatch, lambda effect: isinstance(effect, Resize))
    assert found_by() is not None


def test_files_that_are_never_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(monkeypatch, lambda effect: isinstance(effect, Delete) and effect.file.startswith("segment"))
    assert found_by() is not None

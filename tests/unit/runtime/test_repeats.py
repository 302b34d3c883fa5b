"""A storm of events is a handful of lines, and none of them is forgotten."""

from __future__ import annotations

import io
import logging
import re

import pytest

from pandomq.runtime.repeats import KINDS_MAX, LINES_OF_A_KIND_MAX, Repeats


class Diary:
    """A handler with the filter, and what it wrote."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.filter = Repeats(self.handler)
        self.handler.addFilter(self.filter)

    def note(self, text: str, *names: object, at_s: float, exception: bool = False) -> None:
        info = (ValueError, ValueError("why"), None) if exception else None
        record = logging.LogRecord("pandomq", logging.WARNING, "", 0, text, names, info)
        record.created = at_s
        self.handler.handle(record)

    @property
    def lines(self) -> list[str]:
        return self._stream.getvalue().splitlines()


@pytest.fixture
def diary() -> Diary:
    return Diary()


def test_rare_lines_are_written_unchanged(diary: Diary) -> None:
    for number in range(5 * LINES_OF_A_KIND_MAX):
        diary.note("%s came", number, at_s=number / LINES_OF_A_KIND_MAX * 1.1)
    assert diary.lines == [f"{number} came" for number in range(5 * LINES_OF_A_KIND_MAX)]


def test_many_lines_of_a_kind_are_summed_up_once_a_second(diary: Diary) -> None:
    for number in range(10_000):
        diary.note("%s came", number, at_s=10 + number / 5_000)
    diary.filter.sum_up(20.0)
    assert len(diary.lines) == 2 * (LINES_OF_A_KIND_MAX + 1)
    told = [re.match(r"and (\d+) more within a second, the last one: (\d+) came", line) for line in diary.lines]
    assert sum(1 if found is None else int(found[1]) for found in told) == 10_000
    assert [int(found[2]) for found in told if found is not None] == [4_999, 9_999]
    diary.filter.sum_up(20.0)
    assert len(diary.lines) == 2 * (LINES_OF_A_KIND_MAX + 1)


def test_lines_of_different_kinds_are_counted_separately(diary: Diary) -> None:
    for number in range(LINES_OF_A_KIND_MAX):
        diary.note("%s came", number, at_s=10.0)
        diary.note("%s went", number, at_s=10.0)
    assert len(diary.lines) == 2 * LINES_OF_A_KIND_MAX


def test_a_bug_is_always_written(diary: Diary) -> None:
    for _ in range(3 * LINES_OF_A_KIND_MAX):
        diary.note("oh", at_s=10.0, exception=True)
    assert diary.lines.count("oh") == 3 * LINES_OF_A_KIND_MAX


def test_lines_that_are_all_different_take_no_memory(diary: Diary) -> None:
    for number in range(3 * KINDS_MAX):
        diary.note(f"line {number}", at_s=10.0)
    assert len(diary.lines) == 3 * KINDS_MAX
    assert len(diary.filter._kinds) <= KINDS_MAX

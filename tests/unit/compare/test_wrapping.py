"""Paragraphs of written pages are wrapped; everything else stays as it is."""

from __future__ import annotations

from tools.compare.wrapping import COLUMNS, wrapped

SENTENCE = "A sentence of several words that is repeated until the line is long. "
UNTOUCHED = f"# {SENTENCE * 3}\n\n| {SENTENCE * 3} |\n| --- |\n\n```\n{SENTENCE * 3}\n\n{SENTENCE}\n```\n"


def test_paragraphs_are_wrapped() -> None:
    page = f"{UNTOUCHED}\n{(SENTENCE * 4).strip()}\nEnd.\n"
    lines = wrapped(page).removeprefix(f"{UNTOUCHED}\n").splitlines()
    assert max(map(len, lines)) <= COLUMNS and len(lines) > 1
    assert " ".join(lines) == f"{SENTENCE * 4}End."


def test_everything_else_stays() -> None:
    assert wrapped(UNTOUCHED) == UNTOUCHED
    assert wrapped(wrapped(SENTENCE * 4)) == wrapped(SENTENCE * 4)

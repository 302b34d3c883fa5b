"""The browser itself: it works, and an examination finds the errors of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from .chromium import Chromium, Page
from .examination import examine

WHOLE = (
    "<!DOCTYPE html><html><head><meta charset='utf-8'/><meta name='viewport' content='width=device-width'/>"
    "<title>x</title>%s</head><body>%s</body></html>"
)
STYLE = "<style>@media (prefers-color-scheme: dark) { body { background: #000; color: #fff; } }</style>"


def test_the_browser_is_chromium(browser: Chromium) -> None:
    assert "Chrom" in browser.version


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("<script>nothing.at.all()</script>", "exception"),
        ("<script>console.error('no')</script>", "error"),
        ("<img src='http://192.0.2.1/picture.png'/>", "the console|it asked for"),
        ("<p style='width: 3000px'>wide</p>", "wider than the screen"),
        ("<p style='color: #777; background: #888'>pale</p>", "hard to read"),
        ("<div class='plot'><svg width='0' height='0'></svg></div>", "svg"),
        ("<div class='plot'><svg width='100%' height='90'><text x='-50'>left out</text></svg></div>", "left out"),
    ],
)
def test_defects_of_a_page_are_found(page: Page, tmp_path: Path, body: str, complaint: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(WHOLE % (STYLE, body))
    with pytest.raises(AssertionError, match=complaint):
        examine(page, path, tmp_path)


def test_a_page_that_is_always_light_is_seen(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(WHOLE % ("<style>body { background: #fff; color: #000; }</style>", "<p>white</p>"))
    with pytest.raises(AssertionError, match="in the dark"):
        examine(page, path, tmp_path)

"""The requirements of all our pages, on every screen: a page is whole, drawn, readable, and loads no other resource."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .chromium import Page

WIDE, PHONE = 1280, 390
CONTRAST_MIN = 4.5
"""The minimum for text in WCAG 2 (1.4.3)."""

_LOOK = Path(__file__).with_suffix(".js").read_text()


def examine(page: Page, path: Path, pictures: Path) -> list[dict[str, Any]]:
    """Opens the page wide and narrow, light and dark, and takes a picture of each. Returns the findings of each."""
    found = []
    for width in (WIDE, PHONE):
        for dark in (False, True):
            page.look_like(width, dark=dark)
            page.open(path)
            looked = page.evaluate(f"({_LOOK})({CONTRAST_MIN})")
            page.screenshot(pictures / f"{path.stem}-{width}-{'dark' if dark else 'light'}.png")
            _check(looked, width)
            assert page.complaints == [], f"the console has {page.complaints}"
            assert page.requests == [path.resolve().as_uri()], f"it asked for {page.requests}"
            found.append(looked)
    assert found[0]["ground"] != found[1]["ground"], "it looks the same in the dark"
    return found


def _check(looked: dict[str, Any], width: int) -> None:
    assert looked["inner"] == width, f"the screen is {looked['inner']} wide"
    assert looked["whole"] <= width, "the page is wider than the screen"
    assert looked["pale"] == [], f"texts that are hard to read: {looked['pale']}"
    for drawing in looked["drawings"]:
        assert drawing["width"] > width / 2 * 0.8 and drawing["height"] > 30, drawing
    for part in looked["drawn"]:
        assert part["width"] > 0, part
    for part in looked["inside"]:
        assert part["width"] > 0 and part["left"] >= 0 and part["right"] <= width, part

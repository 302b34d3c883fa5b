"""One Chromium for all tests of pages. `make setup` installs it as root; a test without it fails with this reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .chromium import Chromium, Page, chromium, find_browser

HERE = Path(__file__).parent
TEST_TIMEOUT_S = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = find_browser()
    if program is None:
        message = "there is no Chromium: `make setup` installs it as root"
        if os.geteuid() == 0:
            pytest.fail(message)
        pytest.skip(message)
    with chromium(program, tmp_path_factory.mktemp("chromium") / "profile") as browser:
        yield browser


@pytest.fixture
def page(browser: Chromium) -> Page:
    return browser.new_page()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The directory of screenshots; PANDOMQ_PICTURES sets it."""
    chosen = os.environ.get("PANDOMQ_PICTURES")
    directory = Path(chosen) if chosen else tmp_path / "pictures"
    directory.mkdir(parents=True, exist_ok=True)
    return directory

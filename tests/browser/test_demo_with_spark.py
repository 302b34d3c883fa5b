"""The whole demo as `make demo` runs it, only shorter: jobs on Spark, their parts of its report, and no remaining
process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.integration.waiting import wait_until

from .chromium import Page
from .examination import examine

pytestmark = [
    pytest.mark.slow,
    # On an idle machine with two cores it takes two minutes; this one may be busy.
    pytest.mark.timeout(900),
]

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 800
JOBS = ("archive", "rollup", "audit")


def start(directory: Path, *options: str) -> subprocess.Popen[str]:
    temporary = directory / "temporary"
    temporary.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "tools.demo", "--report", str(directory / "demo.html"), *options],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.proves("S4", "S5", "S6", "S7")
def test_the_jobs_find_everything_in_order(page: Page, tmp_path: Path, pictures: Path) -> None:
    with start(tmp_path, "--seconds", "15", "--rate", "300") as demo:
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 0, output
    assert "The message accounting balances." in output
    for job in JOBS:
        assert f"the {job} is complete" in output
    assert list((tmp_path / "temporary").iterdir()) == []
    for looked in examine(page, tmp_path / "demo.html", pictures):
        assert len(looked["drawings"]) > 5
        assert {"the cluster", "message accounting", *JOBS} <= set(looked["parts"])


def test_an_interrupted_demo_ends_its_jobs_as_well(tmp_path: Path) -> None:
    with start(tmp_path, "--seconds", "600", "--rate", "50") as demo:
        family = with_java(demo)
        demo.send_signal(signal.SIGINT)
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 130, output
    wait_until(lambda: not any(process.is_running() for process in family), "the end of all that was started")
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []


def with_java(demo: subprocess.Popen[str]) -> list[psutil.Process]:
    """Returns all processes that it has started, once Spark is among them."""
    family: list[psutil.Process] = []

    def there() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            family[:] = psutil.Process(demo.pid).children(recursive=True)
            return any(process.name() == "java" for process in family)
        return False

    wait_until(there, "Spark's Java", TIMEOUT_S)
    return family

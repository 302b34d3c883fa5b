"""`make test` runs targets side by side; none of their failures and none of their output is lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.side_by_side import run

PYTHON = (sys.executable, "-c")
WAIT = "import pathlib, time\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.01)\n"


def test_all_run_at_the_same_time(tmp_path: Path) -> None:
    one, other = f"{tmp_path}/one", f"{tmp_path}/other"
    first = f"open({one!r}, 'w')\n{WAIT.format(other)}"
    second = f"open({other!r}, 'w')\n{WAIT.format(one)}"
    assert run([first, second], PYTHON) == 0


def test_the_output_of_the_first_is_live_and_that_of_others_is_whole(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["print('first')", "print('second'); print('third')"], PYTHON) == 0
    printed = capfd.readouterr().out
    assert "first\n" in printed
    assert "\nsecond\nthird\nprint('second'); print('third') succeeded after" in printed


@pytest.mark.parametrize("failing", [0, 1])
def test_one_failure_is_a_failure_and_stops_no_other(failing: int, tmp_path: Path) -> None:
    trace = f"{tmp_path}/trace"
    targets = [f"import time; time.sleep(0.3); open({trace!r}, 'w')", "raise SystemExit(3)"]
    assert run(targets[::-1] if failing == 0 else targets, PYTHON) == 1
    assert Path(trace).exists()

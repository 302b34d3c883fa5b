"""`make demo` has to work without a terminal, and to detect errors: it is the first command that new users run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .waiting import wait_until

pytestmark = [
    pytest.mark.only_ours("the demo starts brokers of its own"),
    # Brokers and their clients start on a machine that may be busy with other tests.
    pytest.mark.timeout(150),
]

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120
START_TIMEOUT_S = 60
REPORT = "report.html"
CLIENTS = 8
"""A publisher and a consumer for each primary, a process of subscribers, and a reader of the stream."""


def start(*options: str, directory: Path) -> subprocess.Popen[str]:
    """Starts the demo without Spark, with its temporary files where the test can inspect them, and its report beside
    them."""
    temporary = directory / "temporary"
    temporary.mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "tools.demo", "--without-spark", "--report", str(directory / REPORT), *options],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_root_is_killed_and_the_account_balances_and_everything_is_cleaned_up(tmp_path: Path) -> None:
    with start("--seconds", "6", "--rate", "300", directory=tmp_path) as demo:
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 0, output
    for words in (
        "a secondary",
        "kill -9",
        "is the root, term",
        "is started again",
        "all four are in sync",
        "The message accounting balances.",
    ):
        assert words in output
    heard = re.search(r"received by subscribers, once each +([\d,]+)", output)
    assert heard is not None and int(heard[1].replace(",", "")) > 0
    assert list((tmp_path / "temporary").iterdir()) == []
    report = (tmp_path / REPORT).read_text()
    assert "is elected root" in report and "The accounting balances" in report


@pytest.mark.parametrize("end", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_demo_ends_the_processes_that_it_started(tmp_path: Path, end: signal.Signals) -> None:
    with start("--seconds", "600", "--rate", "100", directory=tmp_path) as demo:
        started = family_at_work(demo.pid)
        demo.send_signal(end)
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 130, output
    wait_until(lambda: not any(process.is_running() for process in started), "the end of all that was started")
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_broker_that_dies_by_itself_is_a_failure(tmp_path: Path) -> None:
    with start("--seconds", "600", "--rate", "100", directory=tmp_path) as demo:
        started = family_at_work(demo.pid)
        next(process for process in started if is_broker(process)).kill()
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 2, output
    assert "exited unexpectedly" in output


@pytest.mark.slow
def test_a_subscriber_that_receives_nothing_is_in_the_accounting(tmp_path: Path) -> None:
    with start("--seconds", "3", "--rate", "100", "--deaf", directory=tmp_path) as demo:
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 1, output
    unheard = re.search(r"not received, although the subscriber's broker lived +([\d,]+)", output)
    assert unheard is not None and int(unheard[1].replace(",", "")) > 0
    assert "THE MESSAGE ACCOUNTING DOES NOT BALANCE." in output
    assert "The accounting does not balance" in (tmp_path / REPORT).read_text()


def is_broker(process: psutil.Process) -> bool:
    return "start" in process.cmdline()


def family_at_work(pid: int) -> list[psutil.Process]:
    """The demo's children, once the three brokers are there and their clients have connected."""
    demo = psutil.Process(pid)

    def children() -> list[psutil.Process]:
        return [child for child in demo.children(recursive=True) if "resource_tracker" not in " ".join(child.cmdline())]

    wait_until(lambda: len(children()) >= 3 + CLIENTS, "three brokers and their clients", START_TIMEOUT_S)
    clients = [child for child in children() if not is_broker(child)]
    wait_until(lambda: all(client.net_connections() for client in clients), "the clients' connections", START_TIMEOUT_S)
    return children()

"""`make demo` is the first thing a person runs: it has to work without a terminal, and to notice what is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tools.demo import Account, Counters
from tools.demo_clients import Progress, Published, Seen

from .waiting import wait_until

pytestmark = pytest.mark.only_ours("the demo starts a broker of its own")

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 50


def start(*options: str, directory: Path) -> subprocess.Popen[str]:
    """The demo, with its temporary files where the test can look at them."""
    return subprocess.Popen(
        [sys.executable, "tools/demo.py", *options],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_account_balances_and_everything_is_cleaned_up(tmp_path: Path) -> None:
    with start("--seconds", "2", "--rate", "1000", directory=tmp_path) as demo:
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 0, output
    assert "The account balances." in output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_ends_what_it_started(tmp_path: Path, end: signal.Signals) -> None:
    with start("--seconds", "40", "--rate", "1000", directory=tmp_path) as demo:
        started = family_at_work(demo.pid)
        demo.send_signal(end)
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 130, output
    wait_until(lambda: not any(process.is_running() for process in started), "the end of all that was started")
    assert list(tmp_path.iterdir()) == []


def test_a_dead_broker_is_a_failure(tmp_path: Path) -> None:
    with start("--seconds", "40", "--rate", "1000", directory=tmp_path) as demo:
        started = family_at_work(demo.pid)
        [broker] = [process for process in started if "pandomq.cli.main" in process.cmdline()]
        broker.kill()
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 2, output
    assert "The demo failed" in output


def family_at_work(pid: int) -> list[psutil.Process]:
    """The demo's children, once the broker is there and all four clients have connected."""
    demo = psutil.Process(pid)

    def children() -> list[psutil.Process]:
        return [child for child in demo.children(recursive=True) if "resource_tracker" not in " ".join(child.cmdline())]

    wait_until(lambda: len(children()) >= 5, "the broker and four clients")
    clients = [child for child in children() if "pandomq.cli.main" not in child.cmdline()]
    wait_until(lambda: all(client.net_connections() for client in clients), "the clients' connections")
    return children()


@pytest.mark.parametrize(
    ("confirmed", "acked", "seen", "balances"),
    [
        (3, 3, [b"\x01\x01\x01"], True),
        (3, 3, [b"\x01\x00\x01\x00", b"\x00\x01"], True),
        (2, 3, [b"\x01\x01\x01"], False),
        (3, 2, [b"\x01\x01\x01"], False),
        (3, 3, [b"\x01\x00\x01"], False),
        (3, 3, [b"\x01\x01\x01", b"\x00\x00\x01"], False),
    ],
)
def test_the_account_tells_lost_and_doubled(confirmed: int, acked: int, seen: list[bytes], balances: bool) -> None:
    counters = Counters()
    counters.add(Progress(acked=acked))
    account = Account(counters, {0: Published(0, 3, confirmed)}, [Seen({0: times}) for times in seen])
    assert account.balances() is balances

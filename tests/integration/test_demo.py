"""`make demo` is the first thing a person runs: it has to work without a terminal, and to notice what is wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tools.demo_account import Account, Counters
from tools.demo_clients import Heard, Progress, Published, Seen

from .waiting import wait_until

pytestmark = [
    pytest.mark.only_ours("the demo starts brokers of its own"),
    # Brokers and their clients start on a machine that may be busy with other tests.
    pytest.mark.timeout(150),
]

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120
START_TIMEOUT_S = 60
CLIENTS = 7
"""A publisher and a consumer for each primary, and a process of subscribers."""


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
        "The account balances.",
    ):
        assert words in output
    heard = re.search(r"heard by subscribers, once each +([\d,]+)", output)
    assert heard is not None and int(heard[1].replace(",", "")) > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_ends_what_it_started(tmp_path: Path, end: signal.Signals) -> None:
    with start("--seconds", "600", "--rate", "100", directory=tmp_path) as demo:
        started = family_at_work(demo.pid)
        demo.send_signal(end)
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 130, output
    wait_until(lambda: not any(process.is_running() for process in started), "the end of all that was started")
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_dies_by_itself_is_a_failure(tmp_path: Path) -> None:
    with start("--seconds", "600", "--rate", "100", directory=tmp_path) as demo:
        started = family_at_work(demo.pid)
        next(process for process in started if is_broker(process)).kill()
        output, _ = demo.communicate(timeout=TIMEOUT_S)
    assert demo.returncode == 2, output
    assert "ended by itself" in output


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


FIRST, SECOND = (0, 1), (0, 2)


@pytest.mark.parametrize(
    ("unconfirmed", "seen", "lost", "redelivered", "unmarked", "balances"),
    [
        ((), [{FIRST: b"\x01\x01\x01"}], 0, 0, 0, True),
        ((), [{FIRST: b"\x01\x00\x01\x00"}, {FIRST: b"\x00\x01"}], 0, 0, 0, True),
        # The second attempt of a publisher that could not know is no redelivery.
        ((), [{FIRST: b"\x01\x01\x01", SECOND: b"\x00\x01"}], 0, 0, 0, True),
        ((), [{FIRST: b"\x01\x00\x01"}], 1, 0, 0, False),
        ((1,), [{FIRST: b"\x01\x00\x01"}], 0, 0, 0, False),
        # Twice without the mark, to two consumers: somebody was not told.
        ((), [{FIRST: b"\x01\x01\x01"}, {FIRST: b"\x00\x00\x01"}], 0, 1, 1, False),
    ],
)
def test_the_account_tells_lost_and_doubled(
    unconfirmed: tuple[int, ...],
    seen: list[dict[tuple[int, int], bytes]],
    lost: int,
    redelivered: int,
    unmarked: int,
    balances: bool,
) -> None:
    account = Account(published={0: Published(0, 3, unconfirmed, 0)}, seen=[Seen(times, times) for times in seen])
    assert (account.lost, account.redelivered, account.unmarked) == (lost, redelivered, unmarked)
    assert account.balances() is balances


def test_a_marked_redelivery_is_fine() -> None:
    account = Account(published={0: Published(0, 2, (), 0)}, seen=[Seen({FIRST: b"\x02\x01"}, {FIRST: b"\x01\x01"})])
    assert (account.redelivered, account.unmarked) == (1, 0)
    assert account.balances()


@pytest.mark.parametrize(
    ("heard", "doubled", "unheard"),
    [
        (Heard(True, {0: 0}, {FIRST: b"\x01\x00\x00\x01"}), 0, 0),
        # It came later.
        (Heard(True, {0: 3}, {FIRST: b"\x00\x00\x00\x01"}), 0, 0),
        (Heard(True, {0: 0}, {FIRST: b"\x01"}), 0, 1),
        # It came after all was published.
        (Heard(True, {}, {}), 0, 0),
        # Its broker was lost, and with it what was on its way.
        (Heard(False, {0: 0}, {FIRST: b"\x01"}), 0, 0),
        (Heard(False, {0: 0}, {FIRST: b"\x02"}), 1, 0),
        # The publisher could not know, and published it again: that is another copy.
        (Heard(True, {0: 0}, {FIRST: b"\x01\x00\x00\x01", SECOND: b"\x00\x00\x00\x01"}), 0, 0),
    ],
)
def test_subscribers_hear_everything_once(heard: Heard, doubled: int, unheard: int) -> None:
    account = Account(published={0: Published(0, 4, (), 0)}, seen=[Seen({FIRST: bytes([1] * 4)}, {})], heard=[heard])
    assert (account.doubled, account.unheard) == (doubled, unheard)
    assert account.balances() is (doubled == unheard == 0)


def test_the_longest_pause_of_all_publishers_counts() -> None:
    counters = Counters()
    for pause_s in (0.1, 0.4, 0.2):
        counters.add(Progress(pause_s=pause_s))
    assert counters.longest_pause_s == 0.4

"""SIGTERM ends a broker whose steps fail, or whose disk does not answer; a broker that cannot restart its state ends by
itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.http import NO_TLS

from .waiting import wait_until

pytestmark = pytest.mark.only_ours("its code is changed")

STOP_S = 3
SPARE_S = 12.0
"""The time for the end of the interpreter, on a busy machine."""
PRELUDE = """
import sys, time
from pathlib import Path
from pandomq.node.pressure import Pressure
from pandomq.runtime import process
from pandomq.runtime.disk.disk import Disk

broken = Path(sys.argv.pop(1))

class Bug(Exception):
    pass

def sabotage(kind, name, harm):
    work = getattr(kind, name)
    def sabotaged(*given, **named):
        if broken.exists():
            harm()
        return work(*given, **named)
    setattr(kind, name, sabotaged)

def fail():
    raise Bug

sabotage(Pressure, "watch", fail)
"""
NO_NEXT_LIFE = 'sabotage(process.Store, "journal", fail)'
STALLING_AT_THE_END = "Disk.close = lambda disk: time.sleep(3600)"
STALLING_AT_THE_BEGINNING = "Disk.submit = lambda disk, requests: broken.touch()"
STATES = {
    "one life after the other fails": "",
    "the disk of the last life does not close": 'sabotage(Disk, "close", lambda: time.sleep(3600))',
}
START = "from pandomq.cli.main import app; app()"


@contextmanager
def started(directory: Path, sabotage: str, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Yields the process, and the file that begins the sabotage."""
    broken = directory / "broken"
    options = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", str(directory / "data"), *options)
    code = "\n".join((PRELUDE, sabotage, START))
    environment = {**os.environ, "PANDOMQ_LIMITS_STOP_MS_MAX": f"{STOP_S}s"}
    with (directory / "log").open("wb") as words:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(broken), "start", *options], stdout=words, stderr=words, env=environment
        )
    try:
        yield process, broken
    finally:
        process.kill()
        process.wait()


@contextmanager
def sabotaged(directory: Path, sabotage: str, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], Path, str]]:
    """Yields also the URL of the HTTP API, once the broker is ready."""
    log = directory / "log"
    with started(directory, sabotage, *options) as (process, broken):
        wait_until(lambda: "ready on" in log.read_text() or process.poll() is not None, "the broker to be ready")
        place = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
        assert place is not None, log.read_text()
        yield process, broken, place[0]


def readiness(place: str) -> int:
    return httpx.get(f"{place}/readyz", verify=NO_TLS, timeout=30.0).status_code


@pytest.mark.proves("R38")
@pytest.mark.parametrize("state", STATES)
def test_sigterm_ends_a_broker_in_every_state(tmp_path: Path, state: str) -> None:
    with sabotaged(tmp_path, STATES[state]) as (process, broken, place):
        assert readiness(place) == 200
        broken.touch()
        wait_until(lambda: readiness(place) == 503, "the broker to say that it is not ready")
        began = time.monotonic()
        process.terminate()
        process.wait(STOP_S + SPARE_S)
        assert time.monotonic() - began < STOP_S + SPARE_S
        assert not (tmp_path / "data" / "pid").exists()


@pytest.mark.proves("R38")
def test_sigterm_ends_a_broker_whose_disk_stalls_at_the_beginning(tmp_path: Path) -> None:
    with started(tmp_path, STALLING_AT_THE_BEGINNING) as (process, broken):
        wait_until(broken.exists, "the broker to read its state")
        began = time.monotonic()
        process.terminate()
        assert process.wait(STOP_S + SPARE_S) == 1
        assert time.monotonic() - began < STOP_S + SPARE_S
        assert not (tmp_path / "data" / "pid").exists()


@pytest.mark.proves("R38")
def test_sigterm_ends_a_broker_whose_disk_stalls_at_the_end(tmp_path: Path) -> None:
    with sabotaged(tmp_path, STALLING_AT_THE_END) as (process, _, place):
        assert readiness(place) == 200
        began = time.monotonic()
        process.terminate()
        assert process.wait(STOP_S + SPARE_S) == 1
        assert time.monotonic() - began < STOP_S + SPARE_S
        assert not (tmp_path / "data" / "pid").exists()


@pytest.mark.parametrize(("sabotage", "options"), [("", ["--memory"]), (NO_NEXT_LIFE, [])])
def test_a_broker_that_cannot_restart_its_state_ends_by_itself(
    tmp_path: Path, sabotage: str, options: list[str]
) -> None:
    with sabotaged(tmp_path, sabotage, *options) as (process, broken, _):
        broken.touch()
        assert process.wait(SPARE_S) == 1
        assert not (tmp_path / "data" / "pid").exists()

"""With `--quick` each broker of the tests is a copy of a prepared program, and behaves as one that was started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.support import starting

from .configured_broker import ConfiguredBroker, running
from .waiting import PATIENCE_S


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_quick", True)


def test_a_copy_is_a_child_with_its_own_directory_environment_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_FOR", "this broker")
    with running(ConfiguredBroker(tmp_path)) as broker:
        process = psutil.Process(broker.process.pid)
        assert process.ppid() == os.getpid()
        assert process.cwd() == str(tmp_path)
        assert os.readlink(f"/proc/{process.pid}/fd/0") == os.devnull
        for number in (1, 2):
            assert os.readlink(f"/proc/{process.pid}/fd/{number}") == str(broker.log)
        broker.connect().close()
    assert broker.process.returncode == 0
    assert not psutil.pid_exists(process.pid)
    with running(ConfiguredBroker(tmp_path)) as again:
        assert again.process.pid != process.pid


def test_a_killed_process_has_the_exit_code_of_its_signal(tmp_path: Path) -> None:
    broker = ConfiguredBroker(tmp_path)
    broker.start()
    broker.process.kill()
    assert broker.process.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_copy_that_refuses_to_start_has_an_exit_code_and_a_reason(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as output:
        command = [*starting.COMMAND, "start", "--listen", "nowhere"]
        process = starting.start(command, output, {"PANDOMQ_NODE_NAME": "from the environment"}, tmp_path)
        assert process.wait(PATIENCE_S) != 0
    said = (tmp_path / "log").read_text()
    assert "Traceback" not in said and "nowhere" in said


def test_another_python_is_started_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(7)\n")
    with (tmp_path / "log").open("wb") as output:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        process = starting.start([*starting.COMMAND, "start"], output, environment, tmp_path)
    assert process.wait(PATIENCE_S) == 1
    assert "SystemExit: 7" in (tmp_path / "log").read_text()


def test_copies_have_different_random_numbers(tmp_path: Path) -> None:
    stores = []
    for number in range(4):
        with running(ConfiguredBroker(tmp_path / f"{number}", node={"data": str(tmp_path / f"data{number}")})):
            pass
        stores.append((tmp_path / f"data{number}" / "state").read_bytes())
    assert len(set(stores)) == len(stores)

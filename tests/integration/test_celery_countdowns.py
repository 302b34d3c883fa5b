"""Celery with nothing but a URL: tasks with a countdown do not keep a worker from the next task.

A worker holds such tasks unacked, and raises its prefetch for each of them. kombu does that for RabbitMQ alone, by its
name and version in the server properties.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from celery import __version__ as installed_celery
from kombu import __version__ as installed_kombu

from . import celery_hello
from .celery_worker import CeleryWorker
from .configured_broker import ConfiguredBroker, running
from .waiting import PATIENCE_S

pytestmark = [pytest.mark.only_ours("it has a broker of its own"), pytest.mark.timeout(300)]

HELD = 8
"""The number of tasks that two processes prefetch by default."""
COUNTDOWN_S = 20
VERSIONS = [("5.4.0", "5.4.2"), ("5.6.3", "5.6.2"), ("5.7.0", "5.7.0")]
"""Versions of Celery and of kombu."""


def countdowns_are_overtaken(directory: Path, libraries: Path | None = None) -> CeleryWorker:
    """Returns the worker, which has ended. Its process uses the `libraries`, if there are any."""
    with running(ConfiguredBroker(directory / "broker")) as broker:
        url = f"amqp://guest:guest@127.0.0.1:{broker.port}//"
        environment = {celery_hello.URL: url}
        if libraries is not None:
            environment["PYTHONPATH"] = os.pathsep.join([str(libraries), os.environ.get("PYTHONPATH", "")])
        worker = CeleryWorker.of(celery_hello.make_app(url), "tests.integration.celery_hello", directory, environment)
        worker.start("--concurrency", "2")
        try:
            held = [worker.task("add", number, 0).apply_async(countdown=COUNTDOWN_S) for number in range(HELD)]
            for _ in range(3):
                assert worker.task("add", 2, 3).delay().get(timeout=COUNTDOWN_S / 2) == 5
            assert not any(result.ready() for result in held)
            assert [result.get(timeout=COUNTDOWN_S + PATIENCE_S) for result in held] == list(range(HELD))
        finally:
            worker.stop()
    return worker


def test_the_next_task_overtakes_countdowns(tmp_path: Path) -> None:
    countdowns_are_overtaken(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("celery", "kombu"), VERSIONS)
def test_tasks_with_a_countdown_are_overtaken_with_other_versions_too(tmp_path: Path, celery: str, kombu: str) -> None:
    if (celery, kombu) == (installed_celery, installed_kombu):
        pytest.skip("this version is installed: the test above has asked it")
    libraries = tmp_path / "libraries"
    worker = countdowns_are_overtaken(tmp_path, installed(libraries, f"celery=={celery}", f"kombu=={kombu}"))
    assert re.search(rf"celery@\S+ v{re.escape(celery)} ", worker.log()), worker.log()


def installed(directory: Path, *requirements: str) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(directory)]
    run = subprocess.run([*pip, *requirements], capture_output=True, text=True, timeout=200, check=False)
    if run.returncode == 0:
        return directory
    reason = f"{', '.join(requirements)} cannot be installed: {run.stderr.strip().splitlines()[-1]}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)

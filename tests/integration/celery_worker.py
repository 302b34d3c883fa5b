"""A real Celery worker in a process of its own, and the application to send it tasks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from celery import Celery

from .celery_tasks import PREFIX, QUEUE_TYPE, URL, make_app

READY_TIMEOUT_S = 45.0
STOP_TIMEOUT_S = 20.0
ROOT = Path(__file__).parents[2]
TASKS = "tests.integration.celery_tasks"


class CeleryWorker:
    """Ends by `stop` (warm, as SIGTERM asks) or by `kill`."""

    def __init__(
        self, directory: Path, url: str, prefix: str, *, queue_type: str = "classic", name: str = "w1"
    ) -> None:
        self.app: Celery = make_app(url, prefix, queue_type)
        self._options = ["--hostname", f"{name}@{prefix}", "--without-mingle", "--events"]
        self._run(TASKS, directory / f"{name}.log", {URL: url, PREFIX: prefix, QUEUE_TYPE: queue_type})

    @classmethod
    def of(cls, app: Celery, module: str, directory: Path, environment: dict[str, str]) -> CeleryWorker:
        """A worker of another application, with nothing but Celery's defaults."""
        worker = cls.__new__(cls)
        worker.app = app
        worker._options = []
        worker._run(module, directory / "worker.log", environment)
        return worker

    def _run(self, module: str, log_path: Path, environment: dict[str, str]) -> None:
        self._module = module
        self.log_path = log_path
        self._environment = {**os.environ, **environment}
        # A warning of Celery's own dependencies cannot be fixed in this project, even where warnings are errors.
        self._environment.pop("PYTHONWARNINGS", None)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        command = [sys.executable, "-m", "celery", "-A", self._module, "worker", "--loglevel", "INFO"]
        command += [*self._options, *options]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                # A pool's children end with their parent when it has to be killed.
                start_new_session=True,
            )
        self.wait_for_log(" ready.")

    def wait_for_log(self, text: str, times: int = 1) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while self.log().count(text) < times:
            assert self._process is not None and self._process.poll() is None, f"the worker ended\n{self.log()}"
            assert time.monotonic() < deadline, f"no {text!r} in the worker's log:\n{self.log()}"
            time.sleep(0.02)

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def task(self, name: str, *arguments: Any) -> Any:
        """A call of the task, not yet sent."""
        return self.app.signature(name, args=arguments)

    def kill(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_TIMEOUT_S)
        self._process = None

    def stop(self) -> None:
        self.app.close()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the worker did not end\n{self.log()}") from None

"""Celery through a failover: tasks that a worker notes in a file as they run, and an account of which were accepted.

A task whose sending was confirmed has run at least once in the end. The worker acks late, so that none is lost with it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

from kombu.exceptions import OperationalError

from tests.integration.celery_worker import CeleryWorker
from tests.integration.waiting import wait_until

from .cluster import PATIENCE_S, Cluster

PACE_S = 0.02


class CeleryLoad:
    def __init__(self, cluster: Cluster, directory: Path, prefix: str) -> None:
        self._notes = directory / "ran"
        self._notes.touch()
        self._worker = CeleryWorker(directory, ";".join(cluster.urls), prefix)
        self._ending = False
        self._thread = threading.Thread(target=self._send, name="tasks")
        self.accepted: list[str] = []
        self.errors = 0
        self.longest_pause_s = 0.0

    def start(self) -> None:
        self._worker.start("--pool", "solo")
        self._thread.start()
        self.wait_for_progress()

    def _send(self) -> None:
        last = time.monotonic()
        number = 0
        while not self._ending:
            number += 1
            name = f"task-{number}"
            try:
                # Celery would send it again by itself, and could not say whether it was accepted twice.
                self._worker.task("note", str(self._notes), name).apply_async(retry=False, ignore_result=True)
            except (OperationalError, OSError):
                self.errors += 1
                self._worker.app.pool.force_close_all()
            else:
                self.accepted.append(name)
                self.longest_pause_s = max(self.longest_pause_s, time.monotonic() - last)
                last = time.monotonic()
            time.sleep(PACE_S)

    @property
    def ran(self) -> list[str]:
        return self._notes.read_text().split()

    def wait_for_progress(self, more: int = 20) -> None:
        sent, ran = len(self.accepted) + more, len(set(self.ran)) + more
        wait_until(
            lambda: len(self.accepted) >= sent and len(set(self.ran)) >= ran,
            f"{more} more tasks (now {len(self.accepted)} accepted, {len(self.ran)} ran)\n{self._worker.log()[-3000:]}",
            PATIENCE_S,
        )

    def finish(self) -> None:
        self._ending = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "sending does not end"
        wait_until(lambda: set(self.accepted) <= set(self.ran), "all accepted tasks to have run", PATIENCE_S)

    def stop(self) -> None:
        self._ending = True
        self._thread.join(PATIENCE_S)
        with contextlib.suppress(AssertionError):
            self._worker.stop()

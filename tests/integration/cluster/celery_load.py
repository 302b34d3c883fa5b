"""Celery through a failover: tasks that a worker notes in a file as they run, and an account of the accepted ones.

A task whose sending was confirmed has run at least once at the end. The worker acks late, so that no task is lost with
it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

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
        self._error: Exception | None = None
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
                # Celery sends it again by itself when its connection is lost: it may run twice, as documented.
                self._worker.task("note", str(self._notes), name).apply_async(ignore_result=True)
            # Celery, kombu and amqp may raise any exception for a lost connection: the task is in doubt.
            except Exception as error:
                self.errors += 1
                self._error = error
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
        try:
            wait_until(lambda: len(self.accepted) >= sent and len(set(self.ran)) >= ran, "more tasks", PATIENCE_S)
        except AssertionError as error:
            facts = f"{len(self.accepted)} accepted, {len(self.ran)} ran, {self.errors} errors, at last {self._error!r}"
            raise AssertionError(f"{error}: {facts}\n{self._worker.log()[-3000:]}") from None

    def finish(self) -> None:
        self._ending = True
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "sending does not end"
        wait_until(lambda: set(self.accepted) <= set(self.ran), "all accepted tasks to have run", PATIENCE_S)

    def stop(self) -> None:
        self._ending = True
        if self._thread.is_alive():
            self._thread.join(PATIENCE_S)
        with contextlib.suppress(AssertionError):
            self._worker.stop()

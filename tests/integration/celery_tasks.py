"""The Celery application that worker and tests share. Its broker and its names come from the environment.

Environment: PANDOMQ_CELERY_URL, PANDOMQ_CELERY_PREFIX (a name of its own for queues and exchanges), and
PANDOMQ_CELERY_QUEUE_TYPE (classic or quorum).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

URL = "PANDOMQ_CELERY_URL"
PREFIX = "PANDOMQ_CELERY_PREFIX"
QUEUE_TYPE = "PANDOMQ_CELERY_QUEUE_TYPE"


def make_app(url: str, prefix: str, queue_type: str = "classic") -> Celery:
    app = Celery("tests", broker=url, backend="rpc://", set_as_current=False)
    app.conf.update(
        task_default_queue=f"{prefix}.tasks",
        task_default_exchange=f"{prefix}.tasks",
        task_default_routing_key=f"{prefix}.tasks",
        task_default_queue_type=queue_type,
        worker_detect_quorum_queues=True,
        broker_transport_options={"confirm_publish": True},
        control_exchange=f"{prefix}.control",
        event_exchange=f"{prefix}.events",
        event_queue_prefix=f"{prefix}.events",
        worker_send_task_events=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_connection_timeout=5,
        result_expires=60,
        worker_prefetch_multiplier=2,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
    )
    return app


def register(app: Celery) -> None:
    """Registers the tasks for the worker; the tests call them by name."""

    @app.task(name="add")
    def add(x: Any, y: Any) -> Any:
        return x + y

    @app.task(name="fail")
    def fail(message: str) -> None:
        raise ValueError(message)

    @app.task(name="flaky", bind=True, max_retries=5)
    def flaky(self: Any, failures: int) -> int:
        """Fails that many times, is retried, and returns the number of its runs."""
        if self.request.retries < failures:
            raise self.retry(countdown=0.1)
        return int(self.request.retries)

    @app.task(name="now")
    def now() -> float:
        return time.time()

    @app.task(name="length")
    def length(text: str) -> int:
        return len(text)

    @app.task(name="note", acks_late=True, ignore_result=True)
    def note(path: str, text: str) -> None:
        """Appends a line to a file: one write, so that lines stay whole."""
        with Path(path).open("a") as notes:
            notes.write(f"{text}\n")

    @app.task(name="once_then_hang", acks_late=True, bind=True, reject_on_worker_lost=True)
    def once_then_hang(self: Any, marker: str) -> bool:
        """Hangs the first time it runs, so that its worker can be killed; returns whether it was delivered again."""
        path = Path(marker)
        if path.exists():
            return bool(self.request.delivery_info["redelivered"])
        path.touch()
        time.sleep(600)
        return False


if URL in os.environ:
    app = make_app(os.environ[URL], os.environ[PREFIX], os.environ.get(QUEUE_TYPE, "classic"))
    register(app)

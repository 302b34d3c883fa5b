"""A Celery application of which nothing but URLs is configured, as in docs/clients.md; from PANDOMQ_CELERY_HELLO."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery

URL = "PANDOMQ_CELERY_HELLO"


def make_app(url: str) -> Celery:
    return Celery("hello", broker=url, backend="rpc://", set_as_current=False)


if URL in os.environ:
    app = make_app(os.environ[URL])

    @app.task(name="add")
    def add(x: Any, y: Any) -> Any:
        return x + y

"""Celery: a real worker runs tasks; retries, countdowns, groups, chains, revokes, events, a killed worker."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import chain, group
from celery.exceptions import TaskRevokedError

from .broker_under_test import BrokerUnderTest, Names
from .cable import Cable
from .celery_worker import CeleryWorker
from .waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.timeout(180)

REVOKED_WITHIN_S = 5
"""Until then the worker has to know that a task is revoked; the test waits so long."""


def claim(names: Names) -> str:
    """The prefix, after its queues and exchanges have been noted for deletion."""
    names.queue("tasks")
    for suffix in ("tasks", "control", "events", "reply.control"):
        names.exchange(suffix)
    names._exchanges.append(f"reply.{names.prefix}.control")
    return names.prefix


@pytest.fixture(scope="module")
def worker(broker: BrokerUnderTest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryWorker]:
    names = Names(broker)
    worker = CeleryWorker(tmp_path_factory.mktemp("celery"), broker.url, claim(names))
    worker.start("--concurrency", "2")
    yield worker
    worker.stop()
    names.delete_all()


def test_a_task_runs_and_its_result_comes_back(worker: CeleryWorker) -> None:
    assert worker.task("add", 2, 3).delay().get(timeout=PATIENCE_S) == 5


def test_many_tasks(worker: CeleryWorker) -> None:
    results = [worker.task("add", number, 1).delay() for number in range(100)]
    assert [result.get(timeout=PATIENCE_S) for result in results] == list(range(1, 101))


def test_a_failure_comes_back_as_its_exception(worker: CeleryWorker) -> None:
    result = worker.task("fail", "on purpose").delay()
    with pytest.raises(ValueError, match="on purpose"):
        result.get(timeout=PATIENCE_S)
    assert result.state == "FAILURE"


def test_a_task_is_retried_until_it_succeeds(worker: CeleryWorker) -> None:
    assert worker.task("flaky", 3).delay().get(timeout=PATIENCE_S) == 3


def test_a_countdown_holds_a_task_back(worker: CeleryWorker) -> None:
    sent = time.time()
    assert worker.task("now").apply_async(countdown=1).get(timeout=PATIENCE_S) - sent >= 1


def test_more_countdowns_than_the_prefetch(worker: CeleryWorker) -> None:
    """A worker holds tasks for later, unacked, and changes its prefetch while it does."""
    held = [worker.task("add", number, 0).apply_async(countdown=1) for number in range(12)]
    due = worker.task("now").delay()
    assert [result.get(timeout=PATIENCE_S) for result in held] == list(range(12))
    assert due.get(timeout=PATIENCE_S)


def test_a_group_and_a_chain(worker: CeleryWorker) -> None:
    gathered = group(worker.task("add", number, number) for number in range(10)).apply_async()
    assert gathered.get(timeout=PATIENCE_S) == [2 * number for number in range(10)]
    chained = chain(worker.task("add", 1, 2), worker.task("add", 10), worker.task("add", 100)).apply_async()
    assert chained.get(timeout=PATIENCE_S) == 113


def test_a_revoked_task_does_not_run(worker: CeleryWorker) -> None:
    result = worker.task("now").apply_async(countdown=REVOKED_WITHIN_S)
    # Every worker answers on its pidbox, so that the revocation is known before the task is due.
    assert worker.app.control.revoke(result.id, reply=True, timeout=20, limit=1)
    with pytest.raises(TaskRevokedError):
        result.get(timeout=PATIENCE_S)


def test_large_arguments(worker: CeleryWorker) -> None:
    assert worker.task("length", "x" * 1_000_000).delay().get(timeout=PATIENCE_S) == 1_000_000


def test_the_worker_answers_remote_control(worker: CeleryWorker) -> None:
    inspect = worker.app.control.inspect(timeout=20, limit=1)
    [(name, answer)] = inspect.ping().items()
    assert name.endswith(f"@{worker.app.conf.task_default_queue.removesuffix('.tasks')}")
    assert answer == {"ok": "pong"}
    [queues] = inspect.active_queues().values()
    assert [queue["name"] for queue in queues] == [worker.app.conf.task_default_queue]


def test_events_describe_the_tasks_of_the_worker(worker: CeleryWorker) -> None:
    seen: list[dict[str, Any]] = []
    with worker.app.connection_for_read() as connection:
        receiver = worker.app.events.Receiver(connection, handlers={"*": seen.append})
        with receiver.consumer_context() as (capturing, _, _):
            result = worker.task("add", 1, 1).delay()
            deadline = time.monotonic() + PATIENCE_S
            while not any(e["type"] == "task-succeeded" and e["uuid"] == result.id for e in seen):
                assert time.monotonic() < deadline, f"the event did not come, only {seen}"
                with contextlib.suppress(TimeoutError):
                    capturing.drain_events(timeout=0.1)
    assert {"task-received", "task-started", "task-succeeded"} <= {event["type"] for event in seen}


def test_a_task_of_a_killed_worker_is_done_by_another(broker: BrokerUnderTest, names: Names, tmp_path: Path) -> None:
    prefix = claim(names)
    doomed = CeleryWorker(tmp_path, broker.url, prefix, name="doomed")
    heir = CeleryWorker(tmp_path, broker.url, prefix, name="heir")
    doomed.start("--pool", "solo")
    try:
        result = doomed.task("once_then_hang", str(tmp_path / "marker")).delay()
        wait_until((tmp_path / "marker").exists, "the task's start")
        doomed.kill()
        heir.start("--pool", "solo")
        assert result.get(timeout=PATIENCE_S) is True
    finally:
        doomed.stop()
        heir.stop()


def test_a_worker_reconnects_after_a_cut(broker: BrokerUnderTest, names: Names, tmp_path: Path) -> None:
    with Cable(broker.host, broker.port) as cable:
        worker = CeleryWorker(tmp_path, broker.url_at(cable.port), claim(names))
        worker.start("--pool", "solo")
        try:
            assert worker.task("add", 1, 1).delay().get(timeout=PATIENCE_S) == 2
            cable.cut()
            worker.app.pool.force_close_all()
            worker.wait_for_log("Connected to", times=2)
            fresh = CeleryWorker(tmp_path, broker.url, names.prefix)
            assert fresh.task("add", 2, 2).delay().get(timeout=PATIENCE_S) == 4
            fresh.stop()
        finally:
            worker.stop()


def test_quorum_queues_delay_in_the_broker(broker: BrokerUnderTest, names: Names, tmp_path: Path) -> None:
    """With quorum queues Celery implements countdowns by 28 queues, TTLs of up to 2^27 s and topic keys of 28 words."""
    worker = CeleryWorker(tmp_path, broker.url, claim(names), queue_type="quorum")
    for level in range(28):
        names._queues.append(f"celery_delayed_{level}")
        names._exchanges.append(f"celery_delayed_{level}")
    names._exchanges.append("celery_delayed_delivery")
    worker.start("--pool", "solo")
    try:
        assert worker.task("add", 1, 2).delay().get(timeout=PATIENCE_S) == 3
        sent = time.time()
        assert worker.task("now").apply_async(countdown=2).get(timeout=PATIENCE_S) - sent >= 1
    finally:
        worker.stop()

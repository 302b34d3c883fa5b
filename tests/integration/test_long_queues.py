"""Queues that are longer than the memory that they may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandomq import kernel
from pandomq.bench.broker_process import PandoBroker
from pandomq.bench.measurements.long_queue import LongQueue, load_of

MIB = 2**20
MESSAGES = 150_000
ALLOWED_MIB = 80
"""Generous: eight for messages, the rest for data under way and for the allocator. The messages would take 190."""


@pytest.fixture
def paging_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PandoBroker:
    monkeypatch.setenv("PANDOMQ_LIMITS_PAGING_BYTES", "8MiB")
    monkeypatch.setenv("PANDOMQ_LOG_SNAPSHOT_BYTES", "32MiB")
    monkeypatch.setenv("PANDOMQ_LOG_FREE_BYTES_MIN", "0")
    return PandoBroker("PandoMQ", tmp_path, plain=kernel.KIND == "plain")


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_a_long_queue_takes_no_more_memory_than_it_may(paging_broker: PandoBroker, kind: str) -> None:
    broker = paging_broker
    broker.start()
    try:
        queue = LongQueue(load_of(kind, broker.url, 1024), kind, MESSAGES, broker.pid)
        full = queue.result
        assert full.queued == MESSAGES
        assert full.resident_peak_bytes - full.resident_before_bytes < ALLOWED_MIB * MIB
        if kind == "persistent":
            broker.restart(cleanly=False)
            queue.restart(lambda: (0.0, broker.ready_s, broker.pid, broker.url))
            assert full.kept == MESSAGES
            assert (full.resident_restarted_bytes or 0) - full.resident_before_bytes < ALLOWED_MIB * MIB
        assert queue.drain().drain is not None
        assert full.resident_drained_bytes - full.resident_before_bytes < ALLOWED_MIB * MIB
    finally:
        broker.close()

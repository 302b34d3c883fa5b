"""A broker that is killed again and again under load keeps its promises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.process import BrokerProcess

from .killing import kill_rounds

ROUNDS = int(os.environ.get("PANDOMQ_KILL_ROUNDS", "3"))
SEED = int(os.environ.get("PANDOMQ_KILL_SEED", "1"))


@pytest.mark.timeout(60 + 15 * ROUNDS)
def test_promises_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The values are small, so that files are begun, snapshots taken, segments deleted and messages paged while it is
    # being killed.
    monkeypatch.setenv("PANDOMQ_LOG_SEGMENT_BYTES", "256KiB")
    monkeypatch.setenv("PANDOMQ_LOG_SNAPSHOT_BYTES", "512KiB")
    monkeypatch.setenv("PANDOMQ_LIMITS_PAGING_BYTES", "32KiB")
    broker = BrokerProcess(tmp_path)
    promises = kill_rounds(broker, ROUNDS, SEED)
    assert broker.stop() == 0
    assert promises.broken == []
    assert "Traceback" not in broker.log_text()
    for what in promises.progress:
        assert len(what) > 2 * ROUNDS, "there was hardly any load"

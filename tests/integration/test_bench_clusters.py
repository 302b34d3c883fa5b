"""The cases of `make bench-cluster`, once and briefly, with real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.compare.clusters import faults, limits
from tools.compare.clusters.disks import disks
from tools.compare.clusters.member import Member
from tools.compare.clusters.pando import PandoCluster
from tools.compare.clusters.places import places

pytestmark = [pytest.mark.only_ours("it starts brokers of its own"), pytest.mark.timeout(200)]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PandoCluster]:
    for name in ("BEFORE_FAULT_S", "AFTER_FAULT_S", "WATCH_S_MIN"):
        monkeypatch.setattr(limits, name, 0.5)
    monkeypatch.setattr(limits, "FAULT_RATE", 200)
    with places(limits.MEMBERS, apart=False) as where, disks(tmp_path, limits.MEMBERS, stalling=False) as kept:
        members = [Member(f"n{number}", *pair) for number, pair in enumerate(zip(where, kept, strict=True), start=1)]
        started = PandoCluster(members)
        try:
            started.start()
            yield started
        finally:
            started.close()


def test_a_publisher_gets_over_the_end_of_the_root_and_nothing_confirmed_is_lost(cluster: PandoCluster) -> None:
    root = cluster.leader(0)
    trial = faults.inflict(cluster, faults.KILL, turn=0)
    assert trial.over, trial.story
    assert trial.account.confirmed > 0
    assert trial.account.lost == 0
    assert any("disconnected" in words for words in trial.story)
    assert root.alive, "all is mended after a trial"
    assert cluster.whole()

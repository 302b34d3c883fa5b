"""A broker that is to stop does not wait for a snapshot that cannot be finished."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pandomq.node.log.snapshots import Snapshots


class Scene:
    """A root whose snapshot is written and waits for the commit of its last entry."""

    def __init__(self, *, has_peers: bool) -> None:
        self.closings: list[int] = []
        journal: Any = SimpleNamespace(close=self._close)
        replication: Any = SimpleNamespace(has_peers=has_peers, life=SimpleNamespace(took_over=True))
        nobody: Any = SimpleNamespace()
        self.snapshots = Snapshots(journal, nobody, nobody, nobody, replication)
        self.snapshots._writer = nobody

    def _close(self) -> None:
        self.closings.append(1)


def test_a_broker_among_others_stops_without_the_snapshot_that_waits_for_a_commit() -> None:
    scene = Scene(has_peers=True)
    scene.snapshots.work(0)
    assert not scene.closings
    scene.snapshots.close()
    for _ in range(2):
        assert not scene.snapshots.work(0)
    assert len(scene.closings) == 1


def test_a_broker_alone_finishes_its_snapshot_first() -> None:
    scene = Scene(has_peers=False)
    scene.snapshots.close()
    scene.snapshots.work(0)
    assert not scene.closings

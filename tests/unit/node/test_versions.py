"""A log that a newer broker wrote is refused in words, whatever it is that is newer."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.broker.log import snapshot
from pandomq.ids import Term
from pandomq.journal.faults import VersionFault
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss
from tests.unit.node.lives import Life

START_MS = 1_700_000_000_000


def test_an_entry_of_a_later_version_is_refused() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, START_MS)
    index = life.journal.append(Term(life.broker.engine.term), b"\x09 from the future")
    life.journal.sync()
    life.until(lambda: life.journal.durable_index == index)
    disk.crash(Loss.ALL)
    with pytest.raises(VersionFault, match=f"entry {index} of the log is malformed"):
        Life(disk, life.now_ms)


def test_a_snapshot_of_a_later_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, START_MS)
    with monkeypatch.context() as newer:
        newer.setattr(snapshot, "VERSION", 9)
        life.stop()
    with pytest.raises(VersionFault, match="Start the newer version of the broker that wrote it"):
        Life(disk, life.now_ms)

"""Drills expect what is promised, and no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.sim.features.drills.drill import Drill
from pandomq.sim.features.drills.pressure import PressureFeature
from pandomq.sim.ledger import BrokenPromise


class LaggingDrill(Drill):
    name = "lagging"
    promise = "backups catch up"

    def __init__(self, *idle_ms: int) -> None:
        machines = [SimpleNamespace(disk=SimpleNamespace(idle_ms=one)) for one in idle_ms]
        world: Any = SimpleNamespace(
            agenda=SimpleNamespace(now_ms=1_000), machines=machines, trace=SimpleNamespace(say=lambda *_: None)
        )
        self.world = world

    def is_calm(self) -> bool:
        return False


@pytest.mark.parametrize(("idle_ms", "end_ms"), [((0, 900), 1_500), ((0, 5_000), 5_500)])
def test_the_patience_begins_when_slow_disks_have_done_what_was_asked_for(
    idle_ms: tuple[int, ...], end_ms: int
) -> None:
    drill = LaggingDrill(*idle_ms)
    look = drill.in_sync(500)
    drill.world.agenda.now_ms = end_ms
    assert not look()
    drill.world.agenda.now_ms = end_ms + 1
    with pytest.raises(BrokenPromise, match="backups catch up"):
        look()


def test_a_disk_becomes_nearly_full_when_it_has_written_what_it_owes() -> None:
    """A backup's slow disk owed more than the room that a drill left on it, and its broker ended."""
    views = {"root": SimpleNamespace(last_index=9, membership=None), "backup": SimpleNamespace(synced_index=8)}
    root, backup = (
        SimpleNamespace(name=name, replica=SimpleNamespace(view=lambda v=v: v)) for name, v in views.items()
    )
    backup.disk = SimpleNamespace(capacity_bytes=1_000_000, used_bytes=0)
    backup.node = None
    drill = PressureFeature.__new__(PressureFeature)
    drill.world = SimpleNamespace(  # type: ignore[assignment]
        machine=root, agenda=SimpleNamespace(now_ms=0), trace=SimpleNamespace(say=lambda *_: None)
    )
    course = drill._disk(backup)  # type: ignore[arg-type]
    has_written = next(course)
    assert not has_written()
    views["backup"].synced_index = 9
    assert has_written()
    knowledge = next(course)
    knowledge()
    assert backup.disk.capacity_bytes < 1_000_000

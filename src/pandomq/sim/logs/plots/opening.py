"""The beginning and the end of most plots."""

from __future__ import annotations

from collections.abc import Generator

from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.plot import Course, Cue
from pandomq.sim.logs.scene import LogScene


def a_root(stage: LogScene) -> Generator[Cue, None, LogMachine]:
    yield lambda: stage.root() is not None
    root = stage.root()
    assert root is not None
    return root


def a_quiet_root(stage: LogScene) -> Generator[Cue, None, LogMachine]:
    """All machines have the whole log, and only the plot proposes entries."""
    yield from a_root(stage)
    yield stage.any_ms(stage.lease_ms)
    stage.silence()
    yield lambda: stage.root() is not None and stage.is_even(*stage.machines)
    return (yield from a_root(stage))


def all_even(stage: LogScene) -> Course:
    """All machines run, and have equal logs."""
    stage.rule(None)
    stage.silence()
    stage.heal()
    stage.hurry_disks()
    stage.start(*stage.machines)
    yield lambda: stage.root() is not None and stage.is_even(*stage.machines)

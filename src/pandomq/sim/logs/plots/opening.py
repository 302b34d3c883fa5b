"""How most plots begin and end."""

from __future__ import annotations

from collections.abc import Generator

from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.plot import Course, Cue
from pandomq.sim.logs.stage import Stage


def a_root(stage: Stage) -> Generator[Cue, None, LogMachine]:
    yield lambda: stage.root() is not None
    root = stage.root()
    assert root is not None
    return root


def a_quiet_root(stage: Stage) -> Generator[Cue, None, LogMachine]:
    """Everybody has all there is, and nobody proposes anything but the plot."""
    yield from a_root(stage)
    yield stage.any_ms(stage.lease_ms)
    stage.silence()
    yield lambda: stage.root() is not None and stage.is_even(*stage.machines)
    return (yield from a_root(stage))


def all_even(stage: Stage) -> Course:
    """Everybody is back, and has what the others have."""
    stage.rule(None)
    stage.silence()
    stage.heal()
    stage.hurry_disks()
    stage.start(*stage.machines)
    yield lambda: stage.root() is not None and stage.is_even(*stage.machines)

"""Plots about a backup that lags past compaction: it is sent a snapshot, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.plot import Course, Plot
from pandomq.sim.logs.plots.opening import a_root, all_even
from pandomq.sim.logs.stage import Stage


def _behind(meanwhile: Callable[[Stage, LogMachine], Course]) -> Callable[[Stage], Course]:
    """A backup is away until the log that it needs is gone, comes back, and is sent a snapshot: then this happens."""

    def course(stage: Stage) -> Course:
        root = yield from a_root(stage)
        laggard = stage.random.choice(stage.others(root))
        last_index = stage.last_index(laggard)
        if stage.random.random() < 0.5:
            stage.kill(laggard)
        else:
            stage.part([laggard], stage.others(laggard))
        while stage.first_index(laggard) <= last_index + 1:
            root = yield from a_root(stage)
            for _ in range(8):
                stage.propose(root, 1_500)
            yield stage.lease_ms // 5
        stage.reached("the log that a backup needs is reclaimed")
        stage.heal()
        stage.start(laggard)
        taken = stage.pieces_taken(laggard)
        yield lambda: stage.pieces_taken(laggard) > taken
        stage.reached("a snapshot is on its way")
        yield from meanwhile(stage, laggard)
        yield from all_even(stage)

    return course


def _churn(stage: Stage, laggard: LogMachine) -> Course:
    """The log goes on, is snapshotted and reclaimed."""
    for _ in range(10):
        root = yield from a_root(stage)
        for _ in range(6):
            stage.propose(root, 1_500)
        yield stage.any_ms(100)


def _root_changes(stage: Stage, laggard: LogMachine) -> Course:
    """The next root has another snapshot: the transfer begins again."""
    root = yield from a_root(stage)
    if stage.random.random() < 0.5:
        stage.kill(root)
    else:
        stage.part([root], stage.others(root))
    yield lambda: stage.root() not in (None, root)
    yield stage.any_ms(2 * stage.lease_ms)


def _receiver_crashes(stage: Stage, laggard: LogMachine) -> Course:
    """In mid-transfer, while it puts the pieces together, or while the snapshot takes the place of its store."""
    for _ in range(stage.random.randint(1, 4)):
        yield stage.any_ms(stage.random.choice((3, 30)))
        stage.kill(laggard)
        yield stage.any_ms(100)
        stage.start(laggard)
        taken = stage.pieces_taken(laggard)
        yield lambda taken=taken: stage.pieces_taken(laggard) > taken or stage.is_even(*stage.machines)  # type: ignore[misc]


def _pieces_are_lost(stage: Stage, laggard: LogMachine) -> Course:
    stage.storm()
    yield 4 * stage.lease_ms + stage.any_ms(2_000)
    stage.calm()


def _plot(name: str, about: str, meanwhile: Callable[[Stage, LogMachine], Course]) -> Plot:
    return Plot(name, about, _behind(meanwhile), (3, 4, 5), {"tail_bytes": 1}, compacts=True)


PLOTS: Final = (
    _plot("behind", "a backup that lags past compaction gets a snapshot, under churn", _churn),
    _plot("behind, root changes", "a root changes in mid-transfer", _root_changes),
    _plot("behind, receiver crashes", "a receiver crashes in mid-transfer", _receiver_crashes),
    _plot("behind, pieces lost", "pieces are lost, doubled and overtaken", _pieces_are_lost),
)

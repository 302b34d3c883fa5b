"""Plots about a backup that lags past compaction: it is sent a snapshot, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.plot import Course, Plot
from pandomq.sim.logs.plots.opening import a_root, all_even
from pandomq.sim.logs.stage import EVER_MS, Stage


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


def _overtaken(stage: Stage) -> Course:
    """One keeps the log that another has reclaimed. While that other's snapshot is on its way, and is long in getting
    to the disk, the one that has the log becomes root: its entries are there first."""
    keeper, sender, laggard = map(stage.machine, (KEEPER, SENDER, LAGGARD))
    root = yield from a_root(stage)
    if root is not sender:
        stage.hand_over(root, sender)
        yield lambda: stage.root() is sender
    last_index = stage.last_index(laggard)
    stage.kill(laggard)
    while stage.first_index(laggard, keeper) <= last_index + 1:
        root = yield from a_root(stage)
        for _ in range(8):
            stage.propose(root, 1_500)
        yield stage.lease_ms // 5
    stage.reached("the root has reclaimed the log that a backup needs, and another has it")
    stage.start(laggard)
    yield lambda: stage.has_last_piece(laggard)
    stage.stall_snapshots(laggard, EVER_MS)
    stage.kill(sender)
    yield lambda: stage.root() is keeper
    stage.silence()
    x = stage.propose(keeper)
    yield lambda: stage.is_confirmed(x)
    stage.reached("a backup has more than the snapshot that is on its way")
    laggard.disk_hurries()
    yield 20 + stage.any_ms(200)
    stage.kill(keeper)
    stage.start(sender)
    yield lambda: stage.root() is not None
    yield from all_even(stage)


def _plot(name: str, about: str, meanwhile: Callable[[Stage, LogMachine], Course]) -> Plot:
    return Plot(name, about, _behind(meanwhile), (3, 4, 5), {"tail_bytes": 1}, compacts=True)


KEEPER, SENDER, LAGGARD = "n1", "n2", "n3"
NEVER_BYTES: Final = 2**20
"""A log of so much is never snapshotted, nor a segment full."""

PLOTS: Final = (
    _plot("behind", "a backup that lags past compaction gets a snapshot, under churn", _churn),
    _plot("behind, root changes", "a root changes in mid-transfer", _root_changes),
    _plot("behind, receiver crashes", "a receiver crashes in mid-transfer", _receiver_crashes),
    _plot("behind, pieces lost", "pieces are lost, doubled and overtaken", _pieces_are_lost),
    Plot(
        "behind, overtaken",
        "a snapshot that is older than the log by the time it arrives replaces nothing",
        _overtaken,
        (3,),
        {"tail_bytes": 1},
        compacts=True,
        journals={
            KEEPER: {"snapshot_log_bytes": NEVER_BYTES},
            LAGGARD: {"snapshot_log_bytes": NEVER_BYTES, "segment_bytes": NEVER_BYTES},
        },
    ),
)

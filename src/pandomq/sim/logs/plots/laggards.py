"""Plots about a backup that lags past compaction: it receives a snapshot, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.plot import Course, Plot
from pandomq.sim.logs.plots.opening import a_root, all_even
from pandomq.sim.logs.scene import EVER_MS, LogScene


def _behind(meanwhile: Callable[[LogScene, LogMachine], Course]) -> Callable[[LogScene], Course]:
    """A backup is away until the log that it needs is gone, reconnects, and receives a snapshot: then `meanwhile`
    happens."""

    def course(stage: LogScene) -> Course:
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


def _churn(stage: LogScene, laggard: LogMachine) -> Course:
    """The log continues, a snapshot is taken, and the log before it is deleted."""
    for _ in range(10):
        root = yield from a_root(stage)
        for _ in range(6):
            stage.propose(root, 1_500)
        yield stage.any_ms(100)


def _root_changes(stage: LogScene, laggard: LogMachine) -> Course:
    """The next root has another snapshot: the transfer begins again."""
    root = yield from a_root(stage)
    if stage.random.random() < 0.5:
        stage.kill(root)
    else:
        stage.part([root], stage.others(root))
    yield lambda: stage.root() not in (None, root)
    yield stage.any_ms(2 * stage.lease_ms)


def _receiver_crashes(stage: LogScene, laggard: LogMachine) -> Course:
    """The receiver fails in mid-transfer, while it assembles the pieces, or while the snapshot replaces its store."""
    for _ in range(stage.random.randint(1, 4)):
        yield stage.any_ms(stage.random.choice((3, 30)))
        stage.kill(laggard)
        yield stage.any_ms(100)
        stage.start(laggard)
        taken = stage.pieces_taken(laggard)
        yield lambda taken=taken: stage.pieces_taken(laggard) > taken or stage.is_even(*stage.machines)  # type: ignore[misc]


def _pieces_are_lost(stage: LogScene, laggard: LogMachine) -> Course:
    stage.storm()
    yield 4 * stage.lease_ms + stage.any_ms(2_000)
    stage.calm()


def _overtaken(stage: LogScene) -> Course:
    """One machine keeps the log that another has deleted. While the snapshot of the other is under way, and is slow on
    its way to the disk, the machine with the log becomes root: its entries are on the disk first."""
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


def _plot(name: str, about: str, meanwhile: Callable[[LogScene, LogMachine], Course]) -> Plot:
    return Plot(name, about, _behind(meanwhile), (3, 4, 5), {"tail_bytes": 1}, compacts=True)


KEEPER, SENDER, LAGGARD = "n1", "n2", "n3"
NEVER_BYTES: Final = 2**20
"""A log of this size causes no snapshot, and no segment is full."""

PLOTS: Final = (
    _plot("behind", "A backup that lags past compaction gets a snapshot, under churn.", _churn),
    _plot("behind, root changes", "The root changes during a transfer.", _root_changes),
    _plot("behind, receiver crashes", "The receiver crashes during a transfer.", _receiver_crashes),
    _plot("behind, pieces lost", "Pieces are lost, duplicated and reordered.", _pieces_are_lost),
    Plot(
        "behind, overtaken",
        "A snapshot that is older than the log by the time it arrives replaces nothing.",
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

"""Cases in which the disk of one broker fails while it runs: it harms that broker, never the cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from .cluster import Cluster
from .disks import SmallDisk, StallingDisk
from .process import ClusterBroker
from .scene import Case, Scene

NAMES = ("n1", "n2", "n3")
SMALL_DISK_BYTES = 64 * 1024 * 1024
SMALL_LOG = {
    "segment_bytes": "1MiB",
    "snapshot_bytes": "4MiB",
    "free_bytes_min": "4MiB",
    "reserve_bytes": "2MiB",
}


class DiskCluster(Cluster):
    """Each broker has a disk of its own."""

    def __init__(self, directory: Path, disks: Mapping[str, SmallDisk | StallingDisk]) -> None:
        super().__init__(directory, size=len(disks), sections={"log": SMALL_LOG})
        self.disks = disks
        for broker in self:
            broker.data = directory / "disks" / broker.name / "data"


@contextlib.contextmanager
def small_disks(directory: Path) -> Iterator[DiskCluster]:
    disks = {name: SmallDisk(directory / "disks" / name, SMALL_DISK_BYTES) for name in NAMES}
    with _mounted(directory, disks) as cluster:
        yield cluster


@contextlib.contextmanager
def stalling_disks(directory: Path) -> Iterator[DiskCluster]:
    with _mounted(directory, {name: StallingDisk(directory / "disks" / name) for name in NAMES}) as cluster:
        yield cluster


@contextlib.contextmanager
def _mounted(directory: Path, disks: Mapping[str, SmallDisk | StallingDisk]) -> Iterator[DiskCluster]:
    with contextlib.ExitStack() as stack:
        for disk in disks.values():
            stack.callback(disk.unmount)
            disk.mount()
        cluster = DiskCluster(directory, disks)
        try:
            cluster.start()
            yield cluster
            cluster.check()
        finally:
            # A process that waits for a frozen disk ends only after that.
            for disk in disks.values():
                if isinstance(disk, StallingDisk):
                    disk.thaw()
            cluster.end()


def full_disk_of_a_backup(scene: Scene) -> None:
    backup = scene.chance.choice(scene.cluster.backups)
    _fill(scene, backup)


def full_disk_of_the_root(scene: Scene) -> None:
    _fill(scene, scene.cluster.root)


def _fill(scene: Scene, broker: ClusterBroker) -> None:
    disk = _disk(scene, broker)
    assert isinstance(disk, SmallDisk)
    disk.fill()
    try:
        scene.load.wait_for_progress(200)
    finally:
        disk.empty()
    scene.note(f"{broker.name} {'held out' if broker.alive else 'ended'}")
    if not broker.alive:
        broker.start()
    scene.cluster.wait_until_whole()


def stalled_disk_of_the_root(scene: Scene) -> None:
    """Its network works, so only the stall shows: it steps down."""
    root = scene.cluster.root
    disk = _disk(scene, root)
    assert isinstance(disk, StallingDisk)
    disk.freeze()
    try:
        scene.cluster.wait_for_root(other_than=root)
        scene.load.wait_for_progress()
    finally:
        disk.thaw()
    scene.cluster.wait_until_whole()


def stalled_disk_of_a_backup(scene: Scene) -> None:
    """No broker waits for it."""
    root, backup = scene.cluster.root, scene.chance.choice(scene.cluster.backups)
    disk = _disk(scene, backup)
    assert isinstance(disk, StallingDisk)
    disk.freeze()
    try:
        scene.load.wait_for_progress(100)
    finally:
        disk.thaw()
    scene.cluster.wait_until_whole()
    assert scene.cluster.root is root


def _disk(scene: Scene, broker: ClusterBroker) -> SmallDisk | StallingDisk:
    assert isinstance(scene.cluster, DiskCluster)
    return scene.cluster.disks[broker.name]


SMALL_DISK_CASES: list[Case] = [full_disk_of_a_backup, full_disk_of_the_root]
STALLING_DISK_CASES: list[Case] = [stalled_disk_of_the_root, stalled_disk_of_a_backup]

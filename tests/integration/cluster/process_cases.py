"""Cases that end, freeze and restart brokers, and change what is on their disks while they are down."""

from __future__ import annotations

from .disks import corrupt, wipe
from .scene import Case, Scene


def kill_root(scene: Scene) -> None:
    """One takes over, by itself; the old root restarts as a backup, whatever it had written."""
    cluster = scene.cluster
    root = cluster.root
    root.kill()
    cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    root.start()
    cluster.wait_for_role(root.name, "backup")
    cluster.wait_until_whole()


def kill_backup(scene: Scene) -> None:
    """Clients do not notice."""
    root, backup = scene.cluster.root, scene.chance.choice(scene.cluster.backups)
    backup.kill()
    scene.load.wait_for_progress()
    backup.start()
    scene.cluster.wait_until_whole()
    assert scene.cluster.root is root


def freeze_root(scene: Scene) -> None:
    """It continues in another root's term, before which no request that it received meanwhile may count."""
    cluster = scene.cluster
    root = cluster.root
    root.freeze()
    try:
        cluster.wait_for_root(other_than=root)
        scene.load.wait_for_progress()
    finally:
        root.thaw()
    cluster.wait_for_role(root.name, "backup")
    cluster.wait_until_whole()


def freeze_backup(scene: Scene) -> None:
    """It falls behind and catches up; the root stays."""
    root, backup = scene.cluster.root, scene.chance.choice(scene.cluster.backups)
    backup.freeze()
    try:
        scene.load.wait_for_progress(100)
    finally:
        backup.thaw()
    scene.cluster.wait_until_whole()
    assert scene.cluster.root is root


def rolling_restart(scene: Scene) -> None:
    """Each is asked to end and started again, the root among them."""
    for broker in scene.chance.sample(list(scene.cluster), len(scene.cluster.brokers)):
        broker.stop()
        scene.load.wait_for_progress()
        broker.start()
        scene.cluster.wait_until_whole()


def power_loss(scene: Scene) -> None:
    """All brokers at once."""
    for broker in scene.cluster:
        broker.kill()
    for broker in scene.chance.sample(list(scene.cluster), len(scene.cluster.brokers)):
        broker.launch()
    scene.cluster.wait_until_whole()


def old_root_with_one_other(scene: Scene) -> None:
    """The old root was down while the others continued; then all fail, and it starts first, with one of them."""
    cluster = scene.cluster
    root = cluster.root
    root.kill()
    heir = cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    other = next(broker for broker in cluster if broker not in (root, heir))
    heir.kill()
    other.kill()
    root.start()
    assert not root.serves, "one of three is not enough"
    other.start()
    # The messages confirmed meanwhile are on the other's disk, or on those of the last root and the other: only the
    # other may be root.
    assert cluster.wait_for_root() is other
    scene.load.wait_for_progress()
    heir.start()
    cluster.wait_until_whole()


def kill_one_after_the_other(scene: Scene) -> None:
    """Each root as soon as it serves; the last one is back before the next one is killed."""
    cluster = scene.cluster
    for _ in range(3):
        root = cluster.root
        root.kill()
        cluster.wait_for_root(other_than=root)
        root.start()
        cluster.wait_until_whole()


def wipe_backup(scene: Scene) -> None:
    """It starts as a learner, receives everything, and is then a full backup: the root is killed to show it."""
    cluster = scene.cluster
    backup = scene.chance.choice(cluster.backups)
    backup.kill()
    wipe(backup.data)
    mark = backup.mark()
    backup.start()
    # Until then the root may not have noticed the loss.
    backup.wait_for_line("learner", mark)
    cluster.wait_until_whole()
    kill_root(scene)


def corrupt_backup(scene: Scene) -> None:
    """It logs the damage, and is repaired from its peers."""
    cluster = scene.cluster
    backup = scene.chance.choice(cluster.backups)
    backup.kill()
    scene.note(corrupt(backup.data, scene.chance))
    backup.start()
    cluster.wait_until_whole()
    kill_root(scene)


PROCESS_CASES: list[Case] = [
    kill_root,
    kill_backup,
    freeze_root,
    freeze_backup,
    rolling_restart,
    power_loss,
    old_root_with_one_other,
    kill_one_after_the_other,
    wipe_backup,
    corrupt_backup,
]

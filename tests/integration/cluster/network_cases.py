"""Cases that cut, delay and bound the links between brokers. They need a network of their own."""

from __future__ import annotations

import time

import pika
from pika.exceptions import ConnectionClosedByBroker

from .cluster import PATIENCE_S
from .network import CLIENTS, Network
from .process import ClusterBroker
from .process_cases import kill_root
from .scene import Case, Scene

SILENCE_S = 3.0
"""Far longer than a lease."""


def cut_root(scene: Scene) -> None:
    """Cut off from its peers, while its clients still reach it: it steps down and closes their connections."""
    network, root = network_of(scene), scene.cluster.root
    client = pika.BlockingConnection(root.parameters(heartbeat=0))
    network.cut_off(root.name, *others(scene, root))
    scene.cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    assert not root.serves
    assert "no longer the root" in reason_of_close(client)
    network.heal()
    scene.cluster.wait_until_whole()


def isolate_root(scene: Scene) -> None:
    """Cut off from its peers and from its clients."""
    network, root = network_of(scene), scene.cluster.root
    network.cut_off(root.name, *others(scene, root), CLIENTS)
    wait_for_another(scene, root)
    scene.load.wait_for_progress()
    network.heal()
    scene.cluster.wait_until_whole()


def mute_root(scene: Scene) -> None:
    """One direction: its peers receive nothing from it, and it receives from all."""
    network, root = network_of(scene), scene.cluster.root
    for other in others(scene, root):
        network.cut(root.name, other)
    scene.cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    network.heal()
    scene.cluster.wait_until_whole()


def deafen_root(scene: Scene) -> None:
    """The other direction: its peers receive from it, and it receives nothing."""
    network, root = network_of(scene), scene.cluster.root
    for other in others(scene, root):
        network.cut(other, root.name)
    scene.cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    network.heal()
    scene.cluster.wait_until_whole()


def cut_one_pair(scene: Scene) -> None:
    """Root and one backup do not reach each other, the other backup reaches both: whichever is root then, work
    continues."""
    network, root = network_of(scene), scene.cluster.root
    network.cut_off(root.name, scene.chance.choice(others(scene, root)))
    time.sleep(SILENCE_S)
    scene.load.wait_for_progress()
    network.heal()
    scene.cluster.wait_until_whole()


def scatter(scene: Scene) -> None:
    """No broker reaches another: nothing is confirmed, no broker is root; after the repair all continue by
    themselves."""
    network, cluster = network_of(scene), scene.cluster
    names = list(cluster.brokers)
    for place, name in enumerate(names):
        network.cut_off(name, *names[place + 1 :])
    time.sleep(SILENCE_S)
    before = scene.load.confirmed()
    time.sleep(SILENCE_S / 2)
    assert scene.load.confirmed() == before, "confirmed without a quorum"
    assert not any(broker.serves for broker in cluster)
    network.heal()
    cluster.wait_until_whole()


def slow_and_lossy(scene: Scene) -> None:
    """Work continues over bad links, and so does a takeover."""
    network, cluster = network_of(scene), scene.cluster
    ways = {network.slow(name, delay_ms=20, rate="8mbit") for name in cluster.brokers}
    scene.note(f"slowed by {', '.join(sorted(ways))}")
    network.lose(percent=3)
    scene.load.wait_for_progress()
    root = cluster.root
    root.kill()
    cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    network.heal()
    root.start()
    cluster.wait_until_whole()


def flapping_link(scene: Scene) -> None:
    """The root is cut off for moments, some shorter than its lease and some longer."""
    network, cluster = network_of(scene), scene.cluster
    for _ in range(4):
        root = cluster.root
        network.cut_off(root.name, *others(scene, root))
        time.sleep(scene.chance.uniform(0.1, 2.0))
        network.heal()
        time.sleep(scene.chance.uniform(0.1, 1.0))
    cluster.wait_until_whole()
    kill_root(scene)


def reason_of_close(client: pika.BlockingConnection) -> str:
    """Returns the reply text with which its connection is closed."""
    deadline = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            client.process_data_events(time_limit=1)
    except ConnectionClosedByBroker as closed:
        return closed.reply_text
    raise AssertionError("a client of the old root was told nothing")


def network_of(scene: Scene) -> Network:
    assert scene.cluster.network is not None
    return scene.cluster.network


def others(scene: Scene, broker: ClusterBroker) -> list[str]:
    return [name for name in scene.cluster.brokers if name != broker.name]


def wait_for_another(scene: Scene, root: ClusterBroker) -> None:
    """Waits without a request to the broker that cannot answer: each request would take seconds."""
    root.unreachable = True
    try:
        scene.cluster.wait_for_root(other_than=root)
    finally:
        root.unreachable = False


NETWORK_CASES: list[Case] = [
    cut_root,
    isolate_root,
    mute_root,
    deafen_root,
    cut_one_pair,
    scatter,
    slow_and_lossy,
    flapping_link,
]

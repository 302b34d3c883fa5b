"""Cases that cut, bend and clog the links between brokers. They need a network of their own."""

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
    """From its peers, while its clients still reach it: it resigns and tells them."""
    network, root = network_of(scene), scene.cluster.root
    client = pika.BlockingConnection(root.parameters(heartbeat=0))
    network.cut_off(root.name, *others(scene, root))
    scene.cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    assert not root.serves
    assert "no longer the root" in farewell(client)
    network.heal()
    scene.cluster.wait_until_whole()


def isolate_root(scene: Scene) -> None:
    """From its peers and from its clients."""
    network, root = network_of(scene), scene.cluster.root
    network.cut_off(root.name, *others(scene, root), CLIENTS)
    wait_for_another(scene, root)
    scene.load.wait_for_progress()
    network.heal()
    scene.cluster.wait_until_whole()


def mute_root(scene: Scene) -> None:
    """One way: nobody hears it, and it hears everybody."""
    network, root = network_of(scene), scene.cluster.root
    for other in others(scene, root):
        network.cut(root.name, other)
    scene.cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    network.heal()
    scene.cluster.wait_until_whole()


def deafen_root(scene: Scene) -> None:
    """The other way: everybody hears it, and it hears nobody."""
    network, root = network_of(scene), scene.cluster.root
    for other in others(scene, root):
        network.cut(other, root.name)
    scene.cluster.wait_for_root(other_than=root)
    scene.load.wait_for_progress()
    network.heal()
    scene.cluster.wait_until_whole()


def cut_one_pair(scene: Scene) -> None:
    """Root and one backup do not see each other, the other backup sees both: whoever is root then, work goes on."""
    network, root = network_of(scene), scene.cluster.root
    network.cut_off(root.name, scene.chance.choice(others(scene, root)))
    time.sleep(SILENCE_S)
    scene.load.wait_for_progress()
    network.heal()
    scene.cluster.wait_until_whole()


def scatter(scene: Scene) -> None:
    """Nobody reaches anybody: nothing is confirmed, nobody is root; healed, all goes on by itself."""
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
    """Work goes on over bad links, and so does a takeover."""
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


def farewell(client: pika.BlockingConnection) -> str:
    """What it is told as its connection is closed."""
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
    """Without asking the one that cannot answer: each question would take seconds."""
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

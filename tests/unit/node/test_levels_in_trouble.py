"""Messages of both modes while one broker after the other loses its power, and comes back before the next does."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.replica.roles.transitions import Role
from tests.unit.node.cluster_world import Connection, Loss
from tests.unit.node.takeover import Cluster


class Publisher:
    """Publishes without waiting, and keeps account of confirms."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.confirmed: list[bytes] = []
        self.sent: list[bytes] = []
        self._unanswered: dict[int, bytes] = {}
        self._published = 0

    def publish(self, mode: int) -> None:
        body = b"%d" % len(self.sent)
        self.sent.append(body)
        self._published += 1
        self._unanswered[self._published] = body
        self.cluster.channel.publish(body, routing_key="q", delivery_mode=mode)

    def listen(self) -> None:
        """Takes what was said so far."""
        channel = self.cluster.channel
        connection: Connection = channel.connection
        while connection.socket.written:  # type: ignore[attr-defined]
            answer = channel.receive()
            assert answer.name == "basic.ack", answer
            first = 0 if answer.multiple else answer.delivery_tag
            for number in [number for number in self._unanswered if first <= number <= answer.delivery_tag]:
                self.confirmed.append(self._unanswered.pop(number))

    def begin_again(self) -> None:
        """On another root, whose channel numbers from 1."""
        self._published = 0
        self._unanswered.clear()


def lose_one(cluster: Cluster, random: Random) -> None:
    world = cluster.world
    old = cluster.root
    lost = random.choice((old, old, random.choice(cluster.backups)))
    world.kill(lost, random.choice((Loss.ALL, Loss.SOME, Loss.NONE)))
    if lost == old:
        cluster.channel = cluster.join()
    world.run(random.randrange(300))
    world.start(lost)
    world.run(500)
    world.until(lambda: world.role(lost) is Role.BACKUP and is_whole(cluster))


def is_whole(cluster: Cluster) -> bool:
    """All disks have all of the log."""
    view = cluster.world.node(cluster.root).peers.replica.view()
    behind = [peer for peer in view.peers if not peer.in_sync or peer.synced_index < view.last_index]
    return not behind and len(view.peers) == len(cluster.world.machines) - 1


@pytest.mark.proves("R22")
@pytest.mark.parametrize("seed", range(8))
def test_confirmed_messages_survive_one_loss_after_the_other(seed: int) -> None:
    random = Random(seed)
    cluster = Cluster(seed)
    cluster.declare()
    publisher = Publisher(cluster)
    for _ in range(4):
        for _ in range(random.randrange(5, 30)):
            if random.random() < 0.2:
                machine = random.choice(list(cluster.world.machines.values()))
                # Not for so long that a root gives up its office.
                machine.disk.hurry(cluster.world.now_ms)
                machine.disk.stall(cluster.world.now_ms, random.randrange(200))
            publisher.publish(random.choice((1, 1, 2)))
            cluster.world.run(random.randrange(8))
            publisher.listen()
        root = cluster.root
        # The last one is hardly heard of when it happens.
        cluster.world.sending_ms = 0
        publisher.publish(1)
        cluster.world.run(random.randrange(4))
        cluster.world.sending_ms = 2
        publisher.listen()
        lose_one(cluster, random)
        if cluster.root != root:
            publisher.begin_again()
    cluster.channel = cluster.join()
    got = cluster.drain()
    assert set(publisher.confirmed) <= set(got) <= set(publisher.sent)
    # In order, and none twice.
    assert got == sorted(set(got), key=int)

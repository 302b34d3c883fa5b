"""A node over a simulated disk: what was confirmed comes back, whatever is lost at a crash."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.journal.effects import SyncFile
from pandomq.journal.faults import StoreFault
from pandomq.methods import QueueDeclare
from pandomq.sim.disk import SimDisk
from pandomq.sim.files import Loss
from tests.unit.node.lives import SMALL, Life, Publisher


def bodies(life: Life, queue: str = "q") -> list[bytes]:
    return [row[5].body for row in life.broker.state.vhosts["/"].queues[queue].kernel.snapshot()]


@pytest.mark.parametrize("seed", range(12))
def test_what_was_confirmed_survives_a_crash(seed: int) -> None:
    random = Random(seed)
    disk = SimDisk(random)
    now_ms = 1_700_000_000_000
    expected: list[bytes] = []
    for round_number in range(4):
        life = Life(disk, now_ms)
        if round_number:
            came_back = bodies(life)
            assert came_back[: len(expected)] == expected
            expected = came_back
        publisher = Publisher(life)
        publisher.say(QueueDeclare("q", durable=True))
        life.until(lambda life=life: "q" in life.broker.state.vhosts["/"].queues and not len(life.broker.held))
        sent: list[bytes] = []
        for number in range(random.randrange(300)):
            sent.append(b"%d/%d" % (round_number, number) + bytes(random.randrange(2000)))
            publisher.publish("q", sent[-1])
            if random.random() < 0.3:
                life.turn()
        for _ in range(random.randrange(20)):
            life.turn()
        expected += sent[: publisher.confirmed]
        now_ms = life.now_ms
        disk.crash(random.choice(list(Loss)))


def test_a_broker_that_stopped_in_order_knows_what_was_delivered() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, 1_700_000_000_000)
    publisher = Publisher(life)
    publisher.say(QueueDeclare("q", durable=True))
    for number in range(3):
        publisher.publish("q", b"%d" % number)
    life.until(lambda: publisher.confirmed == 3)
    life.node._links.of_client.clear()
    life.broker.disconnect(publisher.client, life.now_ms)
    life.turn()
    life.stop()
    disk.crash(Loss.ALL)
    life = Life(disk, life.now_ms)
    rows = life.broker.state.vhosts["/"].queues["q"].kernel.snapshot()
    assert [(row[0], row[4], row[5].body) for row in rows] == [(1, False, b"0"), (2, False, b"1"), (3, False, b"2")]
    # The next end is a crash: whoever was served meanwhile may be served again.
    disk.crash(Loss.ALL)
    life = Life(disk, life.now_ms)
    rows = life.broker.state.vhosts["/"].queues["q"].kernel.snapshot()
    assert [row[4] for row in rows] == [True, True, True]


def test_churn_does_not_grow_the_disk() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, 1_700_000_000_000)
    publisher = Publisher(life)
    publisher.say(QueueDeclare("q", durable=True, arguments={"x-max-length": 10}))
    sizes = []
    for _ in range(20):
        for _ in range(100):
            publisher.publish("q", bytes(1000))
            life.turn()
        life.until(lambda: not publisher.client.channels[1].kernel.unconfirmed_count)
        for _ in range(500):
            life.turn()
        sizes.append(sum(disk.sizes().values()))
    assert max(sizes[10:]) <= 10 * SMALL.segment_bytes + 1.2 * max(sizes[5:10])
    assert max(sizes) < 1_000_000, "two megabytes went through"


def test_a_failed_sync_ends_it() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, 1_700_000_000_000)
    publisher = Publisher(life)
    publisher.say(QueueDeclare("q", durable=True))
    life.until(lambda: not len(life.broker.held))
    disk.fail_next(SyncFile, 5)
    publisher.publish("q", b"x")
    with pytest.raises(StoreFault, match="cannot sync"):
        life.until(lambda: False, turns=100)
    assert publisher.confirmed == 0

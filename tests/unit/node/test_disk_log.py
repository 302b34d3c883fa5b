"""A node over a simulated disk: what was confirmed comes back, whatever is lost at a crash."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.broker.log.snapshot import Snapshot
from pandomq.journal.effects import Completion, SyncFile
from pandomq.journal.faults import StoreFault
from pandomq.journal.journal import Journal
from pandomq.methods import BasicConsume, QueueDeclare
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss
from tests.unit.node.lives import SMALL, Life, Publisher


def bodies(life: Life, queue: str = "q") -> list[bytes]:
    return [row[5].body for row in life.broker.state.vhosts["/"].queues[queue].kernel.snapshot()]


@pytest.mark.parametrize("seed", range(12))
def test_confirmed_messages_survive_a_crash(seed: int) -> None:
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


def test_a_broker_that_stopped_in_order_knows_which_messages_were_delivered() -> None:
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


def delivered_after_a_snapshot() -> list[bool]:
    """The broker takes a snapshot while it runs, delivers messages, and is killed before its log has another entry.
    Returns the `redelivered` flags of these messages at the next start."""
    disk = SimDisk(Random(1))
    life = Life(disk, 1_700_000_000_000)
    publisher = Publisher(life)
    publisher.say(QueueDeclare("q", durable=True))
    count = 0
    while not life.node._disk.snapshots.last_index:  # type: ignore[union-attr]
        publisher.publish("q", bytes(8_000))
        count += 1
        life.until(lambda count=count: publisher.confirmed == count)
        for _ in range(20):
            life.turn()
    publisher.say(BasicConsume("q", ""))
    assert life.broker.state.vhosts["/"].queues["q"].kernel.unacked_count
    disk.crash(Loss.NONE)
    rows = Life(disk, life.now_ms).broker.state.vhosts["/"].queues["q"].kernel.snapshot()
    assert len(rows) == count
    return [row[4] for row in rows]


def test_messages_that_were_delivered_after_a_snapshot_are_marked_as_redelivered() -> None:
    assert all(delivered_after_a_snapshot())


def test_a_snapshot_that_claims_that_nothing_is_delivered_after_it_is_a_bug_that_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Simulated worlds hardly ever kill a broker whose log has no entry after the last snapshot."""
    make = Snapshot.__init__
    monkeypatch.setattr(Snapshot, "__init__", lambda snapshot, broker, *, exact: make(snapshot, broker, exact=True))
    assert not any(delivered_after_a_snapshot())


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


def test_a_failed_sync_ends_it_also_behind_an_unexpected_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the next node in the process would take what was not synced for durable."""
    disk = SimDisk(Random(1))
    life = Life(disk, 1_700_000_000_000)
    publisher = Publisher(life)
    publisher.say(QueueDeclare("q", durable=True))
    life.until(lambda: not len(life.broker.held))
    completed = Journal.completed
    raised: list[Completion] = []

    def fail_once(journal: Journal, completion: Completion) -> None:
        if not raised:
            raised.append(completion)
            raise RuntimeError
        completed(journal, completion)

    publisher.publish("q", b"x")
    disk.submit(list(life.node.step(life.now_ms).disk), life.now_ms)
    disk.fail_next(SyncFile, 5)
    found: list[Completion] = []
    while not any(completion.error for completion in found):
        life.now_ms += 1
        found += disk.take_completions(life.now_ms)
    monkeypatch.setattr(Journal, "completed", fail_once)
    with pytest.raises(StoreFault, match="cannot sync"):
        life.node.disk_completed(found, life.now_ms)
    assert raised and not raised[0].error

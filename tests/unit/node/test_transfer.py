"""A backup that was away for long gets a snapshot, and of the messages in it those that it does not have (R18)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pandomq.chunk_form import decode_rows
from pandomq.ids import LogIndex
from pandomq.replica.roles.transitions import Role
from tests.unit.node.cluster_world import ClusterWorld, Loss
from tests.unit.node.test_cluster import agree, publisher

BODY = 2_000
STREAM = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 50_000}
KEPT = 400


def publish(channel: Any, queue: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        body = b"%d " % number + bytes([number % 251]) * BODY
        channel.publish_confirmed(body, routing_key=queue, delivery_mode=2)


class Story:
    """One backup goes, and so much happens that the log it would need is not kept."""

    def __init__(self, *, new: int = 0, wiped: bool = False, stream: bool = False) -> None:
        self.world = world = ClusterWorld(paging_bytes=100_000)
        self.channel = publisher(world, world.elect())
        self.channel.rpc("queue.declare", queue="churn", durable=True)
        queue = "s" if stream else "q"
        self.channel.rpc("queue.declare", queue="s", durable=True, arguments=STREAM)
        publish(self.channel, queue, 0, KEPT)
        self.away = next(name for name in world.machines if name != world.root)
        world.run(1_000)
        world.kill(self.away)
        world.found(False)
        if wiped:
            world.machines[self.away].wipe()
        publish(self.channel, queue, KEPT, new)
        self.churn()
        others = [name for name in world.machines if name != self.away]
        for name in others:
            world.kill(name)
        for name in others:
            world.start(name)
        self.root = world.elect()
        disk = world.node(self.root)._disk
        assert disk is not None
        self.state_bytes = disk._state_bytes
        self.log_bytes = disk.journal.bytes_after(LogIndex(disk.snapshots.last_index))
        """The log after the snapshot, which is sent in any case."""

    def churn(self) -> None:
        for round_ in range(KEPT // 2 + 400):
            publish(self.channel, "churn", round_, 1)
            self.channel.get("churn")

    def come_back(self) -> int:
        """How much it is sent until it is a backup again."""
        self.world.carried_bytes.clear()
        self.world.start(self.away)
        self.finish()
        return self.world.carried_bytes[self.away]

    def finish(self) -> None:
        away, world = self.away, self.world
        world.until(lambda: bool(world.machines[away].restarts) and world.role(away) is Role.BACKUP and agree(world))
        assert "the store is replaced by a snapshot" in world.machines[away].restarts[-1]


def check(story: Story, count: int) -> None:
    """It serves what it had and what it got."""
    world = story.world
    for name in world.machines:
        if name != story.away:
            world.kill(name)
    other = next(name for name in world.machines if name not in (story.away, story.root))
    world.start(other)
    channel = world.client(world.elect()).channel()
    got = channel.drain("q")
    assert [int(body.split(b" ")[0]) for body in got] == list(range(count))
    assert all(len(body.split(b" ", 1)[1]) == BODY for body in got)


def chunks_of(story: Story, name: str) -> list[bytes]:
    """Of the stream, as this broker has it."""
    stream = story.world.node(name).broker.streams.find("/", "s")
    assert stream is not None
    found: dict[int, bytes | None] = {}
    rows = stream.chunks(0, 2**62, 10**6)
    for row in rows:
        stream.read(row.first_offset, partial(found.__setitem__, row.first_offset))
    story.world.until(lambda: len(found) == len(rows))
    return [found[row.first_offset] or b"" for row in rows]


@pytest.mark.proves("R18", "R26")
def test_a_backup_gets_the_chunks_of_a_stream_that_it_lacks() -> None:
    story = Story(stream=True, new=50)
    sent_bytes = story.come_back()
    assert story.state_bytes > KEPT * BODY
    assert sent_bytes < story.state_bytes / 2
    chunks = chunks_of(story, story.away)
    assert len(chunks) > 10
    assert chunks == chunks_of(story, story.root)
    bodies = [row.body for chunk in chunks for row in decode_rows(chunk)]
    assert [int(body.split(b" ")[0]) for body in bodies] == list(range(KEPT + 50))


@pytest.mark.proves("R18", "L1a", "L7")
def test_messages_that_a_backup_has_are_not_sent_again() -> None:
    story = Story()
    sent_bytes = story.come_back()
    assert story.state_bytes > KEPT * BODY
    assert sent_bytes - story.log_bytes < story.state_bytes / 6
    check(story, KEPT)


def test_messages_that_a_backup_lacks_are_sent() -> None:
    story = Story(new=200)
    sent_bytes = story.come_back()
    assert 200 * BODY < sent_bytes < story.state_bytes - KEPT * BODY / 2
    check(story, KEPT + 200)


@pytest.mark.proves("R18")
def test_a_backup_that_lost_its_store_gets_all_messages() -> None:
    story = Story(wiped=True)
    sent_bytes = story.come_back()
    assert sent_bytes > story.state_bytes
    check(story, KEPT)


@pytest.mark.parametrize("loss", [Loss.NONE, Loss.ALL])
def test_a_backup_may_crash_during_a_transfer(loss: Loss) -> None:
    story = Story(new=50)
    world, away = story.world, story.away
    for moment_ms in (20, 60, 100, 200):
        world.start(away)
        world.run(moment_ms)
        world.kill(away, loss)
    story.come_back()
    check(story, KEPT + 50)


def test_the_root_may_change_during_a_transfer() -> None:
    story = Story(new=50)
    world, away = story.world, story.away
    world.start(away)
    world.run(60)
    world.kill(story.root)
    world.start(story.root)
    story.finish()
    check(story, KEPT + 50)


@pytest.mark.proves("R18")
def test_the_cluster_serves_clients_during_a_transfer() -> None:
    story = Story(new=50)
    world = story.world
    channel = publisher(world, story.root)
    world.start(story.away)
    publish(channel, "q", KEPT + 50, 100)
    story.finish()
    check(story, KEPT + 150)

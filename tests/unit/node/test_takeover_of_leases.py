"""Leases of three nodes with real logs: roots die at any moment, lose what they had not synced, and come back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from pandomq.broker.leases.asks import LeaseAsk, LeaseEnds
from pandomq.broker.leases.lease import LeaseView
from pandomq.broker.leases.leases import Leases, OnLease
from pandomq.chunk_form import decode_rows
from pandomq.errors import Fault
from tests.unit.node.cluster_world import ClusterWorld, Loss
from tests.unit.node.test_cluster import publisher
from tests.unit.node.test_secondaries import forget_tail, join, source_of

MESSAGES = 100
TIMEOUT_MS = 600_000
ANSWER_MS_MAX = 3_000


class Worker:
    """Asks whoever is root, and asks again if it is not answered, as a client of the data port does."""

    def __init__(self, world: ClusterWorld) -> None:
        self.world = world

    def ask(self, call: Callable[[Leases, OnLease, int], None]) -> LeaseView | None:
        """None if nobody answers, or there is no such lease (any more)."""
        world = self.world
        answers: list[LeaseView] = []
        for _ in range(20):
            root = world.elect()
            node = world.node(root)
            try:
                call(node.broker.leases, answers.append, world.now_ms)
            except LeaseEnds:
                world.run(50)
                continue
            except Fault:
                return None
            for _ in range(ANSWER_MS_MAX):
                if answers or world.machines[root].node is not node:
                    break
                world.run(1)
            if answers:
                return answers[0]
        raise AssertionError("nobody answers")

    def lease(self, messages_max: int) -> LeaseView:
        ask = LeaseAsk("/", "q", "job", "guest", messages_max, 10**6, TIMEOUT_MS)
        view = self.ask(lambda leases, on_lease, now_ms: leases.lease(ask, on_lease, now_ms))
        assert view is not None
        return view

    def release(self, offset: int) -> None:
        self.ask(lambda leases, on_lease, now_ms: leases.release("/", "q", "job", offset, on_lease, now_ms))

    def end(self) -> None:
        self.ask(lambda leases, on_lease, now_ms: leases.end("/", "q", "job", on_lease, now_ms))

    def numbers(self, name: str, view: LeaseView) -> list[int] | None:
        """Returns the broker's messages at these offsets; None if it does not have all of them yet."""
        stream = self.world.node(name).broker.streams.find("/", view.stream)
        found: dict[int, int] = {}
        offset = view.first_offset
        while offset < view.end_offset:
            if stream is None or stream.committed_end < view.end_offset:
                return None
            chunks: list[bytes | None] = []
            stream.read(offset, chunks.append)
            for _ in range(100):
                if not chunks:
                    self.world.run(1)
            if not chunks or chunks[0] is None:
                return None
            found.update({row.offset: int(row.body) for row in decode_rows(chunks[0])})
            offset = max(found) + 1
        return [found[offset] for offset in range(view.first_offset, view.end_offset)]


def revive(world: ClusterWorld) -> None:
    for name, machine in world.machines.items():
        if machine.node is None:
            world.start(name)


def kill_soon(world: ClusterWorld, random: Random) -> None:
    """The root, or another one; whoever was killed before lives again."""
    revive(world)
    if random.random() < 0.35:
        root = world.elect()
        victim = root if random.random() < 0.7 else random.choice([name for name in world.machines if name != root])
        world.run(random.randint(0, 6))
        world.kill(victim, random.choice((Loss.NONE, Loss.SOME, Loss.ALL)))


@pytest.mark.proves("S1")
@pytest.mark.parametrize("seed", range(4))
def test_every_message_is_released_once_or_comes_back(seed: int) -> None:
    world, random = ClusterWorld(seed=seed), Random(seed)
    channel = publisher(world, world.elect())
    for number in range(MESSAGES):
        channel.publish_confirmed(b"%d" % number, routing_key="q", delivery_mode=2)
    worker, released = Worker(world), 0
    base = worker.lease(5).first_offset
    while released < MESSAGES - 40:
        kill_soon(world, random)
        view = worker.lease(random.randint(5, 25))
        assert view.first_offset == base + released, "what was released stays so, and nothing else is"
        expected = list(range(released, view.end_offset - base))
        for name in [name for name, machine in world.machines.items() if machine.node is not None]:
            assert worker.numbers(name, view) in (expected, None)
        assert worker.numbers(world.elect(), view) == expected
        kill_soon(world, random)
        offset = random.randint(view.first_offset, view.end_offset)
        worker.release(offset)
        released = offset - base
    kill_soon(world, random)
    worker.lease(30)
    worker.end()
    revive(world)
    world.run(random.randint(0, 8))
    world.kill(world.elect(), Loss.SOME)
    root = world.elect()
    world.until(lambda: not len(world.node(root).broker.state.leases))
    world.run(100)
    left = [int(body) for body in world.client(root).channel().drain("q")]
    assert left == list(range(released, MESSAGES))


def test_a_secondary_that_joins_in_the_middle_of_a_lease_outlives_its_end() -> None:
    """It receives neither the declaration nor the deletion of the stream."""
    world = ClusterWorld()
    channel = publisher(world, world.elect())
    for number in range(10):
        channel.publish_confirmed(b"%d" % number, routing_key="q", delivery_mode=2)
    worker = Worker(world)
    worker.lease(5)
    # It is told what there is, and does not read the log from its beginning.
    for _ in range(20):
        channel.publish_confirmed(bytes(1_000), routing_key="q", delivery_mode=2)
    root = world.elect()
    source_of(world, root).log_bytes_max = 10_000
    forget_tail(world, root)
    join(world)
    assert not world.node("n4").broker.state.vhosts["/"].inner_queues
    lives = world.machines["n4"].lives
    worker.lease(8)
    worker.end()
    world.run(500)
    channel.rpc("queue.declare", queue="later", durable=True)
    world.run(500)
    secondary = world.node("n4").broker.state.vhosts["/"]
    assert "later" in secondary.queues and not secondary.inner_queues
    assert world.machines["n4"].lives == lives

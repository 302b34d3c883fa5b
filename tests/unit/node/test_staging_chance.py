"""Brokers die at any moment while batches are written to a stream, by attempts of which some fail, some are slow, and
some come back: each batch is there once, whole and in order. And planted bugs are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import TypeAlias

import pytest

from pandomq import kernel
from pandomq.broker.broker import Broker
from pandomq.broker.log.commands import DecideBatch, MessageCommand
from pandomq.broker.staging import expansion, staging
from pandomq.broker.staging.decisions import NONE, Decisions
from pandomq.broker.staging.frames import publishes_of
from pandomq.broker.staging.names import StagingAttempt
from pandomq.broker.staging.staging import Chosen
from pandomq.broker.vhost import Vhost
from pandomq.errors import Fault
from tests.unit.broker.staging_scene import frames
from tests.unit.node.cluster_world import ClusterWorld, Loss

QUERY, STREAM = "w", "s"
BATCHES = 4
PATIENCE_MS = 150
SEEDS = range(12)
PLANTED_SEEDS = range(8)
ROW = re.compile(rb"<row ([0-9a-z ]+)>")

Ask: TypeAlias = Callable[[Broker, Vhost, Callable[..., None]], None]


class Driver:
    """Stages and commits batches one after the other. It repeats requests without an answer in time, at the root."""

    def __init__(self, world: ClusterWorld, chance: Random) -> None:
        self._world = world
        self._chance = chance
        self._course = self._run()
        self.wanted: list[bytes] = []
        """The expected content of the stream at the end."""
        self.over = False

    def step(self) -> None:
        if next(self._course, "over") == "over":
            self.over = True

    def _run(self) -> Iterator[None]:
        for batch in range(BATCHES):
            chosen = []
            for partition in range(self._chance.randint(1, 3)):
                parts = self._chance.randint(1, 4)
                for number in range(self._chance.choice((0, 0, 1))):
                    # An attempt that is given up somewhere.
                    for part in range(self._chance.randint(1, parts)):
                        yield from self._stage(batch, partition, f"failed{number}", part)
                for part in range(parts):
                    yield from self._stage(batch, partition, "good", part)
                    self.wanted += rows_of(batch, partition, "good", part)
                chosen.append(Chosen(partition, "good", parts))
            for _ in range(self._chance.choice((1, 1, 2))):
                yield from self._ask(commit_of(batch, chosen))
                # One that believes it is still needed.
                yield from self._stage(batch, 0, "zombie", 0)

    def _stage(self, batch: int, partition: int, name: str, part: int) -> Iterator[None]:
        octets = frames(*(f"<row {row.decode()}>" for row in rows_of(batch, partition, name, part)), key=STREAM)
        attempt = StagingAttempt(batch, partition, name, QUERY)
        now_ms = self._world.now_ms

        def ask(broker: Broker, vhost: Vhost, answer: Callable[..., None]) -> None:
            broker.staging.stage(vhost, vhost.access["guest"], attempt, part, octets, answer, now_ms)

        yield from self._ask(ask)

    def _ask(self, ask: Ask) -> Iterator[None]:
        answered: list[bool] = []
        while True:
            root = self._world.root
            if root is not None:
                broker = self._world.node(root).broker
                ask(broker, broker.state.vhosts["/"], lambda *_: answered.append(True))
                for _ in range(PATIENCE_MS):
                    yield
                    if answered:
                        return
            yield


def unexpected(fault: Fault) -> None:
    raise AssertionError(fault)


def commit_of(batch: int, chosen: list[Chosen]) -> Ask:
    def ask(broker: Broker, vhost: Vhost, answer: Callable[..., None]) -> None:
        broker.staging.commit(vhost, vhost.access["guest"], QUERY, batch, chosen, answer, unexpected, broker.now_ms)

    return ask


def rows_of(batch: int, partition: int, attempt: str, part: int) -> list[bytes]:
    return [f"{batch} {partition} {attempt} {part} {row}".encode() for row in range(3)]


def found_in(world: ClusterWorld) -> list[bytes]:
    """All rows of the stream, as the root has them."""
    root = world.elect()
    stream = world.node(root).broker.streams.find("/", STREAM)
    assert stream is not None
    rows: list[bytes] = []
    for chunk in stream.chunks(0, stream.committed_end, 10_000):
        octets: list[bytes | None] = []
        stream.read(chunk.first_offset, octets.append)
        world.until(lambda octets=octets: bool(octets))  # type: ignore[misc]
        assert octets[0] is not None
        rows += ROW.findall(octets[0])
    return rows


def live(seed: int) -> None:
    chance = Random(seed)
    world = ClusterWorld(3, seed=seed, paging_bytes=(0, 4096)[seed % 2])
    channel = world.client(world.elect()).channel()
    channel.rpc("queue.declare", queue=STREAM, durable=True, arguments={"x-queue-type": "stream"})
    driver = Driver(world, chance)
    back_ms: dict[str, int] = {}
    for _ in range(20_000):
        world.run(1)
        driver.step()
        if driver.over:
            break
        for name in [name for name, at_ms in back_ms.items() if at_ms <= world.now_ms]:
            del back_ms[name]
            world.start(name)
        if not back_ms and chance.random() < 0.02:
            victim = world.root if chance.random() < 0.7 else chance.choice(list(world.machines))
            if victim is not None:
                world.kill(victim, chance.choice((Loss.NONE, Loss.ALL)))
                back_ms[victim] = world.now_ms + chance.randint(20, 400)
    assert driver.over, "it makes no progress"
    assert found_in(world) == driver.wanted


@pytest.mark.proves("S2", "R24")
@pytest.mark.parametrize("seed", SEEDS)
def test_each_batch_is_there_once_whole_and_in_order(seed: int) -> None:
    live(seed)


def not_logged(patch: pytest.MonkeyPatch) -> None:
    log = Broker.log

    def kept_to_itself(broker: Broker, command: MessageCommand) -> None:
        if isinstance(command, DecideBatch):
            broker.change(command)
        else:
            log(broker, command)

    patch.setattr(Broker, "log", kept_to_itself)


def never_decided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Decisions, "last_batch", lambda *_: NONE)


def a_part_late(patch: pytest.MonkeyPatch) -> None:
    held: list[kernel.PublishRun | None] = [None]

    def late(broker: Broker, octets: bytes) -> kernel.PublishRun | None:
        held.append(publishes_of(broker, octets))
        return held.pop(0)

    patch.setattr(expansion, "publishes_of", late)


def parts_again(patch: pytest.MonkeyPatch) -> None:
    count = staging._part_count
    patch.setattr(staging, "_part_count", lambda queue: 0 if count(queue) == 1 else count(queue))


@pytest.mark.parametrize("plant", [not_logged, never_decided, a_part_late, parts_again])
def test_planted_bugs_are_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in PLANTED_SEEDS:
        try:
            live(seed)
        except (AssertionError, KeyError, Fault):
            return
    pytest.fail("nobody has noticed")

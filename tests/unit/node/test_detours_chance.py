"""Links are cut at random between brokers that pass on for each other: never do two serve, and all ends well."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from pandomq.node.peers import dialing as peer_dialing
from tests.unit.node.link_world import LinkWorld

ROUNDS = 5
ROUND_MS = (1_500, 7_000)
"""Some of the cuts are too short to be noticed, others long enough for a detour."""
LOOK_MS = 10


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_dialing, "KNOCK_MS", 500)


def play(seed: int, count: int, rounds: int = ROUNDS) -> int:
    """How often something was passed on."""
    chance = Random(seed)
    world = LinkWorld(count)
    world.until(lambda: world.root is not None)
    pairs = [frozenset(pair) for pair in combinations(world.machines, 2)]
    detours = 0
    down: str | None = None
    for _ in range(rounds):
        world.clogged = set(chance.sample(pairs, chance.randrange(1, len(pairs))))
        if down is not None:
            world.start(down)
            down = None
        elif chance.random() < 0.3:
            down = chance.choice(list(world.machines))
            world.kill(down)
        for _ in range(chance.randint(*ROUND_MS) // LOOK_MS):
            world.run(LOOK_MS)
            alive = [machine.node for machine in world.machines.values() if machine.node is not None]
            serving = [node for node in alive if node.peers.serving]
            assert len(serving) <= 1
            detours += sum(len(node.peer_links.relays) for node in alive if node.peer_links is not None)
    world.clogged.clear()
    if down is not None:
        world.start(down)

    def is_well() -> bool:
        states = {link.state for machine in world.machines.values() for link in machine.links.values()}
        return states == {"linked"} and world.root is not None

    world.until(is_well, 30_000)
    assert not any(len(node.peer_links.relays) for name in world.machines if (node := world.node(name)).peer_links)
    return detours


@pytest.mark.proves("R29")
def test_one_root_serves_at_a_time_and_the_cluster_recovers() -> None:
    assert play(8, 3, rounds=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 23))
def test_one_root_serves_at_a_time_in_more_worlds(seed: int) -> None:
    play(seed, 3 + seed % 3)

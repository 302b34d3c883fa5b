"""Worlds in which any broker serves clients, through fronts: the promises do not depend on the client's broker."""

from __future__ import annotations

import pytest

from pandomq.sim.campaigns.campaign import quiet
from pandomq.sim.cluster.world import ClusterWorld
from tests.sim.chosen import chosen_seeds, chosen_worlds

pytestmark = pytest.mark.timeout(300)
"""The limit is for several worlds, on a machine that may be busy."""

NODES = chosen_worlds()["fronts"]["nodes"]


@pytest.mark.proves("R12", "R30")
@pytest.mark.parametrize("seed", chosen_seeds("fronts"))
def test_promises_hold_wherever_clients_are(seed: int) -> None:
    with quiet():
        world = ClusterWorld(seed, NODES)
        assert world.proxied
        outcome = world.run()
    assert not outcome.broken, f"pandomq sim --nodes {NODES} --seed {seed} --explain\n" + "\n".join(outcome.story)

"""Worlds in which any broker serves clients, in the root's name: what is promised does not depend on where they are."""

from __future__ import annotations

import pytest

from pandomq.sim.campaign import quiet
from pandomq.sim.cluster.world import ClusterWorld

WORLDS = ((4, 5), (17, 3), (28, 4), (54, 5), (77, 3), (275, 3), (432, 3), (1340, 3), (1388, 3))
"""In the first one stores are read for so long that a front that had no steps meanwhile, and was due all the time, kept
its broker from ever sleeping. In (77, 3) what a root had delivered, and took with it, was delivered again as new; in
(275, 3) a secondary was linked to a single primary, which knew nobody, and asked none of the others; in (432, 3) all
waited for a secondary to hear of what secondaries are not told; in (1340, 3) a new root did not wait for its own front;
(1388, 3) has leases where roots die and acks are told again."""


@pytest.mark.proves("R12", "R30")
@pytest.mark.parametrize(("seed", "nodes"), WORLDS)
def test_promises_hold_wherever_clients_are(seed: int, nodes: int) -> None:
    with quiet():
        world = ClusterWorld(seed, nodes)
        assert world.proxied
        outcome = world.run()
    assert not outcome.broken, "\n".join(outcome.story)

"""How often brokers dial members that are down: seldom while there is a root, and often while there is none."""

from __future__ import annotations

import pytest

from pandomq.cluster.dialed_connection import Dialed
from pandomq.cluster.limits import REDIAL_MS_MAX, ROOTLESS_REDIAL_MS
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.peers.dial_target import DialedPeer
from tests.unit.node.link_world import CLUSTER, KEY, LinkWorld, Machine

LONG_MS = 5_000
"""Longer than it takes until attempts are as rare as they become."""
LONGEST_WAIT_MS = ROOTLESS_REDIAL_MS * 3 // 2
"""Chance adds up to a half."""


class DialedWorld(LinkWorld):
    """Records who dials whom."""

    def __init__(self, count: int) -> None:
        self.dials: list[tuple[str, str]] = []
        super().__init__(count)

    def dial(self, machine: Machine, dialed: Dialed) -> None:
        if isinstance(dialed, DialedPeer):
            self.dials.append((machine.name, dialed.name))
        super().dial(machine, dialed)

    def dials_within(self, dialing: str, dialed: str, elapsed_ms: int) -> int:
        before = self.dials.count((dialing, dialed))
        self.run(elapsed_ms)
        return self.dials.count((dialing, dialed)) - before


def with_secondary() -> tuple[DialedWorld, str, str]:
    """Two primaries, the root and a backup, and a secondary, which was configured with the backup's address only."""
    world = DialedWorld(2)
    world.until(lambda: world.root is not None)
    root = world.root
    assert root is not None
    (backup,) = world.machines.keys() - {root}
    joining = ClusterSettings(key=KEY, observer=True, join=(f"{backup}.example:5672",), advertise="s1.example:5672")
    world.machines["s1"] = Machine(world, "s1", joining, CLUSTER)
    world.until(lambda: world.all_linked() and world.node("s1").peers.knowledge.root is not None)
    return world, root, backup


@pytest.mark.parametrize("all_fail", [False, True])
def test_a_secondary_without_a_root_is_soon_linked_with_a_member_that_returns(all_fail: bool) -> None:
    world, root, backup = with_secondary()
    for name in [root, backup] if all_fail else [root]:
        world.kill(name)
    world.run(LONG_MS)
    # It has just dialed in vain, so the next attempt is as far away as it can be.
    count = len(world.dials)
    world.until(lambda: ("s1", root) in world.dials[count:])
    world.start(root)
    world.until(lambda: world.node(root).following)
    # With one more attempt, if the first one came while this member was not yet linked with the one that relays.
    world.until(lambda: world.is_linked("s1", root), 2 * LONGEST_WAIT_MS)


def test_members_that_are_down_are_dialed_often_while_there_is_no_root() -> None:
    world = DialedWorld(3)
    world.until(lambda: world.root is not None)
    root = world.root
    assert root is not None
    backup, other = (name for name in world.machines if name != root)
    world.kill(backup)
    world.run(LONG_MS)
    assert 0 < world.dials_within(other, backup, LONG_MS) <= LONG_MS // REDIAL_MS_MAX
    world.kill(root)
    # The attempt that was due last was delayed while there was a root; now it comes soon.
    assert world.dials_within(other, backup, LONGEST_WAIT_MS) > 0
    world.run(LONG_MS)
    for name in (backup, root):
        count = world.dials_within(other, name, LONG_MS)
        assert LONG_MS // LONGEST_WAIT_MS - 1 <= count <= LONG_MS // ROOTLESS_REDIAL_MS

"""Asks for forced promotions in a world of replicas."""

from __future__ import annotations

from pandomq.ids import NodeName
from pandomq.replica.effects import ChangeEnded
from pandomq.replica.limits import PROBE_MS
from tests.unit.replica.world import Node, World


def promote(world: World, name: str, dead: str, epoch_id: str = "first") -> ChangeEnded:
    """Asks for it, waits for the answer, and gives it."""
    node = world[name]
    node.replica.promote([NodeName(other) for other in dead], epoch_id)
    node.do_effects()
    for _ in range(PROBE_MS // 20 + 5):
        for effect in node.take_told(ChangeEnded):
            assert isinstance(effect, ChangeEnded)
            return effect
        world.advance(20)
    raise AssertionError("no answer")


def epoch(node: Node) -> tuple[int, str]:
    view = node.replica.view()
    return view.epoch, view.epoch_id

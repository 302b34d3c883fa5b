"""Bugs that show only if a root is asked to hand over to a named broker."""

from __future__ import annotations

from typing import Final

from pandomq.ids import NodeName
from pandomq.replica import hand_over
from pandomq.replica.effects import PrepareHandOver
from pandomq.replica.hand_over import HandOver
from pandomq.replica.roles.root import Root
from tests.sim.planted.planted_bug import Patch, PlantedBug

NODES: Final = 3
OUTSIDER_NODES: Final = 4
"""The smallest number of brokers with which one may not be a primary."""


def _take_anybody(patch: Patch) -> None:
    choose_successor = hand_over.choose_successor

    def choose(root: Root, wanted: NodeName | None) -> NodeName | None:
        return wanted if wanted in root.peers else choose_successor(root, wanted)

    patch.set(hand_over, "choose_successor", choose)


def _do_not_wait(patch: Patch) -> None:
    def hurry(handing: HandOver) -> None:
        core = handing._root.core
        if not handing._preparing and core.commit_index >= core.tail.last_index:
            handing._preparing = True
            core.outbox.put(PrepareHandOver(handing.successor))

    patch.set(HandOver, "advance", hurry)


def _take_the_furthest(patch: Patch) -> None:
    choose_successor = hand_over.choose_successor

    def choose(root: Root, wanted: NodeName | None) -> NodeName | None:
        able = choose_successor(root, wanted) is not None
        return choose_successor(root, None) if able else None

    patch.set(hand_over, "choose_successor", choose)


PLANTED_BUGS: Final = (
    PlantedBug("successor-anybody", "A root hands over to a broker that is no primary.", _take_anybody, OUTSIDER_NODES),
    PlantedBug("successor-behind", "A root does not wait until its successor has the log.", _do_not_wait, NODES),
    PlantedBug(
        "successor-another", "A root hands over to another backup than the named one.", _take_the_furthest, NODES
    ),
)

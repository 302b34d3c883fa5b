"""The cluster of a broker whose log is in memory, with the answers that `Replication` gives about other clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.node.views.cluster_knowledge import ClusterKnowledge, OnEnded
from pandomq.node.views.cluster_view import ROOT

if TYPE_CHECKING:
    from pandomq.node.broker_state import BrokerLife


class Alone:
    __slots__ = ("knowledge", "life")
    own_role = ROOT
    serving = True
    replicated = in_step = False
    linked: frozenset[str] = frozenset()

    def __init__(self, life: BrokerLife) -> None:
        self.life = life
        self.knowledge = ClusterKnowledge()

    def hand_over(self, successor: str | None, on_ended: OnEnded) -> None:
        on_ended(False, "there is no other broker")

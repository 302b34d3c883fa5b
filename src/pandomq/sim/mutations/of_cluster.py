"""Bugs of brokers among each other: what only shows where one takes over from another."""

from __future__ import annotations

from typing import Final

from pandomq.broker.revival import Revival
from pandomq.node.cluster_time import ClusterTime
from pandomq.node.replication import Replication
from pandomq.sim.mutations.mutation import Mutation, Patch

NODES: Final = 3


def _believe_wall_clock(patch: Patch) -> None:
    def credulous(time: ClusterTime, now_ms: int, told_ahead_ms: int | None, *, followed: bool) -> int:
        return now_ms

    patch.set(ClusterTime, "take_office", credulous)


def _forget_deliveries(patch: Patch) -> None:
    finish = Revival.finish

    def trusting(revival: Revival, now_ms: int, *, takeover: bool = False, handed_over: bytes | None = None) -> None:
        finish(revival, now_ms, takeover=takeover, handed_over=handed_over or (b"\x90" if takeover else None))

    patch.set(Revival, "finish", trusting)


def _stay_in_office(patch: Patch) -> None:
    patch.set(Replication, "serving", property(lambda replication: replication.in_office))


MUTATIONS: Final = (
    Mutation("time-by-wall-clock", "who takes over goes by its own wall clock", _believe_wall_clock, NODES),
    Mutation("takeover-trusts", "who takes over takes nothing for delivered", _forget_deliveries, NODES),
    Mutation("office-without-lease", "a root serves on when its lease is over", _stay_in_office, NODES),
)

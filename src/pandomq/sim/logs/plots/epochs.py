"""Plots about forced promotion: the machines that were left out live, and learn of it; the remaining machines lag far
behind."""

from __future__ import annotations

from typing import Final

from pandomq.replica.protocol.messages import Append, ReplicaMessage, SnapshotPiece
from pandomq.sim.logs.message_filter import Fate
from pandomq.sim.logs.plot import Course, Plot
from pandomq.sim.logs.plots.opening import a_root, all_even
from pandomq.sim.logs.scene import LogScene


def _half_heard(stage: LogScene) -> Course:
    """One broker is promoted without the others, which live. They learn that there is a new epoch, but not that they
    are no members of it. They must not elect one of their own in it."""
    root = yield from a_root(stage)
    chosen = stage.random.choice(stage.others(root))
    removed = stage.others(chosen)
    stage.part([chosen], removed)
    yield lambda: not stage.hears_root(chosen)
    term = stage.term(chosen)
    stage.promote(chosen, removed)
    yield lambda: stage.was_root(chosen, term)
    stage.reached("one is promoted, and the others live")

    def rule(sender: str, receiver: str, message: ReplicaMessage) -> Fate:
        says_more = sender == chosen.name and isinstance(message, Append | SnapshotPiece)
        return Fate.LOST if says_more else Fate.CARRIED

    stage.rule(rule)
    stage.heal()
    yield lambda: all(stage.epoch(machine) == stage.epoch(chosen) for machine in removed)
    stage.reached("they hear of the epoch, and not what it says")
    stage.part([chosen], removed)
    yield 4 * stage.lease_ms + stage.any_ms(4 * stage.lease_ms)
    stage.demand(not any(map(stage.is_root, removed)), "who is out of an epoch elects nobody in it", "one root")
    yield from all_even(stage)


def _outrun_survivors(stage: LogScene) -> Course:
    """Half of the primaries are lost, the root among them. Two of those that are left lag past compaction: the promoted
    one sends them a snapshot, and both set their stores aside. The root of three voters needs one of them at any time,
    so they must not forget that they may vote."""
    yield from a_root(stage)
    *laggards, chosen = stage.random.sample(stage.machines, 3)
    last_index = max(map(stage.last_index, laggards))
    stage.kill(*laggards)
    while stage.first_index(*laggards) <= last_index + 1:
        root = yield from a_root(stage)
        for _ in range(8):
            stage.propose(root, 1_500)
        yield stage.lease_ms // 5
    stage.silence()
    yield lambda: stage.root() is not None and stage.is_even(*stage.others(*laggards))
    stage.reached("the log that two backups need is reclaimed")
    lost = stage.others(chosen, *laggards)
    stage.kill(*lost)
    stage.start(*laggards)
    yield lambda: all(stage.are_linked(chosen, laggard) for laggard in laggards) and not stage.hears_root(chosen)
    stage.promote(chosen, lost)
    yield lambda: bool(stage.epoch(chosen))
    stage.reached("one is promoted, and the others that are left are behind")
    yield lambda: stage.root() is chosen and stage.is_even(chosen, *laggards)
    stage.reached("the others that are left have followed it")
    yield from all_even(stage)


PLOTS: Final = (
    Plot("half-heard epoch", "The removed brokers elect no broker in an epoch.", _half_heard, (3, 4, 5)),
    Plot(
        "outrun survivors",
        "Survivors that set their stores aside for a new epoch can elect its root.",
        _outrun_survivors,
        (6,),
        {"tail_bytes": 1},
        compacts=True,
    ),
)

"""A plot about forced promotion: those who are left out live, and hear of it."""

from __future__ import annotations

from typing import Final

from pandomq.replica.messages import Append, Message, SnapshotPiece
from pandomq.sim.logs.plot import Course, Plot
from pandomq.sim.logs.plots.opening import a_root, all_even
from pandomq.sim.logs.post import Fate
from pandomq.sim.logs.stage import Stage


def _half_heard(stage: Stage) -> Course:
    """One broker is promoted without the others, who live. They hear that there is a new epoch, and not what it says:
    that they are out of it. They must not elect one of their own in it."""
    root = yield from a_root(stage)
    chosen = stage.random.choice(stage.others(root))
    removed = stage.others(chosen)
    stage.part([chosen], removed)
    yield lambda: not stage.hears_root(chosen)
    term = stage.term(chosen)
    stage.promote(chosen, removed)
    yield lambda: stage.was_root(chosen, term)
    stage.reached("one is promoted, and the others live")

    def rule(sender: str, receiver: str, message: Message) -> Fate:
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


PLOTS: Final = (Plot("half-heard epoch", "the removed elect nobody in an epoch", _half_heard, (3, 4, 5)),)

"""A plot about a broker that lost its store and may have voted or acknowledged before: it is not counted at once
(R21)."""

from __future__ import annotations

from typing import Final

from pandomq.replica.protocol.messages import AskVote, ReplicaMessage, Vote
from pandomq.sim.logs.message_filter import Fate
from pandomq.sim.logs.plot import Course, Plot
from pandomq.sim.logs.plots.opening import a_quiet_root, all_even
from pandomq.sim.logs.scene import LogScene


def _old_vote(stage: LogScene) -> Course:
    """A broker votes for a candidate and loses its disk before the vote arrives. With its empty disk it follows the old
    root, whose clock is so slow that it still considers its lease valid, and stores an entry of that root. If its copy
    counted, the entry would be committed; and then the candidate, which lacks the entry, is elected with the old vote.

    Leases prevent this as long as clocks are within their drift, but committed entries must not depend on that.
    """
    root = yield from a_quiet_root(stage)
    partner, candidate, voter, forgetful = stage.others(root)
    sides = {machine.name: machine in (root, partner) for machine in stage.machines}

    def rule(sender: str, receiver: str, message: ReplicaMessage) -> Fate:
        if isinstance(message, AskVote) and sender != candidate.name:
            return Fate.LOST
        if isinstance(message, Vote) and message.granted and not message.pre and receiver == candidate.name:
            return Fate.HELD
        return Fate.CARRIED if sides[sender] == sides[receiver] else Fate.LOST

    stage.run_clock(root, 20)
    stage.run_clock(partner, 20)
    stage.rule(rule)
    yield lambda: stage.held == 2
    stage.run_clock(candidate, 5)
    stage.reached("two votes are on their way")
    stage.part([forgetful], [candidate, voter])
    stage.wipe(forgetful)
    sides[forgetful.name] = True
    yield 1 + stage.any_ms(20)
    stage.start(forgetful)
    yield lambda: stage.has_log_of(forgetful, root)
    x = stage.propose(root)
    yield lambda: stage.has_on_disk(forgetful, x) and stage.has_on_disk(partner, x)
    yield 20 + stage.any_ms(100)
    stage.reached("one that lost its memory holds a copy")
    stage.part([root, partner], [forgetful])
    stage.join(forgetful, candidate)
    stage.join(forgetful, voter)
    stage.release()
    yield lambda: stage.is_root(candidate)
    stage.reached("the old votes have elected another")
    yield 2 * stage.lease_ms
    for machine in stage.machines:
        stage.run_clock(machine, 100)
    yield from all_even(stage)


PLOTS: Final = (
    Plot(
        "old vote",
        "A broker that lost its memory counts only when its old votes cannot harm.",
        _old_vote,
        (5,),
        {"lease_ms": 400, "disk_stall_ms": 400},
    ),
)

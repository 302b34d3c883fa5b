"""Plots about votes and promises: which machine may be root, and when."""

from __future__ import annotations

from typing import Final

from pandomq.replica.protocol.messages import AskVote, ReplicaMessage, Vote
from pandomq.sim.disks.files import Loss
from pandomq.sim.logs.message_filter import Fate
from pandomq.sim.logs.plot import Course, Plot
from pandomq.sim.logs.plots.opening import a_quiet_root, a_root, all_even
from pandomq.sim.logs.scene import LogScene


def _voter_dies_speaking(stage: LogScene) -> Course:
    """Two candidates cannot reach each other. The third broker votes for one of them, loses its power at that moment,
    and reaches only the other one when it is back."""
    voter = yield from a_quiet_root(stage)
    one, other = stage.others(voter)
    spoken: list[str] = []

    def listen(sender: str, receiver: str, message: ReplicaMessage) -> Fate:
        if sender == voter.name and isinstance(message, Vote) and message.granted and not message.pre:
            spoken.append(receiver)
        # The voter must not win the election itself.
        return Fate.LOST if sender == voter.name and isinstance(message, AskVote) else Fate.CARRIED

    stage.rule(listen)
    stage.part([one], [other])
    stage.kill(voter, loss=Loss.NONE)
    yield stage.any_ms(stage.lease_ms)
    stage.start(voter)
    yield lambda: bool(spoken)
    stage.kill(voter, loss=Loss.ALL)
    stage.reached("a voter loses its power as it speaks")
    winner, loser = (one, other) if spoken[0] == one.name else (other, one)
    yield lambda: stage.is_root(winner)
    stage.part([winner], [voter])
    stage.start(voter)
    yield lambda: stage.is_root(loser)
    stage.reached("the other candidate is elected as well")
    yield from all_even(stage)


def _late_successor(stage: LogScene) -> Course:
    """A root hands over to a machine that is paused. Meanwhile others elect a root, in the term in which the successor
    will be a candidate when its pause ends; one of the voters restarts in between, and only its vote is missing for the
    successor."""
    root = yield from a_quiet_root(stage)
    successor, *rest = stage.others(root)
    stage.hand_over(root, successor)
    stage.pause(successor, 3 * stage.lease_ms + 800)
    yield lambda: not stage.is_root(root)
    stage.part([root, successor], rest)
    yield lambda: any(map(stage.is_root, rest))
    elected = next(machine for machine in rest if stage.is_root(machine))
    voter, _ = (machine for machine in rest if machine is not elected)
    stage.kill(voter, loss=Loss.ALL)
    stage.part([voter], [machine for machine in rest if machine is not voter])
    stage.join(voter, successor)
    stage.start(voter)
    stage.reached("a voter restarts while a successor of the old root sleeps")
    yield lambda: successor.awake
    yield 1 + stage.any_ms(stage.lease_ms)
    yield from all_even(stage)


def _restart_in_the_lease(stage: LogScene) -> Course:
    """All machines on which the root's lease depends restart at once, while the root cannot reach them, and the lease
    continues."""
    root = yield from a_root(stage)
    yield stage.any_ms(stage.lease_ms)
    rest = stage.others(root)
    stage.part([root], rest)
    stage.kill(*rest)
    yield 1 + stage.any_ms(stage.lease_ms / 10)
    stage.start(*rest)
    stage.reached("all but the root have restarted")
    yield lambda: any(map(stage.is_root, rest))
    stage.reached("another is elected")
    yield stage.any_ms(stage.lease_ms)
    yield from all_even(stage)


def _deaf_backup(stage: LogScene) -> Course:
    """One backup does not receive from the root, but all others do. It requests votes from them, again and again."""
    root = yield from a_quiet_root(stage)
    deaf = stage.random.choice(stage.others(root))
    if stage.random.random() < 0.5:
        stage.deafen(deaf, root)
    else:
        stage.part([deaf], [root])
    for _ in range(4):
        yield stage.lease_ms + stage.any_ms(stage.lease_ms)
    stage.reached("a backup has stood in vain")
    yield from all_even(stage)


def _stalled_root(stage: LogScene) -> Course:
    """The root's disk does not answer, but its network does: another machine has to take over."""
    root = yield from a_root(stage)
    term = stage.term(root)
    stage.stall(root, 20 * stage.lease_ms)
    stage.propose(root)
    yield lambda: any(stage.was_root(machine, term) for machine in stage.others(root))
    stage.reached("another has taken over")
    yield from all_even(stage)


PLOTS: Final = (
    Plot("voter dies speaking", "A vote that was received is not forgotten.", _voter_dies_speaking, (3,)),
    Plot("late successor", "A vote survives a restart, also for the successor of a hand-over.", _late_successor, (5,)),
    Plot(
        "restart in the lease",
        "A promise to a root survives a restart.",
        _restart_in_the_lease,
        (3, 4, 5),
        {"lease_ms": 1_000},
    ),
    Plot("deaf backup", "A broker that receives from a root votes for no other broker.", _deaf_backup, (3, 4, 5)),
    Plot("stalled root", "A root whose disk does not respond steps down.", _stalled_root, (3, 4, 5)),
)

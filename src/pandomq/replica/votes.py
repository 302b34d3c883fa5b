"""Who may vote, who may stand, and who gets the vote. Each rule is a function of its own.

may_vote         its memory is whole
may_stand        it is a voter, its log is whole and of the newest epoch, its disk answers
is_open          no promise to another stands in the way
is_up_to_date    the candidate's log has all that this one has
is_free          this term's vote was not given to another
"""

from __future__ import annotations

from pandomq.ids import NodeName
from pandomq.replica.core import Core
from pandomq.replica.messages import AskVote, Vote
from pandomq.replica.position import Position
from pandomq.replica.roles.transitions import Role


def may_vote(core: Core) -> bool:
    """A broker that may have forgotten a vote or an entry could contradict itself: it keeps still (R6, R21). Whether it
    is among the voters is for the candidate to know: its set may be newer."""
    return not core.observer and not core.record.joining and not core.emptying


def may_stand(core: Core) -> bool:
    return (
        may_vote(core)
        and core.may_be_needed()
        and core.record.floor is None
        and core.damaged_from is None
        and core.cutting is None
        and is_of_epoch(core.end, core.state.epoch)
        and not disk_stalls(core)
    )


def is_of_epoch(end: Position, epoch: int) -> bool:
    """Who stands in an epoch has its first entry. The removed, who have heard of the epoch but not what it says, would
    otherwise elect one of their own in it, by the old set of voters."""
    return end.epoch == epoch


def disk_stalls(core: Core) -> bool:
    """Another broker would do better. One alone has nobody to give way to, and waits for its disk."""
    since_ms = core.port.waiting_since_ms
    if since_ms is None or not core.others:
        return False
    return core.now_ms - since_ms > core.settings.disk_stall_ms


def is_open(core: Core, candidate: NodeName, ask: AskVote) -> bool:
    """While a root may rely on its lease nobody helps another into office, unless that root itself asks for it. A
    broker that would only disturb is not even listened to: its newer term is not taken over."""
    if ask.handed_over:
        return True
    if core.handlers.role is Role.ROOT:
        return False
    return core.now_ms >= core.promise_until_ms or candidate == core.promised_to


def voting_end(core: Core) -> Position:
    """The end of the log as it is, or as it is known to have been before it was damaged."""
    return core.end if core.record.floor is None else max(core.end, core.record.floor)


def is_up_to_date(candidate: Position, own: Position) -> bool:
    return candidate >= own


def is_free(core: Core, candidate: NodeName, ask: AskVote) -> bool:
    if ask.pre:
        return ask.candidacy > core.term
    return ask.candidacy == core.term and core.state.vote in (None, candidate)


def would_grant(core: Core, candidate: NodeName, ask: AskVote) -> bool:
    return (
        may_vote(core)
        and is_open(core, candidate, ask)
        and is_free(core, candidate, ask)
        and is_of_epoch(ask.end, ask.epoch)
        and is_up_to_date(ask.end, voting_end(core))
    )


def answer(core: Core, candidate: NodeName, ask: AskVote) -> bool:
    """Tells the candidate; True if it got a real vote. A learner in doubt does not even say no: an absent one
    abstains."""
    if not may_vote(core):
        return False
    granted = would_grant(core, candidate, ask)
    real = granted and not ask.pre
    if real:
        # The answer is held back until the vote is on the disk: a crash in between could vote twice in one term.
        core.save(vote=candidate)
        core.promise(candidate)
    core.send(candidate, Vote(*core.header, ask.candidacy, ask.pre, granted))
    return real

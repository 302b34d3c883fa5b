"""The rules of voting: which broker may vote, which may be a candidate, and which gets the vote. Each rule is a
function of its own.

may_vote         its memory is complete
may_stand        it is a voter, its log is complete and of the newest epoch, its disk works
is_open          no promise to another broker prevents it
is_up_to_date    the candidate's log has everything that this one has
is_free          this term's vote was not given to another
"""

from __future__ import annotations

from pandomq.ids import NodeName
from pandomq.replica.core import Core
from pandomq.replica.protocol.messages import AskVote, Vote
from pandomq.replica.protocol.position import Position
from pandomq.replica.roles.transitions import Role


def may_vote(core: Core) -> bool:
    """A broker that may have lost a vote or an entry could contradict itself: it does not vote (R6, R21). The candidate
    checks whether it is among the voters, since the candidate's set may be newer."""
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
    """A candidate in an epoch must have its first entry. Removed brokers, which know of the epoch but not its entry,
    could otherwise elect one of their own in it, by the old set of voters."""
    return end.epoch == epoch


def disk_stalls(core: Core) -> bool:
    """Another broker would do better. A single broker has no other in whose favour it could step down, and waits for
    its disk."""
    since_ms = core.port.waiting_since_ms
    if since_ms is None or not core.others:
        return False
    return core.now_ms - since_ms > core.settings.disk_stall_ms


def is_open(core: Core, candidate: NodeName, ask: AskVote) -> bool:
    """While a root may rely on its lease no broker votes for another, unless that root itself requests it. A candidate
    that would only disturb is ignored: its newer term is not taken over."""
    if ask.handed_over:
        return True
    if core.handlers.role is Role.ROOT:
        return False
    return core.now_ms >= core.promise_until_ms or candidate == core.promised_to


def voting_end(core: Core) -> Position:
    """The end of the log as it is, or as it is known to have been before the damage."""
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
    """Replies to the candidate; True if it got a real vote. A learner whose store is in doubt sends no reply, neither a
    vote nor a rejection."""
    if not may_vote(core):
        return False
    granted = would_grant(core, candidate, ask)
    real = granted and not ask.pre
    if real:
        # The reply is held back until the vote is on disk: after a crash in between this broker could vote twice in one
        # term.
        core.save(vote=candidate)
        core.promise(candidate)
    core.send(candidate, Vote(*core.header, ask.candidacy, ask.pre, granted))
    return real

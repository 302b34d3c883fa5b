"""Chooses the handler of a message, after comparing its epoch and term with ours.

another epoch of our number   ignored, with an alarm: two such sides are never merged automatically
older                         the sender is sent the newer term
newer                         taken over first, unless it is that of a candidate that would only disturb
"""

from __future__ import annotations

from typing import assert_never

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.core import Core
from pandomq.replica.effects import AlarmKind, SteppedDown
from pandomq.replica.members import votes
from pandomq.replica.members.promotion import Promotion, answer_probe
from pandomq.replica.protocol.messages import (
    Admit,
    Append,
    Appended,
    AppendRejected,
    AskVote,
    Greeting,
    Probe,
    ProbeAnswer,
    ReleasePromise,
    ReplicaMessage,
    SnapshotAnswer,
    SnapshotPiece,
    TakeOver,
    Vote,
)
from pandomq.replica.roles.transitions import Role


def dispatch(core: Core, promotion: Promotion | None, sender: NodeName, message: ReplicaMessage) -> None:
    if isinstance(message, Probe):
        answer_probe(core, promotion, sender, message)
        return
    if isinstance(message, ProbeAnswer):
        if promotion is not None:
            promotion.answered(sender, message)
        return
    if message.epoch == core.state.epoch and message.epoch_id != core.state.epoch_id:
        core.split_from.add(sender)
        text = f"{sender} is on a conflicting epoch {message.epoch} (a different forced promotion)"
        core.alarm(AlarmKind.SPLIT_EPOCHS, raised=True, text=text)
        return
    if sender in core.split_from:
        # An operator has given up its side, or one of the two was promoted once more.
        core.split_from.discard(sender)
        core.alarm(
            AlarmKind.SPLIT_EPOCHS, raised=bool(core.split_from), text=f"{sender} is no longer on a conflicting epoch"
        )
    if isinstance(message, Greeting):
        core.born_ms[sender] = core.now_ms - message.age_ms
        core.greetings[sender] = message
        if message.cluster_ms:
            core.told_time(message.cluster_ms)
    age = core.age_of(message)
    if age > 0:
        if isinstance(message, AskVote) and not votes.is_open(core, sender, message):
            core.send(sender, Vote(*core.header, message.candidacy, message.pre, granted=False))
            return
        step_down(core, sender, message)
    elif is_stale(message, age):
        answer_stale(core, sender, message)
        return
    deliver(core, sender, message)


def is_stale(message: ReplicaMessage, age: int) -> bool:
    """A greeting is never too old: a broker that has missed everything needs help most."""
    return age < 0 and not isinstance(message, Greeting)


def step_down(core: Core, sender: NodeName, message: ReplicaMessage) -> None:
    role = core.handlers.role
    core.adopt(message)
    if role is Role.ROOT:
        core.outbox.put(SteppedDown(f"{sender} is in the newer term {message.term} of epoch {message.epoch}"))
    if role in (Role.ROOT, Role.CANDIDATE):
        core.become_follower()
    else:
        core.tell_role()


def answer_stale(core: Core, sender: NodeName, message: ReplicaMessage) -> None:
    """Sends the newer term to the sender; a message that is itself a reply needs none."""
    match message:
        case Append() | SnapshotPiece():
            core.send(
                sender,
                AppendRejected(
                    *core.header, message.round, core.life, core.record.joining, LogIndex(0), LogIndex(0), Term(0)
                ),
            )
        case AskVote():
            core.send(sender, Vote(*core.header, message.candidacy, message.pre, granted=False))
        case _:
            pass


def deliver(core: Core, sender: NodeName, message: ReplicaMessage) -> None:
    handlers = core.handlers
    match message:
        case Greeting():
            handlers.on_greeting(sender, message)
        case AskVote():
            handlers.on_ask_vote(sender, message)
        case Vote():
            handlers.on_vote(sender, message)
        case Append():
            handlers.on_append(sender, message)
        case Appended():
            handlers.on_appended(sender, message)
        case AppendRejected():
            handlers.on_refused(sender, message)
        case Admit():
            handlers.on_admit(sender, message)
        case ReleasePromise():
            handlers.on_release_promise(sender, message)
        case TakeOver():
            handlers.on_take_over(sender, message)
        case SnapshotPiece():
            handlers.on_snapshot_piece(sender, message)
        case SnapshotAnswer():
            handlers.on_snapshot_answer(sender, message)
        case Probe() | ProbeAnswer():
            raise AssertionError("answer_probe does not depend on the term")
        case _:
            assert_never(message)

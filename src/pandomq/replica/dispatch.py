"""Which handler a message goes to, after its epoch and term were compared with ours.

another epoch of our number   nobody merges by himself: not listened to, with an alarm
older                         its sender is told what it has missed
newer                         taken over first, unless it is a candidate's whom nobody needs
"""

from __future__ import annotations

from typing import assert_never

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica import votes
from pandomq.replica.core import Core
from pandomq.replica.effects import AlarmKind, Resigned
from pandomq.replica.messages import (
    Admit,
    Append,
    Appended,
    AskVote,
    Farewell,
    Greeting,
    Message,
    Probe,
    ProbeAnswer,
    Refused,
    SnapshotAnswer,
    SnapshotPiece,
    TakeOver,
    Vote,
)
from pandomq.replica.promotion import Promotion
from pandomq.replica.roles.transitions import Role


def dispatch(core: Core, promotion: Promotion | None, sender: NodeName, message: Message) -> None:
    if isinstance(message, Probe):
        root = core.root if core.now_ms < core.promise_until_ms or core.root == core.name else None
        end, joining = votes.voting_end(core), core.record.joining
        core.send(sender, ProbeAnswer(*core.header, message.number, end, root, joining))
        return
    if isinstance(message, ProbeAnswer):
        if promotion is not None:
            promotion.answered(sender, message)
        return
    if message.epoch == core.state.epoch and message.epoch_id != core.state.epoch_id:
        core.split_from.add(sender)
        text = f"{sender} follows another forced promotion of the number {message.epoch}"
        core.alarm(AlarmKind.SPLIT_EPOCHS, raised=True, text=text)
        return
    if sender in core.split_from:
        # A person has given up its side, or one of the two was promoted once more.
        core.split_from.discard(sender)
        core.alarm(AlarmKind.SPLIT_EPOCHS, raised=bool(core.split_from), text=f"{sender} is no longer on another side")
    if isinstance(message, Greeting):
        core.born_ms[sender] = core.now_ms - message.age_ms
        core.greetings[sender] = message
        if message.cluster_ms:
            core.told_ahead_ms = message.cluster_ms - core.now_ms
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


def is_stale(message: Message, age: int) -> bool:
    """A greeting is never too old: who has missed everything needs help most."""
    return age < 0 and not isinstance(message, Greeting)


def step_down(core: Core, sender: NodeName, message: Message) -> None:
    role = core.handlers.role
    core.adopt(message)
    if role is Role.ROOT:
        core.outbox.put(Resigned(f"{sender} knows of term {message.term} in epoch {message.epoch}"))
    if role in (Role.ROOT, Role.CANDIDATE):
        core.become_follower()
    else:
        core.tell_role()


def answer_stale(core: Core, sender: NodeName, message: Message) -> None:
    """So that it learns of the newer term; what is an answer itself needs none."""
    match message:
        case Append() | SnapshotPiece():
            core.send(
                sender,
                Refused(*core.header, message.round, core.life, core.record.joining, LogIndex(0), LogIndex(0), Term(0)),
            )
        case AskVote():
            core.send(sender, Vote(*core.header, message.candidacy, message.pre, granted=False))
        case _:
            pass


def deliver(core: Core, sender: NodeName, message: Message) -> None:
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
        case Refused():
            handlers.on_refused(sender, message)
        case Admit():
            handlers.on_admit(sender, message)
        case Farewell():
            handlers.on_farewell(sender, message)
        case TakeOver():
            handlers.on_take_over(sender, message)
        case SnapshotPiece():
            handlers.on_snapshot_piece(sender, message)
        case SnapshotAnswer():
            handlers.on_snapshot_answer(sender, message)
        case Probe() | ProbeAnswer():
            raise AssertionError("probes are answered whatever the term")
        case _:
            assert_never(message)

"""Stories that turn on one decision each: told to a sound replica they end well, told to one with the right bug planted
they do not (`test_planted_bugs`). They are told step by step, because chance finds them too seldom.
"""

from __future__ import annotations

from unittest import mock

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.log import tail
from pandomq.replica.protocol.messages import Append, AskVote, Vote, decode
from pandomq.replica.protocol.position import Position
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.world import Node, World


def ask(world: World, candidate: str, voter: str, term: int, end: Position, *, pre: bool = False) -> None:
    """Puts a candidate's question to a voter."""
    node = world[voter]
    node.replica.step(NodeName(candidate), AskVote(0, "", Term(term - pre), Term(term), pre, end, False))
    node.do_effects()


def has_vote(world: World, candidate: str, voter: str) -> bool:
    """Whether the voter's yes is on its way to the candidate."""
    answers = [decode(data) for sender, data in world[candidate].inbox if sender == voter]
    return any(isinstance(answer, Vote) and answer.granted for answer in answers)


def end_of(node: Node) -> Position:
    view = node.replica.view()
    return Position(view.epoch, view.last_term, view.last_index)


def without_root() -> World:
    """Three brokers whose promises are over, and of whom none has stood yet."""
    world = World("abc")
    world.settle()
    wait(world, *world.nodes)
    return world


def wait(world: World, *names: str) -> None:
    """Until the promises of these brokers are over; nothing is delivered meanwhile."""
    for _ in range(10):
        world.now_ms += world.settings.promise_ms // 10
        for name in names:
            world[name].tick()


def a_vote_is_saved_before_it_is_spoken() -> None:
    """b votes for a and crashes before its disk has the vote; then c asks it in the same term."""
    world = without_root()
    ask(world, "a", "b", 1, end_of(world["b"]))
    first = has_vote(world, "a", "b")
    world["b"].crash()
    world["b"].start()
    wait(world, "b")
    ask(world, "c", "b", 1, end_of(world["b"]))
    while world["b"].disk_step():
        pass
    assert not (first and has_vote(world, "c", "b")), "b has voted for two in one term"


def nobody_votes_twice_in_a_term() -> None:
    world = without_root()
    ask(world, "a", "b", 1, end_of(world["b"]))
    world["b"].disk_step()
    assert has_vote(world, "a", "b")
    world["b"].replica.disconnected(NodeName("a"), by_peer=True)
    ask(world, "c", "b", 1, end_of(world["b"]))
    while world["b"].disk_step():
        pass
    assert not has_vote(world, "c", "b"), "b has voted for two in one term"


def an_older_log_gets_no_vote() -> None:
    world = World("abc")
    world.elect("a").propose(b"one")
    world.settle()
    world["a"].crash()
    end, term = end_of(world["b"]), world["b"].replica.view().term
    older = Position(end.epoch, end.term, LogIndex(end.index - 1))
    ask(world, "c", "b", term + 1, older, pre=True)
    assert not has_vote(world, "c", "b"), "b would elect one who lacks what b has"
    ask(world, "c", "b", term + 1, end, pre=True)
    assert has_vote(world, "c", "b")


def an_old_terms_entry_is_not_committed_by_counting() -> None:
    """Figure 8 of the Raft paper. The root of term 1 brings x to one backup only and dies. The root of term 2 writes an
    entry that nobody gets, and dies. In term 3 x gets to a majority, but nothing of term 3 does. Were x committed
    now, the root of term 2, whose log is the newer one, could still be elected without those who know of term 3."""
    with mock.patch.object(tail, "APPEND_ENTRIES_MAX", 1):
        world = World("abcde")
        world.elect("a")
        world.advance(500)
        world.isolate("a", "b")
        world["a"].propose(b"x")
        world.settle()
        world["a"].crash()
        world["b"].crash()
        second = world.until_root()
        second.disk_step()
        second.crash()
        for node in world.nodes.values():
            node.inbox.clear()
        world.cut_links.clear()
        world["a"].start()
        world["b"].start()
        third = world.until_root()
        assert third.name in "ab"
        witness = next(name for name in "cde" if world[name].up)
        bring_old_entries_only(world, third, witness)
        assert b"x" in world.log(witness)
        assert b"x" not in world.committed(third.name), "an entry of an old term is committed by counting"


def bring_old_entries_only(world: World, root: Node, witness: str) -> None:
    """One other broker gets all of the root's log, one gets what is not of its term, the rest nothing."""
    partner = "b" if root.name == "a" else "a"
    term = root.replica.view().term
    root.store.fetch_entries = 1
    for _ in range(200):
        for name in (root.name, partner):
            if not (world[name].disk_step() or world[name].receive()):
                world[name].tick()
        node = world[witness]
        if node.inbox:
            message = decode(node.inbox[0][1])
            new = isinstance(message, Append) and any(entry.term == term for entry in message.entries)
            if new and isinstance(message, Append) and message.prev_index <= node.replica.view().last_index:
                node.inbox.popleft()
        if not (node.disk_step() or node.receive()):
            world.now_ms += 10


def a_promise_outlives_a_restart() -> None:
    """b and c have promised their votes to a, and restart; a goes on relying on them for a lease."""
    world = World("abc")
    a = world.elect("a")
    world.advance(400)
    world.cut("a", "b")
    world.cut("a", "c")
    for name in "bc":
        world[name].crash()
    for name in "bc":
        world[name].start()
    for _ in range(40):
        world.advance(20)
        assert a.role is not Role.ROOT or len(world.roots) == 1, "another is root while a relies on its lease"


def a_lease_begins_when_the_append_is_sent() -> None:
    """The messages that a receives from the others were sent long ago; by now they are free to elect another root."""
    world = World("abc")
    a = world.elect("a")
    world.advance(400)
    world.now_ms += world.settings.heartbeat_ms
    a.tick()
    for name in "bc":
        world[name].tick()
        while world[name].receive():
            pass
    world.cut("a", "b")
    world.cut("a", "c")
    # The answers take more than half a lease to arrive.
    slow = list(a.inbox)
    a.inbox.clear()
    sent_ms = world.now_ms
    world.now_ms += world.settings.lease_ms * 6 // 10
    a.tick()
    a.inbox.extend(slow)
    while a.receive():
        pass
    assert a.replica.serving
    world.now_ms = sent_ms + world.settings.lease_ms
    a.tick()
    assert not a.replica.serving, "a relies on promises that are over"


def a_cut_off_root_stops_before_another_begins() -> None:
    world = World("abc")
    a = world.elect("a")
    world.isolate("a")
    for _ in range(200):
        world.advance(20)
        if [node for node in world.roots if node is not a]:
            break
    assert a.role is not Role.ROOT, "two are root"


def an_empty_store_has_no_vote() -> None:
    """x is on a and b; b loses its disk, a dies, and c, which never had x, stands."""
    world = World("abc")
    world.elect("a")
    world["c"].crash()
    world["a"].propose(b"x")
    world.settle()
    assert world.committed("a") == [b"x"]
    world["b"].crash()
    world["b"].store.wipe()
    world.checkers.wiped |= {NodeName("b")}
    world["a"].crash()
    world["b"].start()
    world["c"].start()
    world.advance(10_000)
    assert world.roots == [], "a root was elected that lacks what was committed"


def a_root_whose_disk_stalls_resigns() -> None:
    world = World("abc")
    a = world.elect("a")
    a.disk_works = False
    a.store.stalled_since_ms = world.now_ms
    a.propose(b"stuck")
    world.advance(world.settings.disk_stall_ms + 200)
    assert a.role is not Role.ROOT, "confirms hang, and nobody takes over"


def entries_are_taken_only_where_they_continue_the_log() -> None:
    """a has written what nobody got; two roots later somebody offers it what comes after entries that it lacks."""
    world = World("abcde")
    world.elect("a")
    world.isolate("a")
    world["a"].propose(b"x1", b"x2", b"x3", b"x4")
    second = world.elect_among("bcde")
    second.propose(b"y1", b"y2")
    world.settle()
    second.crash()
    third = world.elect_among("bcde")
    world.heal()
    world.advance(2_000)
    assert world.log("a") == world.log(third.name) == [b"y1", b"y2"], "logs differ"


def who_has_only_heard_of_an_epoch_does_not_stand_in_it() -> None:
    """c is promoted without a and b, who live; they hear of its epoch, and not what it says: that they are out."""
    world = World("abc")
    world.elect("a")
    world.isolate("c")
    world.advance(3_000)
    world["c"].replica.promote([NodeName("a"), NodeName("b")], "without a and b")
    world["c"].do_effects()
    world.elect("c")
    world.cut_links.discard(("c", "a"))
    world.advance(1_500)
    world.cut_links.add(("c", "a"))
    world.advance(10_000)
    assert [node.name for node in world.roots] == ["c"], "the removed have elected one of their own"


STORIES = [
    a_vote_is_saved_before_it_is_spoken,
    nobody_votes_twice_in_a_term,
    an_older_log_gets_no_vote,
    an_old_terms_entry_is_not_committed_by_counting,
    a_promise_outlives_a_restart,
    a_lease_begins_when_the_append_is_sent,
    a_cut_off_root_stops_before_another_begins,
    an_empty_store_has_no_vote,
    a_root_whose_disk_stalls_resigns,
    entries_are_taken_only_where_they_continue_the_log,
    who_has_only_heard_of_an_epoch_does_not_stand_in_it,
]

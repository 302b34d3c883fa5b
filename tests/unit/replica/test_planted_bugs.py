"""Each decision that safety hangs on is a small function; with any of them wrong its story ends badly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from pandomq.replica import lease, startup
from pandomq.replica.core import Core
from pandomq.replica.log import appending, commitment
from pandomq.replica.members import quorum, votes
from pandomq.replica.outbox import Outbox
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.protocol.messages import Append
from pandomq.replica.record import decode_record, first_state
from pandomq.replica.roles.root import Root
from tests.unit.replica import stories, test_damage, test_election, test_replication
from tests.unit.replica.world import World

Story = Callable[[], None]


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_stories_end_well(story: Story) -> None:
    story()


def count_from_receipt(self: Root, message: Any, sender: Any) -> Any:
    peer = HEARD(self, message, sender)
    if peer is not None:
        peer.round = self.core.now_ms
    return peer


HEARD = Root._heard


def believe_an_empty_store(facts: Any) -> Any:
    state = facts.state if facts.state.membership else first_state(World.members("abc"))
    return decode_record(state.membership)


def keep_the_tail(core: Core, append: Append) -> tuple[None, tuple[LogEntry, ...]]:
    known = max(0, core.tail.last_index - append.prev_index)
    return None, append.entries[known:]


BUGS = {
    "a vote is spoken before it is saved": (
        (Outbox, "must_wait", lambda self: False),
        stories.a_vote_is_saved_before_it_is_spoken,
    ),
    "a vote is given twice": ((votes, "is_free", lambda *_: True), stories.nobody_votes_twice_in_a_term),
    "any log will do": ((votes, "is_up_to_date", lambda *_: True), stories.an_older_log_gets_no_vote),
    "an old term's entry is committed by count": (
        (commitment, "is_of_this_term", lambda *_: True),
        stories.an_old_terms_entry_is_not_committed_by_counting,
    ),
    "promises are forgotten in a restart": (
        (startup, "remember_promises", lambda core: None),
        stories.a_promise_outlives_a_restart,
    ),
    "the lease begins with the answer": (
        (Root, "_heard", count_from_receipt),
        stories.a_lease_begins_when_the_append_is_sent,
    ),
    "the lease never ends": ((lease, "holds", lambda *_: True), stories.a_cut_off_root_stops_before_another_begins),
    "an empty store votes": ((startup, "read_record", believe_an_empty_store), stories.an_empty_store_has_no_vote),
    "half of the votes elect": (
        (quorum, "elect_need", quorum.half),
        test_election.test_half_of_the_primaries_elect_no_root_until_one_comes_back,
    ),
    "one copy less is enough": (
        (quorum, "commit_need", lambda count, copies: max(1, count // 2)),
        test_replication.test_an_entry_is_committed_when_two_disks_have_it_and_not_before,
    ),
    "a copy counts before it is on disk": (
        (Core, "synced_index", property(lambda core: core.tail.last_index)),
        test_replication.test_an_entry_is_committed_when_two_disks_have_it_and_not_before,
    ),
    "a surplus tail stays": (
        (appending, "compare", keep_the_tail),
        test_replication.test_a_surplus_tail_is_cut_to_the_logs_truth,
    ),
    "entries are taken whatever comes before them": (
        (appending, "continues", lambda core, append: append.prev_index <= core.tail.last_index),
        stories.entries_are_taken_only_where_they_continue_the_log,
    ),
    "a damaged log votes by what is left of it": (
        (startup, "with_floor", lambda record, term, index: record),
        test_damage.test_a_bit_flips_in_the_last_entry_of_a_backup_the_root_dies_and_a_laggard_stands,
    ),
    "whoever has heard of an epoch stands in it": (
        (votes, "is_of_epoch", lambda end, epoch: True),
        stories.who_has_only_heard_of_an_epoch_does_not_stand_in_it,
    ),
    "the lease ignores the disk": (
        (votes, "disk_stalls", lambda core: False),
        stories.a_root_whose_disk_stalls_resigns,
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_fails_its_scenario(name: str) -> None:
    (where, what, bug), story = BUGS[name]
    with mock.patch.object(where, what, bug), pytest.raises(AssertionError):
        story()

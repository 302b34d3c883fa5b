"""The deliveries of earlier roots that the log never had, compared with all messages that ever got a number."""

from __future__ import annotations

import random

from pandomq.broker.log.term_starts import TermStarts
from pandomq.limits import TERMS_REMEMBERED

QUEUE = 7


def test_without_term_starts_no_message_counts_as_lost() -> None:
    assert not TermStarts().was_lost(QUEUE, 1, 1)


def test_a_message_with_a_number_that_a_later_root_could_give_is_lost() -> None:
    starts = TermStarts()
    starts.begin([(QUEUE, 10)], term=3)
    starts.begin([(QUEUE, 15)])
    assert [starts.was_lost(QUEUE, sequence, 2) for sequence in (9, 10, 20)] == [False, True, True]
    assert [starts.was_lost(QUEUE, sequence, 3) for sequence in (10, 14, 15)] == [False, False, True]


def test_a_queue_that_came_later_had_nothing_before() -> None:
    starts = TermStarts()
    starts.begin([(QUEUE, 10)], term=3)
    assert starts.was_lost(QUEUE + 1, 1, 2) and not starts.was_lost(QUEUE + 1, 1, 3)


def test_as_an_account_of_all_numbers_has_it() -> None:
    chance = random.Random(1)
    for _ in range(200):
        starts = TermStarts()
        kept = 1
        given: dict[tuple[int, int], bool] = {}
        """By number and term: whether the log has it."""
        terms = sorted(chance.sample(range(1, 20), TERMS_REMEMBERED + 1))
        for term in terms:
            if term != terms[0]:
                starts.begin([(QUEUE, kept)], term=term)
            count = chance.randint(0, 5)
            safe = chance.randint(0, count)
            given.update({(kept + number, term): number < safe for number in range(count)})
            kept += safe
        own = terms[-1]
        for (sequence, term), is_kept in given.items():
            if term != own:
                assert starts.was_lost(QUEUE, sequence, term) is not is_kept

"""The history of roots."""

from __future__ import annotations

from pandomq.node.log.elections import ELECTIONS_KEPT, Elections
from pandomq.node.views.records import ElectionView


def test_each_root_is_remembered_once_with_the_time_without_one() -> None:
    elections = Elections()
    elections.heard(None, 0, 1_000)
    elections.heard("n1", 1, 1_200)
    elections.heard("n1", 1, 1_300)
    elections.heard(None, 1, 5_000)
    elections.heard(None, 2, 5_100)
    elections.heard("n2", 2, 5_300)
    assert list(elections.kept) == [ElectionView(1_200, 1, "n1", 200), ElectionView(5_300, 2, "n2", 300)]
    assert elections.count == 2


def test_the_number_of_kept_elections_is_bounded() -> None:
    elections = Elections()
    for term in range(100):
        elections.heard("n1", term, term)
    assert (len(elections.kept), elections.kept[-1].term, elections.count) == (ELECTIONS_KEPT, 99, 100)

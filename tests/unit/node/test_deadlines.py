"""Deadlines: what was put comes out once, never before its time, at most a bucket late."""

from hypothesis import given
from hypothesis import strategies as st

from pandomq.node.clients.deadlines import BUCKET_MS, Deadlines


@given(
    st.lists(st.integers(0, 100_000), max_size=50),
    st.lists(st.integers(0, 20_000), min_size=1, max_size=30),
)
def test_each_item_comes_once_and_in_time(dues: list[int], steps: list[int]) -> None:
    deadlines: Deadlines[int] = Deadlines(0)
    for item, due in enumerate(dues):
        deadlines.put(item, due)
    now = 0
    seen: dict[int, int] = {}
    for step in [*steps, 200_000]:
        before, now = now, now + step
        for item in deadlines.take_due(now):
            assert item not in seen
            assert dues[item] <= now
            seen[item] = now
        for item, due in enumerate(dues):
            if due + BUCKET_MS <= before:
                assert item in seen
    assert len(seen) == len(dues)
    assert len(deadlines) == 0


def test_an_overdue_item_waits_for_the_next_bucket() -> None:
    deadlines: Deadlines[str] = Deadlines(10_000)
    deadlines.put("late", 0)
    assert deadlines.take_due(10_000 + BUCKET_MS - 1) == []
    assert deadlines.next_ms == 10_000 + BUCKET_MS
    assert deadlines.take_due(10_000 + BUCKET_MS) == ["late"]


def test_an_item_that_is_put_again_counts_in_its_last_bucket_only() -> None:
    """A link's deadline moves from the end of its handshake to its first heartbeat: it is not watched twice."""
    deadlines: Deadlines[str] = Deadlines(0)
    for due_ms in (10_000, 500, 700, 500):
        deadlines.put("link", due_ms)
    assert len(deadlines) == 1
    assert deadlines.take_due(499) == []
    assert deadlines.take_due(500) == ["link"]
    assert deadlines.take_due(20_000) == []
    assert len(deadlines) == 0

"""Confirms may come in any order, single or multiple, cut anywhere: the count is that of the set of settled numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.bench.client.confirms import ConfirmCounter
from pandomq.bench.client.wire import BrokerRefused
from tests.unit.bench import streams

Settling = tuple[int, bool, bool]


@given(
    settlings=st.lists(st.tuples(st.integers(1, 30), st.booleans(), st.booleans()), max_size=30),
    cuts=st.lists(st.integers(0, 700), max_size=10),
)
def test_any_order_counts_each_publish_once(settlings: list[Settling], cuts: list[int]) -> None:
    acked: set[int] = set()
    nacked: set[int] = set()
    stream = b""
    for tag, multiple, refused in settlings:
        numbers = set(range(1, tag + 1)) if multiple else {tag}
        (nacked if refused else acked).update(numbers - acked - nacked)
        stream += (streams.nack if refused else streams.ack)(tag, multiple)
    counter = ConfirmCounter()
    seen: list[int] = []
    start = 0
    for end in [*sorted(cuts), len(stream)]:
        counter.feed(stream[start:end])
        seen += [number for numbers in counter.newly_settled for number in numbers]
        start = max(start, end)
    assert (counter.acked, counter.nacked) == (len(acked), len(nacked))
    assert sorted(seen) == sorted(acked | nacked)
    assert set(range(1, counter.settled_upto + 1)) <= acked | nacked


@given(
    count=st.integers(0, 600), odd=st.integers(1, 600), odd_one=st.sampled_from(["ack", "nack", "multiple", "later"])
)
def test_runs_of_single_settlings_are_counted_as_one_by_one(count: int, odd: int, odd_one: str) -> None:
    frames = [streams.ack(number) for number in range(1, count + 1)]
    if odd <= count:
        other = {"ack": streams.ack(odd), "nack": streams.nack(odd), "multiple": streams.ack(odd, multiple=True)}
        frames[odd - 1] = other.get(odd_one, streams.ack(odd + 1000))
    at_once, one_by_one = ConfirmCounter(), ConfirmCounter()
    at_once.feed(b"".join(frames))
    for frame in frames:
        one_by_one.feed(frame)
    assert (at_once.acked, at_once.nacked, at_once.settled_upto) == (
        one_by_one.acked,
        one_by_one.nacked,
        one_by_one.settled_upto,
    )


def test_other_frames_in_between_are_passed_over() -> None:
    counter = ConfirmCounter()
    counter.feed(streams.ack(1) + streams.heartbeat() + streams.ack(3, multiple=True) + streams.heartbeat())
    assert counter.acked == 3


def test_a_close_ends_the_measurement_with_the_reason_of_the_broker() -> None:
    counter = ConfirmCounter()
    with pytest.raises(BrokerRefused, match="404 NOT_FOUND"):
        counter.feed(streams.ack(1) + streams.channel_close(404, "NOT_FOUND - no exchange 'x'"))

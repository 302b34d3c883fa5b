"""The counter's law: whatever the cuts between reads, it counts what a walk over all frames counts."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.bench.client.stride import DeliveryCounter, DeliverySpan
from pandomq.bench.client.wire import BrokerRefused
from tests.unit.bench import streams


def count_in_pieces(counter: DeliveryCounter, stream: bytes, cuts: list[int]) -> int:
    """Feeds the stream as reads that end at the cuts, as a consumer does; returns how many bytes were left over."""
    buffer = bytearray(stream)
    start = 0
    for end in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
        start = counter.count(buffer, start, end)
    return len(stream) - start


@given(number=st.integers(0, 60), size=st.integers(0, 40), cuts=st.lists(st.integers(0, 6000), max_size=20))
def test_equal_deliveries_are_counted_whatever_the_cuts(number: int, size: int, cuts: list[int]) -> None:
    counter = DeliveryCounter()
    left = count_in_pieces(counter, streams.deliveries(range(1, number + 1), b"y" * size), cuts)
    assert (counter.delivered, left) == (number, 0)


@given(
    sizes=st.lists(st.sampled_from([0, 1, 16, 16, 16, 300]), max_size=60),
    cuts=st.lists(st.integers(0, 9000), max_size=20),
)
def test_deliveries_of_changing_length_are_counted_as_well(sizes: list[int], cuts: list[int]) -> None:
    counter = DeliveryCounter()
    stream = b"".join(streams.delivery(tag, b"z" * size) for tag, size in enumerate(sizes, 1))
    assert count_in_pieces(counter, stream, cuts) == 0
    assert counter.delivered == len(sizes)


@given(places=st.sets(st.integers(1, 50), max_size=5), cuts=st.lists(st.integers(0, 5000), max_size=20))
def test_other_frames_in_between_are_passed_over(places: set[int], cuts: list[int]) -> None:
    counter = DeliveryCounter()
    parts = (streams.delivery(tag) + (streams.heartbeat() if tag in places else b"") for tag in range(1, 51))
    assert count_in_pieces(counter, b"".join(parts), cuts) == 0
    assert counter.delivered == 50


def test_after_two_deliveries_nothing_is_walked_any_more() -> None:
    counter = DeliveryCounter()
    stream = streams.deliveries(range(1, 1001))
    stride = len(stream) // 1000
    assert count_in_pieces(counter, stream, [2 * stride]) == 0
    assert (counter.delivered, counter.walked) == (1000, 2)
    assert counter.spans == [DeliverySpan(2 * stride, 998, stride)]


def test_a_body_of_many_frames_is_one_delivery() -> None:
    counter = DeliveryCounter()
    stream = b"".join(streams.delivery(tag, b"b" * 1000, frame_bytes_max=108) for tag in range(1, 11))
    assert count_in_pieces(counter, stream, list(range(0, len(stream), 700))) == 0
    assert counter.delivered == 10


def test_consumers_with_equally_long_tags_may_share_a_channel() -> None:
    counter = DeliveryCounter()
    consumers = itertools.cycle(["c0000", "c0001"])
    stream = b"".join(streams.delivery(tag, consumer=next(consumers)) for tag in range(1, 101))
    stride = len(stream) // 100
    assert count_in_pieces(counter, stream, [2 * stride]) == 0
    assert (counter.delivered, counter.walked) == (100, 2)


def test_a_lost_delivery_is_noticed() -> None:
    counter = DeliveryCounter()
    with pytest.raises(BrokerRefused, match="got delivery tag 6, expected 5"):
        count_in_pieces(counter, streams.deliveries([1, 2, 3, 4, 6, 7]), [])


def test_a_lost_delivery_is_noticed_in_the_stride_as_well() -> None:
    counter = DeliveryCounter()
    stream = streams.deliveries([1, 2, 3, 4, 6, 7])
    with pytest.raises(BrokerRefused, match="got delivery tag 6, expected 5"):
        count_in_pieces(counter, stream, [len(stream) // 3])


def test_a_close_ends_the_measurement_with_the_reason_of_the_broker() -> None:
    counter = DeliveryCounter()
    stream = streams.deliveries([1, 2]) + streams.channel_close(406, "PRECONDITION_FAILED - unknown delivery tag 9")
    with pytest.raises(BrokerRefused, match="406 PRECONDITION_FAILED"):
        count_in_pieces(counter, stream, [])

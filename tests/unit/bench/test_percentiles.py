import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.bench.percentiles import LatencySamples, nearest_rank


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300), st.integers(1, 1000))
def test_nearest_rank_is_the_smallest_value_that_covers_the_share(values: list[int], per_mille: int) -> None:
    found = nearest_rank(sorted(values), per_mille)
    covered = [value for value in values if sum(other <= value for other in values) * 1000 >= per_mille * len(values)]
    assert found == min(covered)


def test_no_samples_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no samples"):
        nearest_rank([], 500)
    assert LatencySamples().summary() is None


def test_a_hundred_samples_by_hand() -> None:
    samples = LatencySamples()
    samples.begun_after_ns = 0
    samples.add_since([1_000_000 - value * 1000 for value in range(1, 101)], now_ns=1_000_000)
    summary = samples.summary()
    assert summary is not None
    assert (summary.samples, summary.p50_us, summary.p90_us, summary.p99_us) == (100, 50, 90, 99)
    assert (summary.p999_us, summary.max_us) == (100, 100)


def test_samples_begun_in_the_warm_up_are_left_out() -> None:
    samples = LatencySamples()
    samples.add_since([100], now_ns=200)
    samples.begun_after_ns = 150
    samples.add_since([149, 150], now_ns=200)
    summary = samples.summary()
    assert summary is not None
    assert summary.samples == 1

"""The load generator fills a stream and reads it, on this broker and on the reference."""

from __future__ import annotations

import pytest

from pandomq.bench.measurements.streams import measure_stream

from .broker_under_test import BrokerUnderTest


@pytest.mark.parametrize("prefetch", [1, 500])
def test_a_stream_is_filled_and_read_whole(broker: BrokerUnderTest, prefetch: int) -> None:
    found = measure_stream(broker.url, 2_000, 700, prefetch, 2, None)
    assert found.fill.messages == found.read.messages == 2_000
    assert found.fill.rate > 0
    assert found.read.rate > 0
    assert found.read.broker_cpu_us is None

"""The load generator fills a queue with exactly as many messages as it is told."""

from __future__ import annotations

import msgspec

from pandomq.bench.filling import fill, queued_count
from pandomq.bench.load import Load

from .broker_under_test import BrokerUnderTest, Names


def test_a_queue_holds_what_it_was_filled_with(broker: BrokerUnderTest, names: Names) -> None:
    queue = names.queue()
    load = Load(url=broker.url, size_bytes=100, persistent=True, durable=True, confirm_window=50)
    filled = fill(load, queue, 1234)
    assert queued_count(load, queue) == 1234
    assert filled.rate > 0
    fill(msgspec.structs.replace(load, priorities=3), queue, 1)
    assert queued_count(load, queue) == 1235

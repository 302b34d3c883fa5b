"""Publishers and consumers over a pair of sockets, with the test as the broker at the other end."""

import socket
import time
from collections.abc import Iterator

import pytest

from pandomq.bench.backlog import BacklogLimit
from pandomq.bench.client import wire
from pandomq.bench.client.batch import Batch, encode_batch
from pandomq.bench.client.stride import DeliveryCounter
from pandomq.bench.consuming import LoadConsumer, StampReader
from pandomq.bench.load import Load
from pandomq.bench.loop import Loop
from pandomq.bench.percentiles import LatencySamples
from pandomq.bench.publishing import FloodPublisher, PacedPublisher
from tests.unit.bench import streams

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


def batch(size_bytes: int = 16) -> Batch:
    return encode_batch(Load(url="", size_bytes=size_bytes), "", ["q"], 1, 131072)


def consumer(
    connection: socket.socket, backlog: BacklogLimit, ack_every: int = 0, read_before: bytes = b""
) -> LoadConsumer:
    return LoadConsumer(
        connection,
        read_before,
        ack_every=ack_every,
        message_bytes=200,
        receive_bytes=1000,
        backlog=backlog,
        reader=None,
    )


def test_a_publisher_stops_at_its_confirm_window_and_goes_on_after_a_confirm(pair: Pair) -> None:
    ours, theirs = pair
    messages = batch()
    publisher = FloodPublisher(ours, messages, confirm_window=5, backlog=BacklogLimit(0, 1))
    publisher.writable()
    assert len(theirs.recv(65536)) == 5 * messages.message_bytes
    assert not publisher.wants_write
    theirs.send(streams.ack(3, multiple=True))
    publisher.readable()
    assert publisher.wants_write
    publisher.writable()
    assert publisher.published == 8


def test_publishers_together_keep_to_the_backlog(pair: Pair) -> None:
    ours, _ = pair
    backlog = BacklogLimit(messages_max=10, copies=2)
    first, second = (FloodPublisher(ours, batch(), confirm_window=0, backlog=backlog) for _ in range(2))
    first.writable()
    assert (first.published, first.wants_write, second.wants_write) == (10, False, False)
    # Each publish leads to two deliveries here: six of them make room for three publishes.
    backlog.delivered = 6
    second.writable()
    assert second.published == 3


def test_a_stopped_publisher_finishes_the_message_it_began(pair: Pair) -> None:
    ours, theirs = pair
    messages = batch(size_bytes=1_000_000)
    publisher = FloodPublisher(ours, messages, confirm_window=0, backlog=BacklogLimit(0, 1))
    publisher.writable()
    publisher.stop()
    received = 0
    while publisher.wants_write:
        received += len(theirs.recv(1_000_000))
        publisher.writable()
    ours.close()
    while data := theirs.recv(1_000_000):
        received += len(data)
    assert received == publisher.published * messages.message_bytes


def test_a_consumer_acks_every_so_many_by_count(pair: Pair) -> None:
    ours, theirs = pair
    counted = BacklogLimit(0, 1)
    endpoint = consumer(ours, counted, ack_every=3)
    theirs.send(streams.deliveries(range(1, 9)))
    endpoint.readable()
    assert counted.delivered == 8
    assert theirs.recv(1000) == streams.ack(3, multiple=True) + streams.ack(6, multiple=True)
    endpoint.ack_rest()
    assert theirs.recv(1000) == streams.ack(8, multiple=True)


def test_acks_of_single_deliveries_are_not_multiple(pair: Pair) -> None:
    ours, theirs = pair
    endpoint = consumer(ours, BacklogLimit(0, 1), ack_every=1)
    theirs.send(streams.deliveries([1, 2]))
    endpoint.readable()
    assert theirs.recv(1000) == streams.ack(1) + streams.ack(2)


def test_a_consumer_takes_over_what_was_read_during_set_up_and_grows_for_large_bodies(pair: Pair) -> None:
    ours, theirs = pair
    counted = BacklogLimit(0, 1)
    stream = b"".join(streams.delivery(tag, b"l" * 5000) for tag in range(1, 5))
    endpoint = consumer(ours, counted, read_before=stream[:100])
    for start in range(100, len(stream), 300):
        theirs.send(stream[start : start + 300])
        endpoint.readable()
    assert counted.delivered == 4


def test_a_broker_that_closes_the_connection_ends_the_measurement(pair: Pair) -> None:
    ours, theirs = pair
    endpoint = consumer(ours, BacklogLimit(0, 1))
    theirs.close()
    with pytest.raises(wire.BrokerRefused, match="closed"):
        endpoint.readable()


def test_stamps_in_bodies_become_latencies() -> None:
    samples = LatencySamples()
    samples.begun_after_ns = 0
    reader = StampReader(16, samples)
    sent_ns = time.monotonic_ns() - 5_000_000
    stream = bytearray(streams.deliveries([1, 2], sent_ns.to_bytes(8) + bytes(8)))
    counter = DeliveryCounter()
    counter.count(stream, 0, len(stream))
    reader.look(stream, counter.spans)
    summary = samples.summary()
    assert summary is not None
    assert summary.samples == 2
    assert summary.p50_us >= 5000


def test_a_paced_publisher_sends_what_is_due_with_the_time_it_was_due(pair: Pair) -> None:
    ours, theirs = pair
    messages = batch()
    publisher = PacedPublisher(
        ours,
        messages,
        body_bytes=16,
        interval_ns=1000,
        start_ns=50_000,
        backlog=BacklogLimit(0, 1),
        samples=LatencySamples(),
    )
    publisher.send_due(49_999)
    assert publisher.published == 0
    publisher.send_due(52_500)
    data = theirs.recv(65536)
    assert publisher.published == 3
    stamps = [data[(number + 1) * messages.message_bytes - 17 :][:8] for number in range(3)]
    assert [int.from_bytes(stamp) for stamp in stamps] == [50_000, 51_000, 52_000]


def test_the_loop_lets_ready_endpoints_work_and_forgets_removed_ones(pair: Pair) -> None:
    ours, theirs = pair
    counted = BacklogLimit(0, 1)
    endpoint = consumer(ours, counted)
    loop = Loop()
    loop.add(endpoint)
    theirs.send(streams.deliveries([1]))
    loop.turn(0.1)
    assert counted.delivered == 1
    loop.remove(endpoint)
    theirs.send(streams.deliveries([2]))
    loop.turn(0)
    assert counted.delivered == 1
    loop.close()

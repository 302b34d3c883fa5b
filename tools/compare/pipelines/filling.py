"""The input of the jobs: messages through a fanout exchange into a stream and a quorum queue, which a consumer empties.

Bodies are random, and differ over some megabytes, so that they cannot be compressed.
"""

import time
from random import Random
from typing import Final

from pandomq.bench import limits
from pandomq.bench.backlog import BacklogLimit
from pandomq.bench.client import wire
from pandomq.bench.client.batch import Batch
from pandomq.bench.client.closing import close_connections
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.url import BrokerUrl
from pandomq.bench.consuming import LoadConsumer
from pandomq.bench.loop import Loop
from pandomq.bench.publishing import FloodPublisher

EXCHANGE: Final = "bench.pipelines"
STREAM: Final = "bench.stream"
QUEUE: Final = "bench.queue"
TRACE: Final = "pandomq.trace"
TRACE_BYTES: Final = 30_000_000_000
"""More than any trace here, so that all of it is rolled up."""
SHAPES: Final[dict[str, wire.Arguments]] = {
    STREAM: {"x-queue-type": "stream"},
    QUEUE: {"x-queue-type": "quorum"},
}
BATCH_BYTES: Final = 8 * 1024**2
"""Different messages: more than a dictionary of Parquet holds."""
CONFIRM_WINDOW: Final = 5000
PREFETCH: Final = 5000
ACK_EVERY: Final = 500
STALLED_S: Final = 60.0


def declare(url: BrokerUrl) -> None:
    with LoadSession(url) as session:
        session.call(wire.exchange_declare(CHANNEL, EXCHANGE, "fanout", {}), wire.EXCHANGE_DECLARE_OK)
        for name, arguments in SHAPES.items():
            session.call(wire.queue_declare(CHANNEL, name, arguments, durable=True), wire.QUEUE_DECLARE_OK)
            session.call(wire.queue_bind(CHANNEL, name, EXCHANGE, ""), wire.QUEUE_BIND_OK)
        arguments = {"x-queue-type": "stream", "x-max-length-bytes": TRACE_BYTES}
        session.call(wire.queue_declare(CHANNEL, TRACE, arguments, durable=True), wire.QUEUE_DECLARE_OK)


def fill(url: BrokerUrl, messages: int, body_bytes: int) -> float:
    """Seconds until all are confirmed, delivered from the queue and acked. Raises BrokerRefused if nothing moves."""
    consumer = _open_consumer(url, body_bytes)
    session = LoadSession(url)
    batch = _random_batch(body_bytes, session.frame_bytes_max)
    session.call(wire.confirm_select(CHANNEL), wire.CONFIRM_SELECT_OK)
    publisher = FloodPublisher(session.release()[0], batch, CONFIRM_WINDOW, BacklogLimit(messages, 1))
    try:
        return _wait(publisher, consumer, messages)
    finally:
        close_connections([publisher.connection, consumer.connection])


def _random_batch(body_bytes: int, frame_bytes_max: int) -> Batch:
    random = Random(1)
    properties = wire.MessageProperties(persistent=True)

    def message() -> bytes:
        return wire.publish(CHANNEL, EXCHANGE, "", properties, random.randbytes(body_bytes), frame_bytes_max)

    return Batch([message() for _ in range(BATCH_BYTES // len(message()))])


def _open_consumer(url: BrokerUrl, body_bytes: int) -> LoadConsumer:
    session = LoadSession(url)
    session.call(wire.basic_qos(CHANNEL, PREFETCH), wire.BASIC_QOS_OK)
    session.send(wire.basic_consume(CHANNEL, QUEUE, "c", {}, auto_ack=False, no_wait=True))
    connection, read_before = session.release()
    return LoadConsumer(
        connection,
        read_before,
        ack_every=ACK_EVERY,
        message_bytes=body_bytes + 1024,
        receive_bytes=limits.RECEIVE_BYTES_MIN,
        backlog=BacklogLimit(0, 1),
        reader=None,
    )


def _wait(publisher: FloodPublisher, consumer: LoadConsumer, messages: int) -> float:
    loop = Loop()
    loop.add(publisher)
    loop.add(consumer)
    begun_s = moved_s = time.monotonic()
    before = (0, 0)
    while min(count := (publisher.confirms.acked, consumer.counter.delivered)) < messages:
        loop.turn(1.0)
        now_s = time.monotonic()
        if count != before:
            before, moved_s = count, now_s
        elif now_s - moved_s > STALLED_S:
            raise wire.BrokerRefused(f"no progress for {STALLED_S:.0f} s after {count} messages")
    loop.close()
    consumer.ack_rest()
    return time.monotonic() - begun_s

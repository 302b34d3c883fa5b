"""The account of a trial's messages: the queue is emptied, and every confirmed number has to be there."""

import time
from collections.abc import Set
from typing import NamedTuple

from pandomq.bench import limits as bench_limits
from pandomq.bench.backlog import BacklogLimit
from pandomq.bench.client import wire
from pandomq.bench.client.closing import close_connections
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.stride import DeliverySpan
from pandomq.bench.client.url import BrokerUrl
from pandomq.bench.consuming import LoadConsumer
from pandomq.bench.loop import Loop
from tools.compare.clusters import limits
from tools.compare.clusters.enduring import NUMBER

_PREFETCH = 2000
_ACK_EVERY = 200


class Account(NamedTuple):
    confirmed: int
    lost: int
    duplicates: int

    def insist(self) -> None:
        if self.lost:
            raise wire.BrokerRefused(f"{self.lost} of {self.confirmed} confirmed messages are lost")


class Numbers:
    """Reads the numbers out of deliveries."""

    def __init__(self, body_bytes: int) -> None:
        self._body_bytes = body_bytes
        self.seen: set[int] = set()
        self.deliveries = 0

    def look(self, buffer: bytearray, spans: list[DeliverySpan]) -> None:
        for start, deliveries, stride in spans:
            # The body is at the end of a delivery, before the last frame's end octet.
            first = start + stride - 1 - self._body_bytes
            self.seen.update(
                NUMBER.unpack_from(buffer, at)[0] for at in range(first, first + deliveries * stride, stride)
            )
            self.deliveries += deliveries


def collect(url: BrokerUrl, queue: str, confirmed: Set[int]) -> Account:
    """Takes and acks everything in the queue."""
    session = LoadSession(url)
    session.call(wire.basic_qos(CHANNEL, _PREFETCH), wire.BASIC_QOS_OK)
    session.send(wire.basic_consume(CHANNEL, queue, "c", {}, auto_ack=False, no_wait=True))
    connection, read_before = session.release()
    numbers = Numbers(limits.FAULT_BODY_BYTES)
    consumer = LoadConsumer(
        connection,
        read_before,
        ack_every=_ACK_EVERY,
        message_bytes=limits.FAULT_BODY_BYTES + 1024,
        receive_bytes=bench_limits.RECEIVE_BYTES_MIN,
        backlog=BacklogLimit(0, 1),
        reader=numbers,
    )
    loop = Loop()
    loop.add(consumer)
    try:
        moved_s, before = time.monotonic(), 0
        while not numbers.seen >= confirmed and time.monotonic() - moved_s < limits.COLLECT_QUIET_S:
            loop.turn(0.1)
            if numbers.deliveries != before:
                before, moved_s = numbers.deliveries, time.monotonic()
        consumer.ack_rest()
    finally:
        loop.close()
        close_connections([connection])
    lost = len(confirmed - numbers.seen)
    return Account(len(confirmed), lost, numbers.deliveries - len(numbers.seen))

"""What came of the messages of a trial: the queue is emptied, and every number that was confirmed has to be there."""

import time
from collections.abc import Set
from typing import NamedTuple

from pandomq.bench import limits as bench_limits
from pandomq.bench import wire
from pandomq.bench.backlog import Backlog
from pandomq.bench.clusters import limits
from pandomq.bench.clusters.enduring import NUMBER
from pandomq.bench.consuming import Consumer
from pandomq.bench.farewell import say_farewell
from pandomq.bench.loop import Loop
from pandomq.bench.session import CHANNEL, Session
from pandomq.bench.stride import Span
from pandomq.bench.url import BrokerUrl

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

    def look(self, buffer: bytearray, spans: list[Span]) -> None:
        for start, deliveries, stride in spans:
            # The body stands at the end of a delivery, before the last frame's end octet.
            first = start + stride - 1 - self._body_bytes
            self.seen.update(
                NUMBER.unpack_from(buffer, at)[0] for at in range(first, first + deliveries * stride, stride)
            )
            self.deliveries += deliveries


def collect(url: BrokerUrl, queue: str, confirmed: Set[int]) -> Account:
    """Takes and acks all that the queue holds."""
    session = Session(url)
    session.call(wire.basic_qos(CHANNEL, _PREFETCH), wire.BASIC_QOS_OK)
    session.send(wire.basic_consume(CHANNEL, queue, "c", {}, auto_ack=False, no_wait=True))
    connection, read_before = session.release()
    numbers = Numbers(limits.FAULT_BODY_BYTES)
    consumer = Consumer(
        connection,
        read_before,
        ack_every=_ACK_EVERY,
        message_bytes=limits.FAULT_BODY_BYTES + 1024,
        receive_bytes=bench_limits.RECEIVE_BYTES_MIN,
        backlog=Backlog(0, 1),
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
        say_farewell([connection])
    lost = len(confirmed - numbers.seen)
    return Account(len(confirmed), lost, numbers.deliveries - len(numbers.seen))

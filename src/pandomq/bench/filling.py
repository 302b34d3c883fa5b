"""Puts a number of messages into a queue that nobody consumes, and waits until the broker has confirmed them all."""

import contextlib
import struct
import time
from typing import NamedTuple

from pandomq.bench import wire
from pandomq.bench.backlog import Backlog
from pandomq.bench.batch import encode_batch
from pandomq.bench.farewell import say_farewell
from pandomq.bench.load import Load
from pandomq.bench.loop import Loop
from pandomq.bench.publishing import FloodPublisher
from pandomq.bench.run import Show, show_nothing
from pandomq.bench.session import CHANNEL, Session
from pandomq.bench.url import parse_url

_TURN_S = 0.05
_SILENCE_S_MAX = 60.0
"""Without a confirm for this long it is given up; a broker that writes pages or snapshots may pause."""
_SHOW_EVERY_S = 0.5


class Filled(NamedTuple):
    seconds: float
    rate: float


def fill(load: Load, queue: str, count: int, show: Show = show_nothing) -> Filled:
    """Messages as the load has them, with a confirm window. Raises BrokerRefused if not all are confirmed."""
    assert load.confirm_window, "without confirms nobody knows what is queued"
    url = parse_url(load.url)
    session = Session(url)
    session.call(wire.queue_declare(CHANNEL, queue, load.queue_arguments, durable=load.durable), wire.QUEUE_DECLARE_OK)
    session.call(wire.confirm_select(CHANNEL), wire.CONFIRM_SELECT_OK)
    batch = encode_batch(load, "", [queue], CHANNEL, session.frame_bytes_max)
    publisher = FloodPublisher(session.release()[0], batch, load.confirm_window, Backlog(count, 1))
    with contextlib.closing(Loop()) as loop:
        loop.add(publisher)
        try:
            seconds = _drive(loop, publisher, count, show)
        finally:
            say_farewell([publisher.connection])
    if publisher.confirms.nacked:
        raise wire.BrokerRefused(f"{publisher.confirms.nacked} messages were refused")
    return Filled(seconds, count / seconds)


def _drive(loop: Loop, publisher: FloodPublisher, count: int, show: Show) -> float:
    begun_s = moved_s = shown_s = time.monotonic()
    settled = shown = 0
    while settled < count:
        loop.turn(_TURN_S)
        loop.refresh(publisher)
        now_s = time.monotonic()
        if publisher.confirms.settled > settled:
            settled, moved_s = publisher.confirms.settled, now_s
        elif now_s - moved_s > _SILENCE_S_MAX:
            raise wire.BrokerRefused(
                f"{settled} of {count} messages were confirmed, then none for {_SILENCE_S_MAX:.0f} s"
            )
        if now_s - shown_s > _SHOW_EVERY_S:
            show("fill", settled / count, (settled - shown) / (now_s - shown_s))
            shown, shown_s = settled, now_s
    return time.monotonic() - begun_s


def queued_count(load: Load, queue: str) -> int:
    """How many messages of the queue are ready."""
    with Session(parse_url(load.url)) as session:
        declare = wire.queue_declare(CHANNEL, queue, load.queue_arguments, durable=load.durable)
        answer = session.call(declare, wire.QUEUE_DECLARE_OK)
        (ready,) = struct.unpack_from(">I", answer, 4 + 1 + answer[4])
        return int(ready)

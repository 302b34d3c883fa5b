"""The input and the output of streams, read over AMQP by another client than Spark's.

The input streams are the reference: their publishers may have repeated messages when a broker died. They contain all
confirmed messages; the output has each of their messages, once, in the order of its stream.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pika
from pika.exceptions import AMQPError

Connect = Callable[[], pika.BlockingConnection]
PREFETCH = 1000
PATIENCE_S = 120.0
"""The time for everything that has to arrive."""
SILENCE_S = 0.3
"""The time after which the broker is asked for further messages."""
PAUSE_S = 0.2
RUN = 20
"""The number of messages between two pauses of a publisher."""


def declare_stream(connect: Connect, name: str) -> None:
    with contextlib.closing(connect()) as connection:
        connection.channel().queue_declare(name, durable=True, arguments={"x-queue-type": "stream"})


def read_stream(connect: Connect, name: str, at_least: int, *, silence_s: float = SILENCE_S) -> list[bytes]:
    """Returns all bodies, at least so many; offsets have no gaps. Ends when nothing has arrived for a while, and the
    broker has no more."""
    bodies: list[bytes] = []
    last_s = time.monotonic()
    with contextlib.closing(connect()) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=PREFETCH)
        counter = connection.channel()
        rows = channel.consume(name, arguments={"x-stream-offset": "first"}, inactivity_timeout=silence_s)
        for method, properties, body in rows:
            if method is None:
                there = counter.queue_declare(name, passive=True).method.message_count
                if len(bodies) >= max(at_least, there):
                    break
                waited_s = time.monotonic() - last_s
                assert waited_s < PATIENCE_S, f"{name} has {len(bodies)} of {max(at_least, there)}, and no more come"
                continue
            assert properties.headers["x-stream-offset"] == len(bodies), "an offset is missing, or comes twice"
            bodies.append(body)
            last_s = time.monotonic()
            channel.basic_ack(method.delivery_tag)
    return bodies


class Publisher:
    """Publishes numbered lines to a stream in a thread, with confirms, until it is told to end; repeats unconfirmed
    messages."""

    def __init__(self, connect: Connect, stream: str, pause_s: float = PAUSE_S) -> None:
        self.stream = stream
        self.confirmed = 0
        self._connect = connect
        self._pause_s = pause_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"publisher of {stream}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._end.is_set():
            with contextlib.suppress(AMQPError, OSError), contextlib.closing(self._connect()) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                while not self._end.is_set():
                    for _ in range(RUN):
                        channel.basic_publish(
                            "", self.stream, f"{self.stream}-{self.confirmed}".encode(), mandatory=True
                        )
                        self.confirmed += 1
                    self._end.wait(self._pause_s)
            time.sleep(self._pause_s)


@contextlib.contextmanager
def publishing(connect: Connect, *streams: str) -> Iterator[list[Publisher]]:
    publishers = [Publisher(connect, stream) for stream in streams]
    for publisher in publishers:
        publisher.start()
    try:
        yield publishers
    finally:
        for publisher in publishers:
            publisher.end()


def line_out(stream: str, offset: int, body: str) -> str:
    """Returns the transformation of a message: its place, and its body in upper case."""
    return f"{stream} {offset} {body.upper()}"


TRANSFORMATION = "concat_ws(' ', stream, offset, upper(cast(body as string))) as body"
"""The same, for Spark."""


def check_copy(connect: Connect, sources: list[Publisher], copy: str) -> int:
    """Waits until the output is complete, and checks that each message is there once, in order; returns the number of
    rows."""
    truth = {publisher.stream: read_stream(connect, publisher.stream, publisher.confirmed) for publisher in sources}
    for publisher in sources:
        lines = set(truth[publisher.stream])
        missing = [at for at in range(publisher.confirmed) if f"{publisher.stream}-{at}".encode() not in lines]
        assert not missing, f"{publisher.stream} lost what was confirmed: {missing[:10]}"
    total = sum(map(len, truth.values()))
    found = read_stream(connect, copy, total)
    by_stream: dict[str, list[str]] = defaultdict(list)
    for body in found:
        by_stream[body.decode().partition(" ")[0]].append(body.decode())
    for stream, bodies in truth.items():
        expected = [line_out(stream, offset, body.decode()) for offset, body in enumerate(bodies)]
        assert_equal(by_stream.pop(stream, []), expected, stream)
    assert not by_stream, f"rows of streams that were not read: {sorted(by_stream)}"
    return total


def assert_equal(found: list[str], expected: list[str], stream: str) -> None:
    if found == expected:
        return
    counts: dict[str, int] = defaultdict(int)
    for line in found:
        counts[line] += 1
    doubled = [line for line, count in counts.items() if count > 1]
    lost = [line for line in expected if line not in counts]
    first: Any = next((pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]), None)
    raise AssertionError(f"{stream}: doubled {doubled[:5]}, lost {lost[:5]}, first difference {first}")

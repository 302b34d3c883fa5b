"""A long queue: filling, memory, restart, draining. Its cost in memory, time and processor time.

Messages are published with confirms, so that the broker holds every one of them when its memory is measured. The
figures of the first and the last tenth show whether the cost of a message depends on their number.
"""

import time
from collections.abc import Callable
from functools import partial

import msgspec

from pandomq.bench import limits, process
from pandomq.bench.backlog import BacklogLimit
from pandomq.bench.client import wire
from pandomq.bench.client.batch import encode_batch
from pandomq.bench.client.closing import close_connections
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.url import BrokerUrl, parse_url
from pandomq.bench.consuming import LoadConsumer
from pandomq.bench.load import Load
from pandomq.bench.loop import Loop
from pandomq.bench.publishing import FloodPublisher
from pandomq.bench.run import Show, show_nothing

QUEUE = "bench.long"
KINDS: dict[str, dict[str, object]] = {
    "persistent": {},
    "transient": {"persistent": False},
    "priority": {"queue_arguments": {"x-max-priority": 10}, "priorities": 10},
    "ttl": {"queue_arguments": {"x-message-ttl": 24 * 3600 * 1000}},
    "holes": {},
}
"""The kinds of messages and queues. In a queue with holes a tenth is acknowledged out of order."""

_CONFIRM_WINDOW = 2000
_PREFETCH = 2000
_HOLES_WINDOW = 20_000
_STALLED_S = 60.0


class LongQueuePhase(msgspec.Struct, frozen=True, kw_only=True):
    messages: int
    seconds: float
    rate: float
    broker_cpu_us: float
    """For one message; and the same for the first and the last tenth of them."""
    early_cpu_us: float
    late_cpu_us: float


class LongQueueResult(msgspec.Struct, kw_only=True):
    server: str
    kind: str
    messages: int
    size_bytes: int
    resident_before_bytes: int
    fill: LongQueuePhase
    queued: int = 0
    """Messages in the queue when it was full."""
    resident_full_bytes: int = 0
    resident_peak_bytes: int = 0
    """The maximum memory of the process until it was full."""
    stop_s: float | None = None
    start_s: float | None = None
    """Time until a client is served again; None if it was not restarted."""
    resident_restarted_bytes: int | None = None
    kept: int | None = None
    """Messages in the queue after the restart."""
    drain: LongQueuePhase | None = None
    resident_drained_bytes: int = 0


def load_of(kind: str, url: str, size_bytes: int) -> Load:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is unknown: expected one of {', '.join(KINDS)}")
    settings = {"durable": True, "persistent": True, **KINDS[kind]}
    return msgspec.convert(
        {"url": url, "size_bytes": size_bytes, "confirm_window": _CONFIRM_WINDOW, **settings}, type=Load
    )


class LongQueue:
    """One broker with one long queue. `pid` is the broker's process."""

    def __init__(self, load: Load, kind: str, messages: int, pid: int, show: Show = show_nothing) -> None:
        self._load = load
        self._url: BrokerUrl = parse_url(load.url)
        self._pid = pid
        self._show = show
        with LoadSession(self._url) as session:
            server = session.server_version
        before_bytes = process.resident_bytes(pid)
        self._declare()
        self.result = LongQueueResult(
            server=server,
            kind=kind,
            messages=messages,
            size_bytes=load.size_bytes,
            resident_before_bytes=before_bytes,
            fill=self._fill(messages),
        )
        if kind == "holes":
            self._punch_holes(messages // 10)
        process.wait_until_idle(pid)
        self.result.queued = self._declare()
        self.result.resident_full_bytes = process.resident_bytes(pid)
        self.result.resident_peak_bytes = process.peak_resident_bytes(pid)

    def restart(self, restart: Callable[[], tuple[float, float, int, str]]) -> None:
        """`restart` returns how long the end and the start took, and the new process and its URL."""
        result = self.result
        result.stop_s, result.start_s, self._pid, url = restart()
        self._url = parse_url(url)
        result.kept = self._declare()
        process.wait_until_idle(self._pid)
        result.resident_restarted_bytes = process.resident_bytes(self._pid)

    def drain(self) -> LongQueueResult:
        count = self._declare()
        if count:
            self._drain(count)
        process.wait_until_idle(self._pid)
        self.result.resident_drained_bytes = process.resident_bytes(self._pid)
        with LoadSession(self._url) as session:
            session.wait_longer()
            session.call(wire.queue_delete(CHANNEL, QUEUE), wire.QUEUE_DELETE_OK)
        return self.result

    def _drain(self, count: int) -> None:
        consumer = self._open_consumer(_PREFETCH, ack_every=100)
        try:
            self.result.drain = self._watch("drain", consumer, count, lambda: consumer.counter.delivered)
            consumer.ack_rest()
        finally:
            close_connections([consumer.connection])

    def _declare(self) -> int:
        """Returns the number of ready messages."""
        load = self._load
        with LoadSession(self._url) as session:
            declare = wire.queue_declare(CHANNEL, QUEUE, load.queue_arguments, durable=load.durable)
            payload = session.call(declare, wire.QUEUE_DECLARE_OK)
        return int.from_bytes(payload[5 + payload[4] :][:4], "big")

    def _fill(self, messages: int) -> LongQueuePhase:
        session = LoadSession(self._url)
        batch = encode_batch(self._load, "", [QUEUE], CHANNEL, session.frame_bytes_max)
        session.call(wire.confirm_select(CHANNEL), wire.CONFIRM_SELECT_OK)
        publisher = FloodPublisher(session.release()[0], batch, self._load.confirm_window, BacklogLimit(messages, 1))
        try:
            return self._watch("fill", publisher, messages, lambda: publisher.confirms.acked)
        finally:
            close_connections([publisher.connection])

    def _punch_holes(self, count: int) -> None:
        """Takes as many messages at once as a client may, acknowledges every second one, and returns the rest."""
        while count > 0:
            window = min(_HOLES_WINDOW, 2 * count)
            consumer = self._open_consumer(window, ack_every=0)
            try:
                self._watch("holes", consumer, window, partial(_delivered, consumer))
                acks = b"".join(wire.basic_ack(CHANNEL, tag, multiple=False) for tag in range(2, window + 1, 2))
                consumer.connection.setblocking(True)
                consumer.connection.sendall(acks)
            finally:
                close_connections([consumer.connection])
            count -= window // 2

    def _open_consumer(self, prefetch: int, ack_every: int) -> LoadConsumer:
        session = LoadSession(self._url)
        session.call(wire.basic_qos(CHANNEL, prefetch), wire.BASIC_QOS_OK)
        session.send(wire.basic_consume(CHANNEL, QUEUE, "c", {}, auto_ack=False, no_wait=True))
        connection, read_before = session.release()
        return LoadConsumer(
            connection,
            read_before,
            ack_every=ack_every,
            message_bytes=self._load.size_bytes + 1024,
            receive_bytes=limits.RECEIVE_BYTES_MIN,
            backlog=BacklogLimit(0, 1),
            reader=None,
        )

    def _watch(
        self, phase: str, endpoint: FloodPublisher | LoadConsumer, messages: int, done: Callable[[], int]
    ) -> LongQueuePhase:
        """Watches the endpoint until this many messages are done. Raises BrokerRefused if there is no progress any
        more."""
        loop = Loop()
        loop.add(endpoint)
        begun_s = moved_s = shown_s = time.monotonic()
        marks = dict.fromkeys((0, messages // 10, messages - messages // 10, messages), 0.0)
        marks[0] = process.cpu_seconds(self._pid)
        before = 0
        while (count := done()) < messages:
            loop.turn(1.0)
            now_s = time.monotonic()
            if count != before:
                before, moved_s = count, now_s
                for mark in marks:
                    if not marks[mark] and count >= mark:
                        marks[mark] = process.cpu_seconds(self._pid)
            elif now_s - moved_s > _STALLED_S:
                raise wire.BrokerRefused(f"{phase}: no progress for {_STALLED_S:.0f} s after {count:,} messages")
            if now_s - shown_s > 0.5:
                self._show(phase, count / messages, count / (now_s - begun_s))
                shown_s = now_s
        loop.close()
        seconds = time.monotonic() - begun_s
        at = [marks[mark] or process.cpu_seconds(self._pid) for mark in sorted(marks)]
        tenth = max(1, messages // 10)
        return LongQueuePhase(
            messages=messages,
            seconds=seconds,
            rate=messages / seconds,
            broker_cpu_us=(at[-1] - at[0]) * 1e6 / max(1, messages),
            early_cpu_us=(at[1] - at[0]) * 1e6 / tenth,
            late_cpu_us=(at[-1] - at[-2]) * 1e6 / tenth,
        )


def _delivered(consumer: LoadConsumer) -> int:
    return consumer.counter.delivered

"""The publishers and consumers of one load, and the turns they take."""

import time
from typing import NamedTuple

from pandomq.bench import limits, process
from pandomq.bench.backlog import BacklogLimit
from pandomq.bench.client import wire
from pandomq.bench.client.batch import encode_batch
from pandomq.bench.client.closing import close_connections
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.url import BrokerUrl, parse_url
from pandomq.bench.consuming import LoadConsumer, StampReader
from pandomq.bench.load import Load
from pandomq.bench.loop import Loop
from pandomq.bench.percentiles import LatencySamples
from pandomq.bench.publishing import FloodPublisher, PacedPublisher
from pandomq.bench.topology import Topology

_TURN_S = 0.05
_QUIET_NS = 3_000_000_000
"""A broker may work on one read for this long before the next delivery arrives."""


class LoadTotals(NamedTuple):
    published: int
    delivered: int
    confirmed: int


class Crew:
    """Opens its connections at once; `turn` lets every ready endpoint work; `close` ends all connections."""

    def __init__(self, load: Load, url: BrokerUrl, topology: Topology) -> None:
        self._load = load
        self._url = url
        self._consumer_url = parse_url(load.consumer_url) if load.consumer_url else url
        self._topology = topology
        self._loop = Loop()
        self._backlog = BacklogLimit(load.backlog_max if load.consumers else 0, load.copies)
        self._floods: list[FloodPublisher] = []
        self._paced: list[PacedPublisher] = []
        self._consumers: list[LoadConsumer] = []
        self.deliver_samples = LatencySamples()
        self.confirm_samples = LatencySamples()
        process.allow_open_files(load.publishers + load.consumers)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        for number in range(self._load.consumers):
            self._open_consumer(number)
        for number in range(self._load.publishers):
            self._open_publisher(number)

    def _open_consumer(self, number: int) -> None:
        load = self._load
        connection, read_before = self._topology.open_consumer(self._consumer_url, number).release()
        consumer = LoadConsumer(
            connection,
            read_before,
            ack_every=0 if load.auto_ack else load.ack_every,
            message_bytes=load.size_bytes + 1024,
            receive_bytes=max(limits.RECEIVE_BYTES_MIN // load.consumers, 16 * 1024),
            backlog=self._backlog,
            reader=StampReader(load.size_bytes, self.deliver_samples) if load.rate else None,
        )
        self._consumers.append(consumer)
        self._loop.add(consumer)

    def _open_publisher(self, number: int) -> None:
        load, topology = self._load, self._topology
        session = LoadSession(self._url)
        batch = encode_batch(load, topology.exchange, topology.publish_keys, CHANNEL, session.frame_bytes_max)
        if load.confirm_window:
            session.call(wire.confirm_select(CHANNEL), wire.CONFIRM_SELECT_OK)
        if not load.rate:
            flood = FloodPublisher(session.release()[0], batch, load.confirm_window, self._backlog)
            self._floods.append(flood)
            self._loop.add(flood)
            return
        if load.size_bytes > session.frame_bytes_max - wire.FRAME_OVERHEAD_BYTES:
            raise ValueError("a message of the latency mode has to fit into one frame")
        interval_ns = 1_000_000_000 * load.publishers // load.rate
        paced = PacedPublisher(
            session.release()[0],
            batch,
            body_bytes=load.size_bytes,
            interval_ns=interval_ns,
            # Publishers take turns within the interval instead of sending all at once.
            start_ns=time.monotonic_ns() + interval_ns * number // load.publishers,
            backlog=self._backlog,
            samples=self.confirm_samples,
        )
        self._paced.append(paced)
        self._loop.add(paced)

    @property
    def _publishers(self) -> tuple[FloodPublisher | PacedPublisher, ...]:
        return (*self._floods, *self._paced)

    def turn(self, now_ns: int, end_ns: int) -> None:
        """Waits for work, until `end_ns` at most, and does it."""
        wake_ns = end_ns
        for paced in self._paced:
            paced.send_due(now_ns)
            self._loop.refresh(paced)
            wake_ns = min(wake_ns, paced.next_due_ns)
        self._loop.turn(min(_TURN_S, (wake_ns - now_ns) / 1e9))
        # Deliveries may have made room for publishers that were held back.
        for flood in self._floods:
            self._loop.refresh(flood)

    def drain(self) -> int:
        """Stops the publishers and waits for outstanding deliveries; returns how many did not arrive."""
        for publisher in self._publishers:
            publisher.stop()
            self._loop.refresh(publisher)
        moved_ns = begun_ns = time.monotonic_ns()
        state: LoadTotals | None = None
        while self._missing() or any(publisher.wants_write for publisher in self._publishers):
            now_ns = time.monotonic_ns()
            if now_ns - moved_ns > _QUIET_NS or now_ns - begun_ns > limits.DRAIN_TIMEOUT_S * 1e9:
                break
            self._loop.turn(_TURN_S)
            if state != self.totals():
                state, moved_ns = self.totals(), now_ns
        for consumer in self._consumers:
            consumer.ack_rest()
        return self._missing()

    def _missing(self) -> int:
        if not self._load.consumers:
            return 0
        return (self._backlog.published - self.refused) * self._load.copies - self._backlog.delivered

    def totals(self) -> LoadTotals:
        confirmed = sum(publisher.confirms.settled for publisher in self._publishers)
        return LoadTotals(self._backlog.published, self._backlog.delivered, confirmed)

    @property
    def refused(self) -> int:
        return sum(publisher.confirms.nacked for publisher in self._publishers)

    @property
    def blocked(self) -> bool:
        return any(publisher.confirms.blocked for publisher in self._publishers)

    @property
    def walked(self) -> int:
        return sum(consumer.counter.walked for consumer in self._consumers)

    def close(self) -> None:
        self._loop.close()
        close_connections([endpoint.connection for endpoint in (*self._publishers, *self._consumers)])

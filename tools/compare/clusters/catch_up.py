"""A member that comes back and has to catch up a gigabyte: the effect on publishers, and the data sent to it.

One queue is long and has no consumer; another is published to and consumed as fast as possible. A follower is killed,
the long queue grows, the follower is started again. Its cluster reports when it has caught up. The third member
receives only new data, so the bytes that the follower gets beyond that are those for catching up.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

import msgspec

from pandomq.bench.client.session import LoadSession
from pandomq.bench.crew import Crew
from pandomq.bench.load import Load
from pandomq.bench.measurements.overview import PERSISTENT
from pandomq.bench.run import Show
from pandomq.bench.topology import Topology
from tools.compare.clusters import limits
from tools.compare.clusters.cluster import QUORUM, Cluster
from tools.compare.clusters.filling import fill

HELD = "held"
_SAMPLE_S = 0.1
_HELLO_BYTES_MAX = 2**20


class Sample(NamedTuple):
    at_s: float
    delivered: int
    """Deliveries of the flowing queue."""
    follower_bytes: int
    third_bytes: int
    """Bytes received so far."""


class CatchUp(NamedTuple):
    before_rate: float
    """Messages per second with three members, and with two."""
    without_rate: float
    meanwhile_rate: float
    """From the start of the follower until it has caught up."""
    seconds: float
    missed_bytes: int
    """Bytes that the third received from the kill until the follower took part again."""
    sent_bytes: int
    """Bytes to the follower, beyond those that the third got since then."""


def joined(samples: Sequence[Sample]) -> Sample:
    """The last one before data flows to the follower; until then it starts, and connects."""
    began = samples[0].follower_bytes + _HELLO_BYTES_MAX
    return next((sample for sample in reversed(samples) if sample.follower_bytes <= began), samples[0])


def sent_beyond(samples: Sequence[Sample]) -> int:
    """Bytes that the follower got beyond those of the third, since it takes part."""
    first, last = joined(samples), samples[-1]
    return (last.follower_bytes - first.follower_bytes) - (last.third_bytes - first.third_bytes)


def summary(before_rate: float, without_rate: float, third_at_kill_bytes: int, samples: Sequence[Sample]) -> CatchUp:
    first, last = samples[0], samples[-1]
    seconds = last.at_s - first.at_s
    rate = (last.delivered - first.delivered) / seconds
    missed_bytes = joined(samples).third_bytes - third_at_kill_bytes
    return CatchUp(before_rate, without_rate, rate, seconds, missed_bytes, sent_beyond(samples))


class Rejoining:
    """One such measurement on one cluster, in places whose bytes are counted."""

    def __init__(self, cluster: Cluster, held: int, missed: int, flow_s: float, show: Show) -> None:
        self._cluster = cluster
        self._held = held
        self._missed = missed
        self._flow_s = flow_s
        self._show = show
        self._leader = cluster.declare(HELD, 0)
        self._follower, self._third = (member for member in cluster.members if member is not self._leader)
        self._load = msgspec.structs.replace(Load(url=self._leader.address), **PERSISTENT, queue_arguments=dict(QUORUM))

    def run(self) -> CatchUp:
        fill(self._leader.url, HELD, range(self._held), self._show)
        topology = Topology(self._load)
        with LoadSession(self._leader.url) as session:
            topology.declare(session)
        before_rate = self._flow(topology)
        self._follower.kill()
        third_at_kill_bytes = self._third.place.received_bytes()
        fill(self._leader.url, HELD, range(self._held, self._held + self._missed), self._show)
        without_rate = self._flow(topology)
        samples = self._rejoin(topology)
        self._cluster.wait_until_whole()
        with LoadSession(self._leader.url) as session:
            topology.delete(session)
        return summary(before_rate, without_rate, third_at_kill_bytes, samples)

    def _flow(self, topology: Topology) -> float:
        """Deliveries per second for some time, after a warm-up."""
        with closing(Crew(self._load, self._leader.url, topology)) as crew:
            self._drive(crew, self._flow_s / 2, lambda: False)
            before, begun_s = crew.totals().delivered, time.monotonic()
            self._drive(crew, self._flow_s, lambda: False)
            rate = (crew.totals().delivered - before) / (time.monotonic() - begun_s)
            crew.drain()
        return rate

    def _rejoin(self, topology: Topology) -> list[Sample]:
        samples: list[Sample] = []
        with closing(Crew(self._load, self._leader.url, topology)) as crew, ThreadPoolExecutor(max_workers=1) as pool:
            arrived = pool.submit(self._cluster.wait_for, self._follower, HELD)
            self._drive(crew, self._flow_s / 2, lambda: False)

            def done() -> bool:
                samples.append(self._sample(crew))
                return arrived.done()

            self._cluster.start_member(self._follower)
            self._drive(crew, 2 * limits.CATCH_UP_TIMEOUT_S, done)
            arrived.result()
            crew.drain()
        return samples

    def _sample(self, crew: Crew) -> Sample:
        received = (member.place.received_bytes() for member in (self._follower, self._third))
        return Sample(time.monotonic(), crew.totals().delivered, *received)

    def _drive(self, crew: Crew, seconds: float, done: Callable[[], bool]) -> bool:
        """Runs the load; checks regularly whether it is done."""
        end_ns = time.monotonic_ns() + int(seconds * 1e9)
        look_ns = 0
        while (now_ns := time.monotonic_ns()) < end_ns:
            if now_ns >= look_ns:
                if done():
                    return True
                look_ns = now_ns + int(_SAMPLE_S * 1e9)
                self._show("flow", 1 - (end_ns - now_ns) / 1e9 / seconds, 0)
            crew.turn(now_ns, min(end_ns, look_ns))
        return False

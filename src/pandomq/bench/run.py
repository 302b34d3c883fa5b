"""One load from set-up to clean-up: declare, warm up, measure, drain, delete."""

import contextlib
import time
from collections.abc import Callable

import msgspec

from pandomq.bench import process
from pandomq.bench.client import wire
from pandomq.bench.client.session import LoadSession
from pandomq.bench.client.url import BrokerUrl, parse_url
from pandomq.bench.crew import Crew, LoadTotals
from pandomq.bench.load import Load, Measurement
from pandomq.bench.topology import Topology

_SHOW_EVERY_NS = 500_000_000

Show = Callable[[str, float, float], None]
"""Called regularly: the phase, its progress (0 to 1), and the current messages per second."""


def show_nothing(phase: str, done: float, rate: float) -> None:
    """For runs without a display."""


def measure(load: Load, show: Show = show_nothing, pid: int | None = None) -> Measurement:
    """Runs the load on its broker. With `pid`, or a broker on this machine, it also measures the processor time."""
    url = parse_url(load.url)
    topology = Topology(load)
    show("set up", 0, 0)
    with LoadSession(url) as session:
        try:
            topology.declare(session)
            with contextlib.closing(Crew(load, url, topology)) as crew:
                return _drive(load, crew, show, session.server_version, pid or local_pid(url))
        finally:
            _clean_up(url, topology)


def local_pid(url: BrokerUrl) -> int | None:
    """The broker's process, if it runs on this machine."""
    return process.listening_pid(url.port) if url.host in ("127.0.0.1", "localhost", "::1") else None


def _drive(load: Load, crew: Crew, show: Show, server: str, pid: int | None) -> Measurement:
    _go_on(load, crew, show, "warm up", load.warm_up_s)
    begun_ns = time.monotonic_ns()
    crew.deliver_samples.begun_after_ns = crew.confirm_samples.begun_after_ns = begun_ns
    before, own_before_s = crew.totals(), time.process_time()
    broker_before_s = process.cpu_seconds(pid) if pid else 0.0
    _go_on(load, crew, show, "measure", load.duration_s)
    seconds = (time.monotonic_ns() - begun_ns) / 1e9
    after, own_after_s = crew.totals(), time.process_time()
    broker_after_s = process.cpu_seconds(pid) if pid else 0.0
    missing = crew.drain()
    messages = _messages(load, before, after) or 1
    return Measurement(
        load=_without_passwords(load),
        server=server,
        seconds=seconds,
        published_rate=(after.published - before.published) / seconds,
        delivered_rate=(after.delivered - before.delivered) / seconds,
        confirmed_rate=(after.confirmed - before.confirmed) / seconds,
        refused=crew.refused,
        missing=missing,
        blocked=crew.blocked,
        walked=crew.walked,
        generator_cpu_us=(own_after_s - own_before_s) * 1e6 / messages,
        broker_cpu_us=(broker_after_s - broker_before_s) * 1e6 / messages if pid else None,
        delivery_latency=crew.deliver_samples.summary(),
        confirm_latency=crew.confirm_samples.summary(),
    )


def _without_passwords(load: Load) -> Load:
    consumers_at = parse_url(load.consumer_url).without_password if load.consumer_url else ""
    return msgspec.structs.replace(load, url=parse_url(load.url).without_password, consumer_url=consumers_at)


def _go_on(load: Load, crew: Crew, show: Show, phase: str, seconds: float) -> None:
    begun_ns = shown_ns = time.monotonic_ns()
    end_ns = begun_ns + int(seconds * 1e9)
    shown = crew.totals()
    while (now_ns := time.monotonic_ns()) < end_ns:
        crew.turn(now_ns, end_ns)
        if now_ns - shown_ns > _SHOW_EVERY_NS:
            totals = crew.totals()
            rate = _messages(load, shown, totals) * 1e9 / (now_ns - shown_ns)
            show(phase, (now_ns - begun_ns) / (end_ns - begun_ns), rate)
            shown, shown_ns = totals, now_ns


def _messages(load: Load, before: LoadTotals, after: LoadTotals) -> int:
    """The number of messages, in the meaning of `Measurement.processed_rate`."""
    if load.consumers:
        return after.delivered - before.delivered
    return after.confirmed - before.confirmed if load.confirm_window else after.published - before.published


def _clean_up(url: BrokerUrl, topology: Topology) -> None:
    # A session of its own: the broker may have closed the declaring one after an error.
    with contextlib.suppress(OSError, wire.BrokerRefused), LoadSession(url) as session:
        topology.delete(session)

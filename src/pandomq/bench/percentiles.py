"""Exact percentiles of latency samples, by nearest rank: each figure is a measured value."""

from array import array

import msgspec

from pandomq.bench import limits

NEVER_NS = (1 << 63) - 1


class Latency(msgspec.Struct, frozen=True):
    """A summary for people and JSON; all times in microseconds."""

    samples: int
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float
    max_us: float


class LatencySamples:
    """Collects latencies; keeps at most `limits.SAMPLES_MAX` of them."""

    def __init__(self) -> None:
        self._nanoseconds: array[int] = array("q")
        self.begun_after_ns = NEVER_NS
        """Samples that began earlier belong to the warm-up and are left out; at first that is everything."""

    def add_since(self, begun_ns: list[int], now_ns: int) -> None:
        """Adds samples that began at these times and ended now."""
        room = limits.SAMPLES_MAX - len(self._nanoseconds)
        self._nanoseconds.extend([now_ns - begun for begun in begun_ns if begun >= self.begun_after_ns][:room])

    def summary(self) -> Latency | None:
        if not self._nanoseconds:
            return None
        ordered = sorted(self._nanoseconds)
        p50, p90, p99, p999, top = (nearest_rank(ordered, per_mille) / 1000 for per_mille in (500, 900, 990, 999, 1000))
        return Latency(len(ordered), p50, p90, p99, p999, top)


def nearest_rank(ordered: list[int], per_mille: int) -> int:
    """The smallest value that at least `per_mille` thousandths of the ordered values do not exceed."""
    if not ordered:
        raise ValueError("no samples")
    rank = -(-len(ordered) * per_mille // 1000)
    return ordered[max(rank, 1) - 1]

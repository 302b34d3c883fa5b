"""Measures whether the cost of a message stays constant with more bindings, or more queues.

The same load runs at each count, in several rounds over all counts; medians are compared.
"""

from collections.abc import Sequence
from statistics import median

import msgspec

from pandomq.bench.load import Load, Measurement
from pandomq.bench.run import Show, measure, show_nothing


class FlatnessPoint(msgspec.Struct, frozen=True, kw_only=True):
    count: int
    rate: float
    """Messages per second, the median of the rounds."""
    cost_ratio: float
    """Cost of a message relative to the first count's."""
    broker_cpu_us: float | None
    measurements: list[Measurement]


class FlatnessResult(msgspec.Struct, frozen=True, kw_only=True):
    server: str
    what: str
    points: list[FlatnessPoint]

    @property
    def cost_ratio_max(self) -> float:
        return max(point.cost_ratio for point in self.points)


def bindings_load(base: Load, exchange_type: str, count: int) -> Load:
    """All bindings lead to one queue with different keys, and messages use the keys in turn."""
    return msgspec.structs.replace(base, exchange_type=exchange_type, bindings=count)


def queues_load(base: Load, count: int) -> Load:
    """As many queues, all consumed on one connection; messages go to them in turn."""
    return msgspec.structs.replace(base, queues=count)


def measure_flatness(
    what: str, loads: Sequence[tuple[int, Load]], rounds: int, show: Show = show_nothing, pid: int | None = None
) -> FlatnessResult:
    found: dict[int, list[Measurement]] = {count: [] for count, _ in loads}
    for number in range(rounds):
        for count, load in loads:

            def show_point(phase: str, done: float, rate: float, count: int = count, number: int = number) -> None:
                show(f"{what} {count:,}, round {number + 1}: {phase}", done, rate)

            found[count].append(measure(load, show_point, pid))
    rates = {count: median(item.processed_rate for item in items) for count, items in found.items()}
    first = rates[loads[0][0]]
    points = [
        FlatnessPoint(
            count=count,
            rate=rates[count],
            cost_ratio=first / max(rates[count], 1.0),
            broker_cpu_us=_cpu_us(items),
            measurements=items,
        )
        for count, items in found.items()
    ]
    return FlatnessResult(server=points[0].measurements[0].server, what=what, points=points)


def _cpu_us(measurements: list[Measurement]) -> float | None:
    known = [item.broker_cpu_us for item in measurements if item.broker_cpu_us is not None]
    return median(known) if known else None

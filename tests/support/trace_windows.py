"""A second definition of the rollup: windows over lists of events, one event after the other, with exact
percentiles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from pandomq.trace_form import Event, Events, Kind, Reason

LENGTHS_S = (10, 60, 3600)
TIMED = {Kind.CONFIRMED, Kind.DELIVERED, Kind.REDELIVERED, Kind.ACKED}
Key = tuple[int, int, str, str, str, str]
"""Length, start, subject, name, place, measure."""


@dataclass
class Expected:
    events: int = 0
    messages: float = 0.0
    bytes: float = 0.0
    values: list[int] = field(default_factory=list)
    """Each value has the same weight: percentiles do not depend on the sample if there is only one sample."""

    def percentile(self, part: float) -> float | None:
        """Returns the smallest value such that this part of all values is not above it."""
        ranked = sorted(self.values)
        return float(ranked[max(0, math.ceil(part * len(ranked)) - 1)]) if ranked else None


def measure_of(event: Event) -> str:
    name = event.kind.name.lower().replace("_", "-")
    reason = event.reason.name.lower().replace("_", "-")
    return name if event.reason is Reason.NONE else f"{name}: {reason}"


def subjects_of(event: Event, broker: str) -> Iterable[tuple[str, str, str]]:
    yield "broker", broker, ""
    if event.queue:
        yield "queue", event.queue, ""
    if event.kind in (Kind.PUBLISHED, Kind.UNROUTABLE, Kind.REFUSED):
        yield "exchange", event.exchange, ""
        yield "key", event.routing_key, event.exchange
    if event.consumer_tag:
        yield "consumer", f"{event.consumer_tag} at {event.connection}", event.queue


def windows(batches: Iterable[Events], lengths_s: Iterable[int] = LENGTHS_S) -> dict[Key, Expected]:
    found: dict[Key, Expected] = defaultdict(Expected)
    lengths_s = tuple(lengths_s)
    for batch in batches:
        for event in batch.rows():
            if event.kind == Kind.CLUSTER:
                continue
            value = event.since_us if event.kind in TIMED else event.size
            for subject in subjects_of(event, batch.broker):
                # Keys have no distributions.
                rows = [(measure_of(event), -1 if subject[0] == "key" else value)]
                if event.held_us >= 0 and subject[0] in ("queue", "consumer"):
                    rows.append(("held", event.held_us))
                for (measure, measured), length_s in product(rows, lengths_s):
                    start_us = event.time_us - event.time_us % (length_s * 1_000_000)
                    row = found[length_s, start_us, *subject, measure]
                    row.events += 1
                    row.messages += 1 / batch.sample
                    row.bytes += event.size / batch.sample
                    if measured >= 0:
                        row.values.append(measured)
    return dict(found)

"""Plots of the summary: the course over time, with events of the cluster, and bars of the most important names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from pandomq.pipeline import plots
from pandomq.pipeline.plots import Series, TimelineMark
from pandomq.pipeline.rollup import measures
from pandomq.pipeline.rollup.sketch import values_of
from pandomq.pipeline.rollup.sums import MICROS
from pandomq.pipeline.rollup.tables import STORIES_SHOWN, dead_letters, hot_keys, slowest
from pandomq.pipeline.rollup.views import MILLIS, VhostStory, all_stories, told, windows_of, written
from pandomq.pipeline.summary import Chart

BARS: Final = 12
MARKS_MAX: Final = 12
"""Maximum number of marked events. More would hide a plot."""
SIZES: Final = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def over_time(vhost: VhostStory, window: str) -> list[Chart]:
    windows = windows_of(vhost)
    if not windows:
        return []
    first_us = windows[0][0]
    end_us = vhost.newest.end_us
    shown = [one for one in all_stories([vhost]) if first_us <= one.time_us <= end_us]
    marks = [TimelineMark((one.time_us - first_us) / MICROS, told(one.text)) for one in shown[:STORIES_SHOWN]]
    few = [TimelineMark(mark.at, mark.text.partition(" ")[0]) for mark in marks[:MARKS_MAX]]

    def times(measure: str, part: str) -> Series:
        known = [(start_us, one.at(measure, part, MILLIS)) for start_us, one in windows]
        points = [((start_us - first_us) / MICROS, value) for start_us, value in known if value is not None]
        return Series(f"{measure} {part}", points)

    def rates(measure: str) -> Series:
        return Series(measure, [((start_us - first_us) / MICROS, one.rate(measure)) for start_us, one in windows])

    rate_lines = [rates(measure) for measure in (measures.PUBLISHED, measures.DELIVERED, measures.ACKED)]
    time_lines = [times(measure, part) for measure in (measures.DELIVERED, measures.ACKED) for part in ("p50", "p99")]
    since = f"seconds since {written(first_us)}"
    found = [
        Chart(
            f"Messages a second in {vhost.vhost}, windows of {window}", plots.lines(rate_lines, since, "a second", few)
        ),
        Chart(f"Milliseconds since published in {vhost.vhost}", plots.lines(time_lines, since, "milliseconds", few)),
    ]
    if marks:
        found.append(Chart("What happened to the cluster", plots.time_line(marks, (end_us - first_us) / MICROS)))
    return found


def bars(vhosts: Sequence[VhostStory]) -> list[Chart]:
    keys = [(f"{row[1]} {row[2]}", float(str(row[3]))) for row in hot_keys(vhosts).rows]
    slow = [(f"{row[1]}, {row[2]}", float(str(row[6]))) for row in slowest(vhosts).rows]
    letters: dict[str, float] = defaultdict(float)
    for row in dead_letters(vhosts).rows:
        letters[str(row[2])] += float(str(row[3]))
    drawn = [
        ("Hot keys", sorted(keys, key=lambda one: -one[1])[:BARS], "messages"),
        ("Sizes", _by_size(vhosts), "messages"),
        ("Slowest consumers: p99 from delivery to ack", slow[:BARS], "ms"),
        ("Dead letters by reason", sorted(letters.items()), "messages"),
    ]
    return [Chart(title, plots.bars(rows, unit)) for title, rows, unit in drawn if rows]


def _by_size(vhosts: Sequence[VhostStory]) -> list[tuple[str, float]]:
    """Number of messages by maximum size."""
    counts = dict.fromkeys((*SIZES, 0), 0.0)
    for vhost in vhosts:
        for row in vhost.newest.totals:
            if row["subject"] == measures.BROKER and row["measure"] == measures.PUBLISHED:
                for size, count in zip(values_of(np.array(row["buckets"])), row["bucket_messages"], strict=True):
                    counts[next((limit for limit in SIZES if size <= limit), 0)] += count
    if not any(counts.values()):
        return []
    named = [(f"up to {plots.figure(limit)} bytes", counts[limit]) for limit in SIZES]
    return [*named, (f"more than {plots.figure(SIZES[-1])} bytes", counts[0])]
